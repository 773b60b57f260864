"""Patterns as data: a dict of plain values for JSON and YAML, for the whole API, and back.

    {"steps": [{"name": "small", "where": "amount < 1"},
               {"followed_by": "large", "where": "amount > 500", "times": [1, 3], "greedy": true}],
     "within_ms": 600000, "skip": "skip_past_last_event"}

The first step has a `name`; each other one says how it follows: `next`, `followed_by`, `followed_by_any`, `not_next` or
`not_followed_by`. Instead of a name, a group has a list of `steps`. Conditions are expressions
(`headwater.operators.cep.expressions`), or `{"function": name}` of functions that the program has registered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.cep.pattern import Pattern
from headwater.cep.within_type import WithinType
from headwater.common.errors import PatternError, short_repr
from headwater.operators.cep.conditions import Always, Both, Condition, Either, Subtype, Test, condition_of
from headwater.operators.cep.expressions import Expression, expression
from headwater.operators.cep.skip import AfterMatchSkipStrategy
from headwater.operators.cep.steps import Contiguity, Group, Part, PatternSteps, Step, all_steps

Functions = Mapping[str, Callable[..., Any]]
"""Functions that patterns may name as conditions."""

_FOLLOWS = ("next", "followed_by", "followed_by_any", "not_next", "not_followed_by")
_OF_STEPS = frozenset(
    {"name", "steps", "where", "or_where", "until", "times", "one_or_more", "times_or_more", "optional", "greedy",
     "consecutive", "allow_combinations", "gap_ms", "window_time_ms", *_FOLLOWS}
)  # fmt: skip
_YES_OR_NO = ("one_or_more", "optional", "greedy", "consecutive", "allow_combinations")
MAX_STEPS = 200
MAX_DEPTH = 20
"""Of groups in groups, and of conditions in conditions. Whoever sends a pattern to a running job must not stop it."""
_OF_PATTERNS = frozenset({"steps", "within_ms", "skip"})


@dataclass(frozen=True)
class NamedFunction:
    """A registered function as a condition: it is known, and pickled, by its name and itself."""

    name: str
    function: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def pattern_from_data(data: Any, functions: Functions | None = None) -> Pattern:
    """The pattern that `data` describes; `PatternError` says what is wrong with it."""
    _check_keys("a pattern", data, _OF_PATTERNS)
    pattern = _sequence(data.get("steps"), functions or {}, _skip(data.get("skip", "no_skip")))
    if "within_ms" in data:
        pattern = pattern.within(data["within_ms"])
    steps = pattern.steps()
    if (count := sum(1 for _ in all_steps(steps.parts))) > MAX_STEPS:
        raise PatternError(f"the pattern has {count} steps; at most {MAX_STEPS} are allowed")
    _check_names(steps)
    return pattern


def pattern_from_json(text: str, functions: Functions | None = None) -> Pattern:
    """The pattern in a JSON text."""
    try:
        data = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise PatternError(f"the pattern is no JSON: {error}; found {short_repr(text, 200)}") from None
    return pattern_from_data(data, functions)


def pattern_from_yaml(text: str, functions: Functions | None = None) -> Pattern:
    """The pattern in a YAML text. Needs PyYAML."""
    try:
        import yaml
    except ImportError:
        raise PatternError("reading patterns from YAML needs the package PyYAML; install it, or use JSON") from None
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PatternError(f"the pattern is no YAML: {error}") from None
    return pattern_from_data(data, functions)


def pattern_to_data(pattern: Pattern) -> dict[str, Any]:
    """The pattern as plain values; `PatternError` if a condition is a function that has no registered name."""
    steps = pattern.steps()
    data: dict[str, Any] = {"steps": [_part_data(part, index == 0) for index, part in enumerate(steps.parts)]}
    if steps.within_ms is not None:
        data["within_ms"] = steps.within_ms
    if steps.skip.skips:
        skip = {steps.skip.kind.value: steps.skip.target}
        data["skip"] = steps.skip.kind.value if steps.skip.target is None else skip
        if steps.skip.throws_on_miss:
            data["skip"]["throw_exception_on_miss"] = True
    return data


def pattern_to_json(pattern: Pattern) -> str:
    """The pattern as one line of JSON."""
    return json.dumps(pattern_to_data(pattern))


# -- from data --------------------------------------------------------------------------------------------------------


def _sequence(steps: Any, functions: Functions, skip: AfterMatchSkipStrategy | None = None, depth: int = 0) -> Pattern:
    if depth > MAX_DEPTH:
        raise PatternError(f"groups are nested more than {MAX_DEPTH} deep")
    if not isinstance(steps, list) or not steps:
        raise PatternError(f"'steps' must be a list with at least one step, found {short_repr(steps, 200)}")
    pattern: Pattern | None = None
    for number, data in enumerate(steps, 1):
        where = f"step {number}"
        _check_keys(where, data, _OF_STEPS)
        follows = [word for word in _FOLLOWS if word in data]
        if pattern is None and follows:
            raise PatternError(f"{where} is the first, and follows nothing; give it a 'name' instead of '{follows[0]}'")
        if pattern is not None and len(follows) != 1:
            raise PatternError(f"{where} must have one of {', '.join(_FOLLOWS)}; found {follows or 'none of them'}")
        given = data.get("name") if pattern is None else data[follows[0]]
        if "steps" in data:
            if given not in (None, "group"):
                raise PatternError(
                    f"{where} has 'steps', so it is a group; its name must be \"group\", found {given!r}"
                )
            given = _sequence(data["steps"], functions, depth=depth + 1)
        pattern = Pattern.begin(given, skip) if pattern is None else getattr(pattern, follows[0])(given)
        _configure(pattern, data, functions)
    return pattern  # type: ignore[return-value]  # there is at least one step


def _configure(pattern: Pattern, data: dict[str, Any], functions: Functions) -> None:
    for method in ("where", "or_where"):
        for given in _listed(data.get(method)):
            getattr(pattern, method)(_condition(given, functions))
    for word in _YES_OR_NO:
        if not isinstance(data.get(word, False), bool):
            raise PatternError(f"'{word}' must be true or false, found {data[word]!r}")
    window = data.get("window_time_ms")
    repeats = [word for word in ("times", "one_or_more", "times_or_more") if data.get(word)]
    if len(repeats) > 1:
        raise PatternError(f"a step has both '{repeats[0]}' and '{repeats[1]}'; choose one")
    if "times" in data:
        numbers = _listed(data["times"])
        if len(numbers) not in (1, 2):
            raise PatternError(f"'times' must be a number, or a list of two, found {data['times']!r}")
        pattern.times(numbers[0], numbers[1] if len(numbers) == 2 else None, window)
    elif "times_or_more" in data:
        pattern.times_or_more(data["times_or_more"], window)
    elif data.get("one_or_more"):
        pattern.one_or_more(window)
    for method in ("consecutive", "allow_combinations", "greedy", "optional"):
        if data.get(method):
            getattr(pattern, method)()
    if "until" in data:
        pattern.until(_condition(data["until"], functions))
    if "gap_ms" in data:
        pattern.within(data["gap_ms"], WithinType.PREVIOUS_AND_CURRENT)


def _condition(given: Any, functions: Functions, depth: int = 0) -> Condition:
    if depth > MAX_DEPTH:
        raise PatternError(f"conditions are nested more than {MAX_DEPTH} deep")
    if isinstance(given, str):
        return expression(given)
    if isinstance(given, dict) and len(given) == 1:
        ((kind, value),) = given.items()
        if kind == "function":
            if not isinstance(value, str) or value not in functions:
                known = ", ".join(sorted(functions)) or "none is"
                raise PatternError(f"the pattern names the function {value!r}; registered: {known}")
            found = condition_of("where", value, functions[value])
            return Test(NamedFunction(value, functions[value]), found.needs_context, value)
        if kind in ("and", "or") and isinstance(value, list) and len(value) == 2:
            first, second = (_condition(each, functions, depth + 1) for each in value)
            return Both(first, second) if kind == "and" else Either(first, second)
    raise PatternError(
        f'a condition must be an expression, {{"function": name}}, or {{"and" or "or": [two of them]}}; '
        f"found {short_repr(given, 200)}"
    )


def _skip(given: Any) -> AfterMatchSkipStrategy:
    plain = ("no_skip", "skip_to_next", "skip_past_last_event")
    if isinstance(given, str) and given in plain:
        strategy: AfterMatchSkipStrategy = getattr(AfterMatchSkipStrategy, given)()
        return strategy
    if isinstance(given, dict):
        throws = given.get("throw_exception_on_miss", False)
        kinds = [kind for kind in ("skip_to_first", "skip_to_last") if kind in given]
        if len(kinds) == 1 and set(given) <= {kinds[0], "throw_exception_on_miss"}:
            strategy = getattr(AfterMatchSkipStrategy, kinds[0])(given[kinds[0]])
            return strategy.throw_exception_on_miss() if throws else strategy
    raise PatternError(
        f'\'skip\' must be one of {", ".join(plain)}, or {{"skip_to_first" or "skip_to_last": step}}, found {given!r}'
    )


def _check_keys(what: str, data: Any, known: frozenset[str]) -> None:
    if not isinstance(data, dict):
        raise PatternError(f"{what} must be an object with {', '.join(sorted(known))}; found {short_repr(data, 200)}")
    unknown = sorted(set(map(str, data)) - known)
    if unknown:
        raise PatternError(f"{what} has {', '.join(map(repr, unknown))}, which is unknown; known: {sorted(known)}")


def _check_names(steps: PatternSteps) -> None:
    """Conditions may only look at steps that there are."""
    names = {step.name for step in all_steps(steps.parts)}
    for step in all_steps(steps.parts):
        for condition in (step.condition, step.until):
            for used in _expressions(condition):
                if missing := sorted(used.steps - names):
                    raise PatternError(f"the condition {used.text!r} looks at step '{missing[0]}', which there is not")


def _expressions(condition: Condition | None) -> list[Expression]:
    match condition:
        case Both(first, second) | Either(first, second):
            return _expressions(first) + _expressions(second)
        case Test(function) if isinstance(function, Expression):
            return [function]
    return []


def _listed(given: Any) -> list[Any]:
    return [] if given is None else list(given) if isinstance(given, list) else [given]


# -- to data ----------------------------------------------------------------------------------------------------------


def _part_data(part: Part, first: bool) -> dict[str, Any]:
    word = "name" if first else part.contiguity.value
    if isinstance(part, Group):
        data: dict[str, Any] = {
            word: "group",
            "steps": [_part_data(inner, at == 0) for at, inner in enumerate(part.steps)],
        }
    else:
        data = {part.negation.value if part.negation else word: part.name}
        if not isinstance(part.condition, Always):
            data["where"] = _condition_data(part, part.condition)
    if part.most is None:
        data |= {"one_or_more": True} if part.least == 1 else {"times_or_more": part.least}
    elif part.loops:
        data["times"] = part.least if part.least == part.most else [part.least, part.most]
    if part.loops and part.inner is not Contiguity.RELAXED:
        data["consecutive" if part.inner is Contiguity.STRICT else "allow_combinations"] = True
    if isinstance(part, Step) and part.greedy:
        data["greedy"] = True
    if part.optional:
        data["optional"] = True
    if isinstance(part, Step) and part.until is not None:
        data["until"] = _condition_data(part, part.until)
    if part.gap_ms is not None:
        data["gap_ms"] = part.gap_ms
    if part.inner_gap_ms is not None:
        data["window_time_ms"] = part.inner_gap_ms
    return data


def _condition_data(step: Step, condition: Condition) -> Any:
    match condition:
        case Test(function) if isinstance(function, Expression):
            return function.text
        case Test(function) if isinstance(function, NamedFunction):
            return {"function": function.name}
        case Both(first, second):
            return {"and": [_condition_data(step, first), _condition_data(step, second)]}
        case Either(first, second):
            return {"or": [_condition_data(step, first), _condition_data(step, second)]}
        case Subtype(cls):
            what = f"subtype({cls.__name__})"
        case _:
            what = f"the function {condition}"
    raise PatternError(
        f"step '{step.name}' has {what} as a condition, which cannot be written down; use an expression, or "
        "register the function and name it"
    )
