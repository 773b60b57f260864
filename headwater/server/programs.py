"""The folder of uploaded programs. A program is one file, and its id is the name of that file."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from headwater.common.trusted_directories import private_directory
from headwater.server.http_error import HttpError
from headwater.server.names import file_name

ENDINGS = (".py", ".zip", ".whl", ".egg", ".txt")
"""Programs, and what they import or require."""


@dataclass(frozen=True)
class Program:
    """One uploaded program."""

    id: str
    path: Path
    uploaded_ms: int

    @property
    def name(self) -> str:
        """The name that the client gave it."""
        return self.id.partition("_")[2]


class ProgramFolder:
    """Takes, lists and deletes programs. Only the user of the server can enter the folder: what is in it is run."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def list(self) -> list[Program]:
        """Return the programs, the newest first."""
        if not self._path.is_dir():
            return []
        with os.scandir(self._path) as entries:
            found = [
                Program(entry.name, Path(entry.path), int(entry.stat().st_mtime * 1000))
                for entry in entries
                if entry.is_file(follow_symlinks=False) and "_" in entry.name and not entry.name.startswith(".")
            ]
        return sorted(found, key=lambda program: (-program.uploaded_ms, program.id))

    def get(self, program_id: str) -> Program:
        """Return one program. Ids are looked up, never joined to a path. Raises HttpError 404."""
        for program in self.list():
            if program.id == program_id:
                return program
        raise HttpError(404, f"there is no program {program_id}; GET /jars lists those that were uploaded")

    def delete(self, program_id: str) -> None:
        self.get(program_id).path.unlink(missing_ok=True)

    async def add(self, name: str, parts: AsyncIterator[bytes]) -> Program:
        """Store a program under a new id. It appears when all of it is there."""
        try:
            file_name(name)
        except ValueError as error:
            raise HttpError(400, f"the program's name is {name[:100]!r}; expected {error}") from None
        if not name.endswith(ENDINGS):
            raise HttpError(400, f"the program is {name!r}; expected a file that ends with one of {', '.join(ENDINGS)}")
        private_directory(self._path, "choose another web.upload.dir")
        descriptor, draft = tempfile.mkstemp(dir=self._path, prefix=".")
        try:
            with os.fdopen(descriptor, "wb") as file:
                async for part in parts:
                    file.write(part)
            program_id = f"{uuid.uuid4()}_{name}"
            os.replace(draft, self._path / program_id)
        except BaseException:
            os.unlink(draft)
            raise
        return self.get(program_id)
