"""Records that operators refused in earlier attempts at an epoch: the next attempt runs without them.

An operator with state that fails at a record has changed state for half of it. So the attempt fails, and everything is
undone; the epoch runs again, and the record goes to the dead letters instead of the operator. The result is that of
an epoch into which the record never came. Two steps lead there: first the operator gets its records one at a time
(`careful`), which tells which record it is; then the epoch runs without that one (`known`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Refusal:
    """An operator failed at a record."""

    uid: str
    scope: str
    """The partition; in stage 0 the split."""
    ordinal: int | None
    """How many records the operator got before it in this epoch; None: one of a batch, not known which."""
    look: str = ""
    """What the record looks like: if another one is in its place in the next attempt, that one is not refused."""
    error: str = ""


@dataclass(frozen=True)
class Refusals:
    """What the attempts at one epoch have learnt."""

    careful: frozenset[str] = frozenset()
    """Uids of operators that get their records one at a time."""
    known: tuple[Refusal, ...] = ()

    def with_one_more(self, refusal: Refusal) -> Refusals | None:
        """Return what the next attempt must know; None if it would learn nothing from `refusal`."""
        if refusal.ordinal is None:
            if refusal.uid in self.careful:
                return None
            return replace(self, careful=self.careful | {refusal.uid})
        if refusal in self.known:
            return None
        others = tuple(each for each in self.known if _place(each) != _place(refusal))
        return replace(self, known=(*others, refusal))

    def at(self, uid: str, scope: str) -> dict[int, Refusal]:
        """{ordinal: refusal} of one operator in one partition or split."""
        here = (each for each in self.known if (each.uid, each.scope) == (uid, scope))
        return {each.ordinal: each for each in here if each.ordinal is not None}


def _place(refusal: Refusal) -> tuple[str, str, int | None]:
    return refusal.uid, refusal.scope, refusal.ordinal
