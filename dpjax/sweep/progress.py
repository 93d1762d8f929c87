"""A line that says how far a run is, how fast, and how long it still takes."""

import sys
import time
from collections.abc import Callable
from typing import Any

Progress = Callable[[int, int], None]
"""Called with the trials done and the trials altogether; first before the work begins."""


def bar(label: str, stream: Any = None, clock: Callable[[], float] = time.monotonic) -> Progress:
    """A progress bar for `sweep`: moves on a terminal, a line a minute elsewhere.

    The rate and the remaining time are those of this run, not of what a checkpoint had done.

    Args:
        label: what is running.
        stream: a text stream to write to; the error stream if None.
        clock: seconds from anywhere.
    """
    out = sys.stderr if stream is None else stream
    moves = out.isatty()
    pause = 0.1 if moves else 60.0
    first: tuple[float, int] | None = None
    last = -float("inf")

    def report(done: int, total: int) -> None:
        nonlocal first, last
        now = clock()
        first = first or (now, done)
        if now - last < pause and done < total:
            return
        last = now
        seconds, run = now - first[0], done - first[1]
        line = f"{label} [{'#' * (24 * done // total):24}] {100 * done / total:5.1f} %"
        if run > 0 and seconds > 0:
            line += f", {_rate(run / seconds)} trials/s"
            left = seconds / run * (total - done)
            line += f", {_duration(left)} left" if done < total else f", {_duration(seconds)}"
        end = "\n" if done == total or not moves else ""
        print(f"\r{line:78}" if moves else line, end=end, file=out, flush=True)

    return report


def _rate(rate: float) -> str:
    """Three digits and a power of a thousand."""
    for power, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if rate >= power:
            return f"{rate / power:.3g}{letter}"
    return f"{rate:.3g}"


def _duration(seconds: float) -> str:
    """Seconds, or hours and minutes."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"
