"""`TimerService` under PyFlink's path."""

from headwater.operators.timer_service import TimerService

__all__ = ["TimerService"]
