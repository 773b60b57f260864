"""The limit: a loop over a dict, on one core, with no framework at all."""

from __future__ import annotations

import time

from benchmarks.workload import EMIT_EVERY, FIRST_FACTOR, MASK, SECOND_FACTOR, arguments, report


def main() -> None:
    options = arguments(records=5_000_000, keys=1000)
    state: dict[int, tuple[int, int]] = {}
    keys = options.keys
    first, second, mask = FIRST_FACTOR, SECOND_FACTOR, MASK
    emitted = 0
    started = time.perf_counter()
    for i in range(options.records):
        mixed = i * first & mask
        mixed = (mixed ^ mixed >> 15) * second & mask
        key = (mixed ^ mixed >> 13) % keys
        count, total = state.get(key, (0, 0))
        count += 1
        state[key] = (count, total + i)
        if count % EMIT_EVERY == 0:
            emitted += 1
    seconds = time.perf_counter() - started
    report(records=options.records, seconds=seconds, rate=options.records / seconds, outputs=emitted)


if __name__ == "__main__":
    main()
