"""The pattern of MATCH_RECOGNIZE as steps of the pattern matcher. What Flink refuses is refused, with the reason."""

from __future__ import annotations

from headwater.common.errors import PatternError, SqlError
from headwater.operators.cep.skip import AfterMatchSkipStrategy
from headwater.operators.cep.steps import Contiguity, PatternSteps, Step, all_steps, can_be_left_out
from headwater.table.parser.ast import queries as ast


def pattern_steps(node: ast.MatchRecognize, within_ms: int | None) -> PatternSteps:
    """The steps, each strictly after the one before. SqlError for what is not supported."""
    steps = _flat(node.pattern)
    names = [step.name for step in steps]
    for name in names:
        if names.count(name) > 1:
            raise SqlError(f"PATTERN has the variable '{name}' twice; give each place a variable of its own")
    if all(can_be_left_out(step) for step in steps):
        raise SqlError("PATTERN could match no row at all; let at least one variable be required")
    last = steps[-1]
    if last.greedy:
        raise SqlError(
            f"PATTERN ends with the greedy '{last.name}': nobody could say that no further row comes; end it with a "
            f"plain variable, or make it reluctant ('{last.name}+?')"
        )
    try:
        return PatternSteps(tuple(steps), _skip(node, names), within_ms)
    except PatternError as error:
        raise SqlError(str(error)) from None


def _flat(pattern: ast.Pattern) -> list[Step]:
    match pattern:
        case ast.PatternVariable():
            return [Step(pattern.name, Contiguity.STRICT, inner=Contiguity.STRICT)]
        case ast.PatternSequence():
            return [step for part in pattern.parts for step in _flat(part)]
        case ast.PatternRepeat():
            inner = _flat(pattern.part)
            if len(inner) != 1 or inner[0].loops or inner[0].optional:
                names = " ".join(step.name for step in inner)
                raise SqlError(
                    f"PATTERN repeats the group ({names}); only single variables can be repeated, as in Flink"
                )
            return [_repeated(inner[0], pattern)]
        case ast.PatternChoice():
            raise SqlError("PATTERN has alternatives ('|'), which are not supported, as in Flink; use DEFINE with OR")
        case ast.PatternPermute():
            raise SqlError(
                "PATTERN has PERMUTE, which is not supported, as in Flink; write the orders as separate queries"
            )
        case ast.PatternExclusion():
            raise SqlError("PATTERN has an exclusion ('{- -}'), which is not supported, as in Flink")
    raise SqlError(f"PATTERN has {type(pattern).__name__}, which is not supported")


def _repeated(step: Step, repeat: ast.PatternRepeat) -> Step:
    least, most = repeat.least, repeat.most
    if most is not None and (most < least or most == 0):
        raise SqlError(f"PATTERN: {step.name}{{{least},{most}}} is no range of numbers")
    optional = least == 0
    if optional and most == 1 and repeat.reluctant:
        raise SqlError(f"PATTERN: the reluctant '{step.name}??' is not supported, as in Flink")
    greedy = not repeat.reluctant and least != most and most != 1
    return Step(
        step.name, Contiguity.STRICT, least=max(least, 1), most=most, optional=optional, greedy=greedy,
        inner=Contiguity.STRICT,
    )  # fmt: skip


def _skip(node: ast.MatchRecognize, names: list[str]) -> AfterMatchSkipStrategy:
    kind = node.after_match or "SKIP TO NEXT ROW"  # Flink's default; the standard's is SKIP PAST LAST ROW
    if kind == "SKIP PAST LAST ROW":
        return AfterMatchSkipStrategy.skip_past_last_event()
    if kind == "SKIP TO NEXT ROW":
        return AfterMatchSkipStrategy.skip_to_next()
    target = node.skip_to or ""
    if target not in names:
        raise SqlError(f"AFTER MATCH skips to '{target}', which is no variable of PATTERN ({', '.join(names)})")
    made = AfterMatchSkipStrategy.skip_to_first if kind == "SKIP TO FIRST" else AfterMatchSkipStrategy.skip_to_last
    return made(target).throw_exception_on_miss()


def variables(steps: PatternSteps) -> list[str]:
    return [step.name for step in all_steps(steps.parts)]
