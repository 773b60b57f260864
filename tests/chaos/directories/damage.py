"""What may become of a checkpoint directory, and the judgement of a start on it.

A start on a damaged directory gives the right output in the end; or it stops with an error that names what is damaged
and a cure, has deleted nothing, and goes on rightly when what it named is back.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from headwater.common.errors import HeadwaterError
from tests.chaos.directories.job import Run, Setting, expected

CURES = ("restore the", "restore one", "start the job", "can start from", "choose another", "give the", "copy ")


@dataclass(frozen=True)
class Damage:
    """Something happens to a file or a directory of a checkpoint directory."""

    path: str
    """Relative to the checkpoint directory."""
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"

    def is_named(self, said: str) -> bool:
        """Whether `said` names the file, or something in the directory."""
        return f"/{self.path}/" in said if self.kind == "remove" else f"/{self.path}" in said

    def strike(self, checkpoints: Path, chance: random.Random) -> None:
        path = checkpoints / self.path
        if self.kind == "remove":
            shutil.rmtree(path, ignore_errors=True)
        elif not path.is_file():
            return  # another damage took it away
        elif self.kind == "delete":
            path.unlink()
        elif self.kind == "truncate":
            os.truncate(path, chance.choice([0, chance.randrange(max(path.stat().st_size, 1))]))
        elif path.stat().st_size:
            with open(path, "r+b") as file:  # in place: whoever is linked to it has it, too
                position = chance.randrange(path.stat().st_size)
                file.seek(position)
                byte = file.read(1)[0] ^ 1 << chance.randrange(8)
                file.seek(position)
                file.write(bytes([byte]))


def damages(checkpoints: Path) -> Iterator[Damage]:
    """All that is tried with one directory, one at a time."""
    for path in sorted(checkpoints.rglob("*")):
        name = str(path.relative_to(checkpoints))
        kinds = ("remove",) if path.is_dir() else ("delete", "flip", "truncate")
        yield from (Damage(name, kind) for kind in kinds)


def judge(setting: Setting, hit: list[Damage], seed: str, scratch: Path, *, linked: bool) -> str:
    """Damage a copy of the directory, start the job on it, and say what came of it. Raises AssertionError.

    With `linked`, files that are one file under two names are so in the copy, too.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    copied = replace(setting, root=scratch)
    for folder in ("checkpoints", "out"):
        copy_tree(setting.root / folder, scratch / folder, linked=linked)
    (scratch / "out").mkdir(exist_ok=True)
    chance = random.Random(seed)
    names = {damage: names_of_one_file(copied.checkpoints, damage) for damage in hit}
    for damage in hit:
        damage.strike(copied.checkpoints, chance)
    left = set(hit)
    while True:
        before = listing(copied.checkpoints)
        try:
            Run(copied).live()
        except HeadwaterError as error:
            said = str(error)
            deleted = before - listing(copied.checkpoints)
            assert not deleted, f"deleted by a start that stopped: {sorted(deleted)}; {said}"
            assert any(cure in said.lower() for cure in CURES), f"no cure: {said}"
            named = {damage for damage in left if damage.is_named(said) or any(name in said for name in names[damage])}
            assert named, said
        else:
            assert copied.output() == expected(), difference(copied)
            return "resumed" if len(left) == len(hit) else "refused"
        left -= named
        for name in {name for damage in named for name in (damage.path, *names[damage])}:
            put_back(setting.checkpoints / name, copied.checkpoints / name)


def put_back(source: Path, target: Path) -> None:
    """From a copy, as a person would: what is there of the original, in the place of what is damaged."""
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        target.parent.mkdir(exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(source, target)


def listing(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def names_of_one_file(checkpoints: Path, damage: Damage) -> set[str]:
    path = checkpoints / damage.path
    if not path.is_file() or path.stat().st_nlink == 1:
        return set()
    names = (other for other in checkpoints.rglob("*") if other.is_file() and other.samefile(path))
    return {str(name.relative_to(checkpoints)) for name in names}


def difference(setting: Setting) -> str:
    output, wanted = setting.output(), expected()
    return f"lost {dict(wanted - output)}, twice {dict(output - wanted)}"


def copy_tree(source: Path, target: Path, *, linked: bool) -> None:
    copies: dict[int, str] = {}  # {inode: its copy}

    def copy(old: str, new: str) -> str:
        known = copies.setdefault(os.stat(old).st_ino, new)
        if linked and known != new:
            os.link(known, new)
            return new
        return str(shutil.copy2(old, new))

    if source.is_dir():
        shutil.copytree(source, target, copy_function=_two_strings(copy))


def _two_strings(copy: Callable[[str, str], str]) -> Callable[[object, object], object]:
    return lambda old, new: copy(os.fspath(old), os.fspath(new))  # type: ignore[call-overload]
