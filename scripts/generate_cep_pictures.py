"""Draw the pictures of docs/cep.md from traces of real patterns. `make docs` calls it, and a test checks the pictures.

python scripts/generate_cep_pictures.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from headwater.cep import CEP, AfterMatchSkipStrategy, Pattern

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"


def is_(letter: str) -> Any:
    return lambda event: event == letter


def then(follows: str) -> Pattern:
    longer: Pattern = getattr(Pattern.begin("a").where(is_("a")), follows)("b").where(is_("b"))
    return longer.within(6)


def loop(*, greedy: bool) -> Pattern:
    begun = Pattern.begin("a").where(lambda event: event in "ax").one_or_more()
    return (begun.greedy() if greedy else begun).next("b").where(lambda event: event in "bx").within(6)


def skipping(skip: AfterMatchSkipStrategy) -> Pattern:
    return Pattern.begin("a", skip).where(is_("a")).one_or_more().next("b").where(is_("b")).within(6)


def pictures() -> dict[str, str]:
    """{file name: SVG}"""
    skips = {
        "no_skip": AfterMatchSkipStrategy.no_skip(),
        "skip_to_next": AfterMatchSkipStrategy.skip_to_next(),
        "skip_past_last_event": AfterMatchSkipStrategy.skip_past_last_event(),
    }
    traces = {
        f"cep_{follows}": CEP.trace(then(follows), "acbb") for follows in ("next", "followed_by", "followed_by_any")
    }
    traces |= {f"cep_greedy_{greedy}".lower(): CEP.trace(loop(greedy=greedy), "axb") for greedy in (False, True)}
    traces |= {f"cep_{name}": CEP.trace(skipping(skip), "aab") for name, skip in skips.items()}
    return {f"{name}.svg": trace.to_svg() for name, trace in traces.items()}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    stale = []
    for name, svg in pictures().items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != svg:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(svg, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"{', '.join(stale)} in docs/images are not what the code draws now; run make docs")


if __name__ == "__main__":
    main()
