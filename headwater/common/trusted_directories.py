"""Refuses directories that other users can write to: headwater unpickles what it finds there.

The rules, and why they are not stricter: docs/decisions/0018-whose-directories.md.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from headwater.common.errors import ConfigurationError


def private_directory(path: str | Path, cure: str) -> Path:
    """Return `path`, created if need be. Raises ConfigurationError unless only this user can enter it.

    For guessable names in places where every user can create directories. `cure` ends the error's text.
    """
    path = Path(path)
    if not path.parent.exists():
        make_directory(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    check_private(path, cure)
    return path


def check_private(path: Path, cure: str) -> None:
    """Raise ConfigurationError unless `path` is a directory, no link to one, that only this user can enter."""
    status = path.lstat()
    user = os.geteuid()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != user or status.st_mode & 0o077:
        raise ConfigurationError(
            f"{path} must be a directory that only user {user} can enter, but it {_described(status)}; {cure}"
        )


def make_directory(path: Path) -> None:
    """`mkdir -p`. No other user can write to the new directories, whatever the umask is."""
    if not path.parent.exists():
        make_directory(path.parent)
    path.mkdir(mode=0o755, exist_ok=True)


def check_trusted(directory: Path, what: str, parts: Iterable[str] = ()) -> str | None:
    """Return a warning if other users can change what is in `directory`; None if they cannot, or it does not exist.

    Raises ConfigurationError if it is in a place where every user can create directories, such as /tmp. `parts` are
    the directories in it that matter as much as itself.
    """
    for path in dict.fromkeys((directory.absolute(), directory.resolve())):
        common = [parent for parent in (path, *path.parents) if _is_common(parent)]
        between = [parent for parent in path.parents if common and common[-1] in parent.parents]
        for each in (*between, path, *(path / part for part in parts)):
            problem = _problem(each, may_be_common=each in between, in_common=bool(common))
            if problem is None:
                continue
            text = f"{what} {directory} is not this user's alone: {each} {problem}"
            if common:
                raise ConfigurationError(
                    f"{text}, in {common[-1]}, where everybody can make directories. Whoever can write to it can run "
                    "code in this job. Choose a directory in your home, or, if this one is yours: "
                    f"chmod -R go-w {directory}"
                )
            return (
                f"{text}. Whoever can write to it can run code in this job. Unless that is meant: chown it to user "
                f"{os.geteuid()}, and chmod -R go-w {directory}"
            )
    return None


def _is_common(directory: Path) -> bool:
    """Return True if every user can create directories there: sticky, or this machine's temporary directory."""
    try:
        status = directory.stat()
    except OSError:
        return False
    if not status.st_mode & stat.S_IWOTH or not stat.S_ISDIR(status.st_mode):
        return False
    return bool(status.st_mode & stat.S_ISVTX) or directory == Path(tempfile.gettempdir()).resolve()


def _problem(path: Path, *, may_be_common: bool, in_common: bool) -> str | None:
    try:
        status = path.lstat() if in_common else path.stat()
    except OSError:
        return None  # missing: whoever needs it reports it
    if stat.S_ISLNK(status.st_mode) or status.st_uid not in (os.geteuid(), 0):
        return _described(status)
    if may_be_common and _is_common(path):
        return None
    writable = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid))
    return _described(status) if writable else None


def _is_own_group(gid: int) -> bool:
    """Return True if the group has no other member, as where each user has a group of the same name."""
    try:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _described(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return f"is a symbolic link of user {status.st_uid}"
    if not stat.S_ISDIR(status.st_mode):
        return "is no directory"
    return f"belongs to user {status.st_uid} and has mode {stat.S_IMODE(status.st_mode):04o}"
