"""What is wrong with a command line, in one line."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable
from typing import NoReturn

USAGE_ERROR = 2
FAILURE = 1
INTERRUPTED = 130


class UsageError(Exception):
    """The command line cannot be understood. The text says what to type instead; `main` shows it and exits with 2."""


class Parser(argparse.ArgumentParser):
    """Reports problems by raising `UsageError`: one line instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}; see {self.prog} --help")


def nearest(word: str, known: Iterable[str]) -> str:
    """ " Did you mean 'x'?" if something known is near to `word`, else nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{found[0]}'?" if found else ""
