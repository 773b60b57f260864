"""The plan of a program, without running its job: the program is run up to its first `execute()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from headwater.cli.run import prepare_program, run_program
from headwater.cli.run_arguments import RunArguments
from headwater.cli.usage import FAILURE, USAGE_ERROR
from headwater.common.configuration import Configuration
from headwater.datastream.executor import set_executor
from headwater.graph.plan import JobPlan


class PlanMade(BaseException):
    """Ends the program. Not an Exception: programs catch those."""

    def __init__(self, plan: JobPlan, configuration: Configuration) -> None:
        super().__init__()
        self.plan = plan
        self.configuration = configuration


class PlanningExecutor:
    """Ends a program at its first `execute()`, with `PlanMade`."""

    def launch(self, plan: JobPlan, configuration: Configuration, replan: Any) -> NoReturn:
        raise PlanMade(plan, configuration)


@dataclass(frozen=True)
class PlannedJob:
    """What a program would have started."""

    plan: JobPlan
    configuration: Configuration


def plan_of_program(given: RunArguments) -> tuple[PlannedJob | None, int]:
    """Return the plan with its settings, or None and an exit code; then what went wrong has been printed.

    The program stays in `__main__`, so that its classes can be found.
    """
    source = prepare_program(given)
    if source is None:
        return None, USAGE_ERROR
    set_executor(PlanningExecutor())
    try:
        code = run_program(given.program, source, given.arguments)
    except PlanMade as made:
        return PlannedJob(made.plan, made.configuration), 0
    finally:
        set_executor(None)
    if code == 0:
        print(f"headwater: {given.program} ended without a call of execute(); there is no job to look at")
    return None, code or FAILURE
