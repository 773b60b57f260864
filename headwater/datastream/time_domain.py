"""`TimeDomain` under PyFlink's path."""

from headwater.operators.functions.time_domain import TimeDomain

__all__ = ["TimeDomain"]
