"""Puts dead letters through again: which of them this job can take, and what became of them."""

from __future__ import annotations

from dataclasses import replace

from headwater.common.dead_letter import REPLAYED, SOURCE, DeadLetter
from headwater.common.errors import HeadwaterError
from headwater.common.rejected import REJECTED_TAG_ID
from headwater.datastream.dead_letter_files import DeadLetterBox
from headwater.graph.plan import Exchange, JobPlan, OperatorSpec, SourceSpec
from headwater.operators.type_check import TypeCheckOperator
from headwater.runtime.epoch.decisions import CHECKPOINT
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.requests import ReplayRequest

LETTERS_PER_EPOCH = 500


def replay(coordinator: Coordinator, request: ReplayRequest) -> None:
    """Put the letters through, some per epoch, and say what became of them. No other input comes between.

    The order makes it exactly once. First a checkpoint: the output of all that was accepted is visible, so the answers
    to letters that went through before are in their files. Then the files are read. Then an epoch takes the letters,
    and its checkpoint commits the answers together with all that follows from the records. Whatever dies in between,
    the next request begins with the first step.
    """
    coordinator.settle_checkpoint(request)
    coordinator.checkpoint_now(CHECKPOINT, request)
    try:
        box = DeadLetterBox.read(request.directory)
        takers = _Takers(coordinator.plan)
        problems: dict[str, str] = {}
        fitting: list[DeadLetter] = []
        for letter in box.chosen(request.ids):
            try:
                fitting.append(takers.fitted(letter))
            except HeadwaterError as error:
                if request.ids is not None:
                    raise
                problems[letter.id] = str(error)
    except (HeadwaterError, OSError) as error:
        request.fail(error if isinstance(error, HeadwaterError) else HeadwaterError(str(error)))
        return
    for some in _batches(fitting):
        coordinator.replay(some, request)
    answers = DeadLetterBox.read(request.directory).answers
    done = [letter.id for letter in fitting if letter.id in answers and answers[letter.id].stage == REPLAYED]
    again = {letter.id: answers[letter.id].id for letter in fitting if letter.id in answers and letter.id not in done}
    for letter in fitting:
        if letter.id not in answers:
            problems[letter.id] = f"put through, but what became of it is not in {request.directory}"
    request.done.set_result({"done": done, "refused_again": again, "not_possible": problems})


def _batches(letters: list[DeadLetter]) -> list[tuple[DeadLetter, ...]]:
    return [tuple(letters[at : at + LETTERS_PER_EPOCH]) for at in range(0, len(letters), LETTERS_PER_EPOCH)]


class _Takers:
    """The operators and sources of a job that can take letters."""

    def __init__(self, plan: JobPlan) -> None:
        operators = [operator for stage in plan.stages for operator in stage.operators]
        self._nodes: dict[str, OperatorSpec | SourceSpec] = {each.uid: each for each in operators}
        self._nodes |= {each.uid: each for each in plan.sources}
        self._sources = {source.name: source for source in plan.sources}
        inputs = [each for operator in operators for each in operator.inputs]
        served = {each.upstream for each in inputs if each.side_tag == REJECTED_TAG_ID}
        served |= {
            operator.id
            for operator in operators
            if isinstance(operator.factory(), TypeCheckOperator) and operator.inputs[0].upstream in served
        }
        self._served = served

    def fitted(self, letter: DeadLetter) -> DeadLetter:
        """`letter` as the runtime takes it. Raises HeadwaterError if the job cannot."""
        node = self._nodes.get(letter.operator_uid)
        if letter.stage == SOURCE and node is None:
            node = self._sources.get(letter.operator)  # without a uid, its letters have its name
        what = f"dead letter {letter.id} of operator '{letter.operator}' ({letter.operator_uid})"
        if node is None or (letter.stage == SOURCE) != (isinstance(node, SourceSpec) and not letter.consumer_uid):
            raise HeadwaterError(f"{what}: the job has no such operator; was its uid changed?")
        if node.id not in self._served:
            raise HeadwaterError(f"{what}: the operator has no dead letters in this job (with_dead_letters)")
        if letter.raw is None:
            raise HeadwaterError(f"{what}: the letter has only a description of the record, which could not be pickled")
        if isinstance(node, OperatorSpec) and any(
            each.exchange is Exchange.BROADCAST and each.input_index == letter.input_index for each in node.inputs
        ):
            raise HeadwaterError(
                f"{what}: the record was broadcast, and one partition refused it; send it again from its source, so "
                "that all partitions see the same records in the same order"
            )
        return replace(letter, operator_uid=node.uid)
