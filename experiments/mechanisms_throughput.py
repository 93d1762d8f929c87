"""The benchmark of all mechanisms: answers per second beside the vectorised NumPy way.

Both simulate the root mean square of the same measure, with its standard error: NumPy in chunks
that stay in cache, dpjax by `sweep` on a CPU device for each of two cores. Repeats are interleaved
in one process; that is one of its own, since JAX counts its devices once. Where other programs use
the cores too, the clock says little: what dpjax and NumPy compute is compared by seconds of work.
"""

import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from experiments import style
from experiments.numpy_ways import CASES, Case
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "Throughput of every mechanism"
COLUMNS = (
    "mechanism",
    "answers",  # in one release: entries, options or reports
    "numpy_way",
    "devices",
    "trials",  # releases of one repeat of dpjax
    "repeats",
    "answers_per_second",  # of dpjax: medians
    "numpy_answers_per_second",
    "over_numpy",  # median of the ratios within a repeat, by the clock
    "over_numpy_by_work",  # the same by seconds of computing, shared by the devices
    "rms",  # of the measure
    "numpy_rms",
)
TRIALS = 10**8  # answers of one repeat
REPEATS = 5
CPUS = min(2, os.cpu_count() or 1)
CHUNK = 8192  # answers that NumPy draws at once
SHARE = 20  # NumPy draws this part of the answers
WANTED = 5.0


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each mechanism.

    Args:
        trials: answers of one repeat, at least 1,000,000.
        seed: not used; a benchmark's numbers are its times.
        progress: called after each mechanism.
    """
    if trials < 10**6:
        raise ValueError(f"--trials = {trials}: expected at least 1,000,000 for a benchmark")
    command = [sys.executable, "-m", "experiments.mechanisms_throughput", str(trials)]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            rows.append(json.loads(line))
            progress(len(rows), len(CASES))
    if len(rows) < len(CASES):
        raise OSError(f"the worker ended early, after {len(rows)} of {len(CASES)} mechanisms")
    return rows


def measure(name: str, answers: int, repeats: int = REPEATS) -> dict[str, Cell]:
    """The row of one mechanism, from interleaved repeats; called where JAX has its devices."""
    case = CASES[name]
    size = max(np.size(case.value), 1)
    ours, theirs = dpjax_way(name, case), numpy_way(case, size)
    trials, fewer = max(answers // size, 1000), max(answers // size // SHARE, 1000)
    rms, numpy_rms = ours(trials)[0], theirs(fewer)[0]  # compiled, and in cache
    rounds = []
    for _ in range(repeats):
        clock, work, (rms, spread) = timed(lambda: ours(trials))
        numpy_clock, numpy_work, (numpy_rms, numpy_spread) = timed(lambda: theirs(fewer))
        if not abs(rms - numpy_rms) < 6 * np.hypot(spread, numpy_spread):
            raise ValueError(f"{name}: {rms} against {numpy_rms} with NumPy: expected the same")
        share = trials / fewer
        rounds.append(
            (
                trials * size / clock,
                fewer * size / numpy_clock,
                share * numpy_clock / clock,
                share * numpy_work / (work / CPUS),
            )
        )
    rate, numpy_rate, by_clock, by_work = (
        statistics.median(values) for values in zip(*rounds, strict=True)
    )
    return {
        "mechanism": name,
        "answers": size,
        "numpy_way": case.way,
        "devices": CPUS,
        "trials": trials,
        "repeats": repeats,
        "answers_per_second": rate,
        "numpy_answers_per_second": numpy_rate,
        "over_numpy": by_clock,
        "over_numpy_by_work": by_work,
        "rms": rms,
        "numpy_rms": numpy_rms,
    }


def timed(run: Callable[[], tuple[float, float]]) -> tuple[float, float, tuple[float, float]]:
    """Seconds by the clock, seconds that this process computed on all cores, and the answer."""
    clock, work = time.perf_counter(), time.process_time()
    answer = run()
    return time.perf_counter() - clock, time.process_time() - work, answer


def numpy_way(case: Case, size: int) -> Callable[[int], tuple[float, float]]:
    """From releases to the root mean square and its standard error."""
    rng, chunk = np.random.default_rng(0), max(CHUNK // size, 1)

    def run(trials: int) -> tuple[float, float]:
        squares = fourths = 0.0
        for start in range(0, trials, chunk):
            x = case.draw(rng, min(chunk, trials - start))
            square = x * x
            squares += float(square.sum())
            fourths += float(square @ square)
        mean = squares / trials
        return mean**0.5, ((fourths / trials - mean**2) / trials) ** 0.5 / (2 * mean**0.5)

    return run


def dpjax_way(name: str, case: Case) -> Callable[[int], tuple[float, float]]:
    """The same by `dpjax.sweep`."""
    import jax

    import dpjax
    from dpjax.mechanisms.selection import score_lost

    release = functools.partial(getattr(dpjax, name), scale=np.float32(1), **case.parameters)
    measures = {
        "error": error,
        "norm": norm,
        "largest": largest,
        "share": share,
        "first_share": first_share,
        "first_bit": first_bit,
        "lost": score_lost,
        "place": place,
    }
    points = [dpjax.Point({"mechanism": name}, release, case.value, measures[case.measure])]

    def run(trials: int) -> tuple[float, float]:
        moments = dpjax.sweep(jax.random.key(0), points, trials).moments[0]
        return float(moments.rmse), float(moments.rmse_standard_error)

    return run


def error(answer, value):
    """The error of each release."""
    return (answer - value).astype(np.float32)


def norm(answer, value):
    """The length of the error."""
    return ((answer - value) ** 2).sum(axis=-1) ** 0.5


def largest(answer, value):
    """The largest error of an entry."""
    return abs(answer - value).max(axis=-1)


def share(answer, value):
    """How many reports say yes."""
    return answer.mean(axis=-1, dtype=np.float32)


def first_share(answer, value):
    """How many reports name the first category."""
    return (answer == 0).mean(axis=-1, dtype=np.float32)


def first_bit(answer, value):
    """How many reports have the first category's bit."""
    return answer.mean(axis=-2, dtype=np.float32)[..., 0]


def place(answer, value):
    """The place itself."""
    return answer.astype(np.float32)


def report(table: Table) -> str:
    """The table as text."""
    lines = [
        f"Million answers per second, medians of {REPEATS} interleaved repeats;"
        f" {platform.machine()}, {os.cpu_count()} CPUs",
        f"{'mechanism':22} {'answers':>7} {'dpjax':>8} {'NumPy':>8} {'ratio':>6} {'by work':>7}"
        "  NumPy's way",
    ]
    for i in np.argsort(-table["over_numpy_by_work"]):
        row = {name: column[i] for name, column in table.columns.items()}
        lines.append(
            f"{row['mechanism']:22} {row['answers']:7.0f} {row['answers_per_second'] / 1e6:8.1f}"
            f" {row['numpy_answers_per_second'] / 1e6:8.1f} {row['over_numpy']:6.1f}"
            f" {row['over_numpy_by_work']:7.1f}"
            f"  {row['numpy_way']}"
        )
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows, in two sentences."""
    ratio = table["over_numpy_by_work"]
    slow, fast = int(np.argmin(ratio)), int(np.argmax(ratio))
    return (
        f"On {CPUS} CPU devices dpjax simulates {int((ratio >= WANTED).sum())} of {len(table)}"
        f" mechanisms at least {WANTED:g} times as fast as vectorised NumPy on one, by seconds of"
        f" computing in the same run. The ratio goes from {ratio[slow]:.1f}"
        f" ({table['mechanism'][slow]}) to {ratio[fast]:.1f} ({table['mechanism'][fast]})."
    )


def draw(table: Table) -> Figure:
    """The ratio of each mechanism, with NumPy's way of it."""
    figure, axes = style.figure(8.2, 5.6, [["ratio"]])
    ax, order = axes["ratio"], np.argsort(table["over_numpy_by_work"])
    for y, i in enumerate(order):
        ratio, clock = table["over_numpy_by_work"][i], table["over_numpy"][i]
        ax.barh(y, ratio, 0.7, color=style.LAPLACE if ratio < WANTED else style.GAUSSIAN)
        ax.plot([clock], [y], "|", ms=11, mew=2, color="white" if clock < ratio else style.INK)
        text = f"{ratio:.1f}   against {table['numpy_way'][i]}"
        ax.annotate(
            text,
            (max(ratio, clock), y),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
        )
    ax.axvline(WANTED, color=style.MUTED, lw=0.9, ls=(0, (2, 2)))
    ax.set_yticks(range(len(order)), [str(table["mechanism"][i]).replace("_", " ") for i in order])
    style.log_axis(ax, "x", (1, 2, 5, 10, 20, 50))
    ax.set(xlim=(1, 8 * table["over_numpy_by_work"].max()))
    ax.set_xlabel(
        f"Throughput, dpjax on {CPUS} CPU devices over vectorised NumPy\n"
        "bars: by seconds of computing; marks: by the clock of a shared machine"
    )
    ax.grid(axis="y", visible=False)
    ax.set_title("Throughput of every mechanism")
    return figure


if __name__ == "__main__":
    import jax as _jax

    _jax.config.update("jax_num_cpu_devices", CPUS)
    for each in CASES:
        print(json.dumps(measure(each, int(sys.argv[1]))), flush=True)
