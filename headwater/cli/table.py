"""How commands show rows, times and sizes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[str] = ()) -> None:
    """Columns as wide as they must be; those whose header is in `numbers` end at the same place."""
    rows = [[shown(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in (headers, *rows)) for column in range(len(headers))]
    for row in (headers, *rows):
        cells = (
            cell.rjust(width) if header in numbers else cell.ljust(width)
            for cell, width, header in zip(row, widths, headers, strict=True)
        )
        print("  ".join(cells).rstrip())


def shown(text: str) -> str:
    """Return `text` without control characters: it may come from another person's file."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def utc(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def duration(milliseconds: float) -> str:
    """`12 ms`, `3.4 s`, `5 min 7 s`, `2 d 3 h`: two units at most."""
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    left = int(milliseconds / 1000)
    parts: list[str] = []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))
