"""`TimeDomain` under PyFlink's path."""

from headwater.operators.time_domain import TimeDomain

__all__ = ["TimeDomain"]
