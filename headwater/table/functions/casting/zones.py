"""Between local date-times and moments, with the rules of a time zone, as Java has them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def to_moment(local: pa.Array, zone: str) -> pa.Array:
    """Return the moments (UTC) at which clocks in `zone` show `local`.

    An hour that exists twice means the first one. A time in a gap is read with the offset before the gap:
    02:30 becomes 03:30 summer time.
    """
    unit = local.type.unit
    if zone == "UTC":
        return local.cast(pa.timestamp(unit, "UTC"))
    before = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    after = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest")
    moment = before.cast(pa.timestamp(unit, "UTC"))
    in_gap = pc.not_equal(before, after)
    if not pc.any(in_gap).as_py():
        return moment
    offset = pc.subtract(pc.local_timestamp(before).cast(pa.int64()), moment.cast(pa.int64()))
    shifted = pc.subtract(local.cast(pa.int64()), offset).cast(pa.timestamp(unit, "UTC"))
    return pc.if_else(in_gap, shifted, moment)


def to_local(moment: pa.Array, zone: str) -> pa.Array:
    """Return what clocks in `zone` show at `moment`."""
    return pc.local_timestamp(moment.cast(pa.timestamp(moment.type.unit, zone)))
