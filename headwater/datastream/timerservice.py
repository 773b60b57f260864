"""`TimerService` under PyFlink's path."""

from headwater.operators.functions.timer_service import TimerService

__all__ = ["TimerService"]
