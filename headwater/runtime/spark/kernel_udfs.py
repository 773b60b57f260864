"""Functions of SQL that Spark lacks run there as Arrow UDFs around headwater's own kernels."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql.functions import ArrowUDFType, arrow_udf

from headwater.table.functions.definition import Binding


def register_kernels(session: SparkSession, bindings: Iterable[Binding], zone: str) -> None:
    """Register what the texts of these calls (`Binding.spark`) name and Spark does not have.

    `zone` is the session's time zone. Registering a call twice does no harm: its name says what it is.
    """
    for binding in bindings:
        udf = binding.spark_udf(zone)
        if udf is not None:
            session.udf.register(udf.name, arrow_udf(udf.function, udf.result, ArrowUDFType.SCALAR))
