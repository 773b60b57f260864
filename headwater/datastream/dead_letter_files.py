"""The letters below a directory, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from headwater.common.dead_letter import REPLAYED, DeadLetter
from headwater.common.errors import HeadwaterError, SerializationError
from headwater.datastream.connectors.file_access import find_files, open_decompressed


@dataclass
class DeadLetterBox:
    """All letters, the oldest first, and the answers to those that were put through again."""

    letters: list[DeadLetter]
    answers: dict[str, DeadLetter] = field(default_factory=dict)
    """{letter: the mark that it is done, or the letter that it became}"""

    @staticmethod
    def read(directory: str) -> DeadLetterBox:
        """All that is visible below `directory`. Raises HeadwaterError if something there is no letter."""
        found = {letter.id: letter for letter in _letters(directory)}
        ordered = sorted(found.values(), key=lambda letter: (letter.rejected_at_ms, letter.id))
        return DeadLetterBox(
            [letter for letter in ordered if letter.stage != REPLAYED],
            {letter.replaces: letter for letter in ordered if letter.replaces},
        )

    @property
    def open(self) -> list[DeadLetter]:
        """The letters that wait: neither done, nor replaced by another one."""
        return [letter for letter in self.letters if letter.id not in self.answers]

    def find(self, wanted: str) -> DeadLetter:
        """The letter with this id, or whose id begins so. Raises HeadwaterError if it is none, or not the only one."""
        found = [each for each in self.letters if each.id == wanted] or [
            each for each in self.letters if each.id.startswith(wanted)
        ]
        if not found:
            raise HeadwaterError(f"no dead letter with the id {wanted!r}; `headwater dead-letters list` shows all")
        if len(found) > 1:
            raise HeadwaterError(f"{len(found)} dead letters begin with {wanted!r}; give more of the id")
        return found[0]

    def chosen(self, ids: Sequence[str] | None) -> list[DeadLetter]:
        """The letters with these ids, which must all be open; None: all open ones."""
        if ids is None:
            return self.open
        chosen = {letter.id: letter for letter in map(self.find, ids)}
        for letter in chosen.values():
            answer = self.answers.get(letter.id)
            if answer is not None:
                became = "is done" if answer.stage == REPLAYED else f"was refused again, as {answer.id}"
                raise HeadwaterError(f"dead letter {letter.id} was put through before, and {became}")
        return list(chosen.values())


def _letters(directory: str) -> Iterator[DeadLetter]:
    for file in find_files(directory, must_exist=True):
        with open_decompressed(file.path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield DeadLetter.from_json(line)
                except SerializationError as error:
                    raise HeadwaterError(f"file {file.path}, line {number}: {error}") from None
