"""Where records come from and go to. As in PyFlink, each connector is imported from its own module."""

from headwater.datastream.connectors.base import (
    Committer,
    DeliveryGuarantee,
    Sink,
    SinkWriter,
    Source,
    Split,
    SplitReader,
    WriterContext,
)

__all__ = ["Committer", "DeliveryGuarantee", "Sink", "SinkWriter", "Source", "Split", "SplitReader", "WriterContext"]
