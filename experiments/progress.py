"""A line on the error stream that says how far a run is."""

import sys
import time
from collections.abc import Callable

Progress = Callable[[int, int], None]  # called with (done, total)


def reporter(name: str) -> Progress:
    """Progress of one experiment: a bar that moves on a terminal, a line at the end elsewhere."""
    start = time.monotonic()

    def report(done: int, total: int) -> None:
        seconds = time.monotonic() - start
        if sys.stderr.isatty():
            bar = "#" * (24 * done // total)
            end = "\n" if done == total else ""
            left = f", {seconds / done * (total - done):.0f} s left" if 0 < done < total else ""
            line = f"\r{name:22} [{bar:24}] {done}/{total} in {seconds:.1f} s{left}   "
            print(line, end=end, file=sys.stderr, flush=True)
        elif done == total:
            print(f"{name:22} {total} points in {seconds:.1f} s", file=sys.stderr, flush=True)

    return report
