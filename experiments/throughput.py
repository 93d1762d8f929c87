"""The benchmark: trials per second, side by side in one run, and what they cost in memory.

Run by name, `python -m experiments throughput`; its numbers are those of one machine on one day,
so it is no part of what a seed promises. Every contestant computes the RMSE of one mechanism in a
process of its own; repeats are interleaved, so that what disturbs the machine disturbs all.
"""

import contextlib
import os
import platform
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import style
from experiments.contestants import Entry
from experiments.progress import Progress
from experiments.table import Cell, Table
from experiments.worker import Worker

COLUMNS = (
    "part",  # rate, scaling or memory
    "contestant",
    "mechanism",
    "device",
    "devices",
    "processes",
    "points",
    "trials",
    "repeats",
    "seconds",  # median
    "trials_per_second",
    "over_numpy",  # medians of ratios within a round: chunked NumPy with PCG64,
    "over_blocked",  # jax.random in blocks with the standard key,
    "share_of_words",  # and the generator's words alone on as many devices
    "peak_mb",
    "note",
)
TRIALS = 10**9
REPEATS = 5
SECONDS = 1.0  # of one repeat of what is too slow for all trials
MECHANISMS = ("laplace", "gaussian")
RMSE = {"laplace": 2**0.5, "gaussian": 1.0}
CPUS = min(2, os.cpu_count() or 1)
GRID = 64


def entries(mechanism: str) -> list[Entry]:
    """All contestants on the CPU."""
    return [
        Entry("numpy_pcg64", mechanism),
        Entry("numpy_sfc64", mechanism),
        Entry("jax_whole", mechanism),
        Entry("jax_blocked", mechanism),
        Entry("diffprivlib", mechanism),
        Entry("opendp", mechanism),
        Entry("words", mechanism),
        Entry("words", mechanism, CPUS),
        Entry("dpjax_simulate", mechanism),
        Entry("dpjax_sweep", mechanism),
        Entry("dpjax_sweep", mechanism, CPUS),
        Entry("dpjax_sweep", mechanism, CPUS, points=GRID),
        Entry("dpjax_sweep", mechanism, 1, processes=CPUS),
    ]


ACCELERATED = ("jax_whole", "words", "dpjax_simulate", "dpjax_sweep")


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """Rates of all, how the rate grows with the trials, and peak memory over a grid.

    Args:
        trials: the most of a run.
        seed: not used; a benchmark's numbers are its times.
        progress: called after each part.
    """
    if trials < 10**6:
        raise ValueError(f"--trials = {trials}: expected at least 1,000,000 for a benchmark")
    rows: list[dict[str, Cell]] = []
    sizes = [10**power for power in range(6, 13) if 10**power <= trials]
    steps = len(MECHANISMS) * 2 + 1
    for mechanism in MECHANISMS:
        rows += rates(entries(mechanism), trials, REPEATS)
        progress(len({row["mechanism"] for row in rows}), steps)
    for step, mechanism in enumerate(MECHANISMS, len(MECHANISMS) + 1):
        rows += scaling(Entry("dpjax_sweep", mechanism, CPUS), sizes, REPEATS)
        progress(step, steps)
    for size in dict.fromkeys([min(10**6, trials), trials]):
        rows += memory(Entry("dpjax_sweep", "laplace", CPUS, points=GRID), size)
    if has_accelerator():
        for mechanism in MECHANISMS:
            rows += rates([Entry(name, mechanism, 0) for name in ACCELERATED], trials, REPEATS)
    progress(steps, steps)
    return rows


def rates(chosen: Sequence[Entry], trials: int, repeats: int) -> list[dict[str, Cell]]:
    """One row for each entry, from interleaved repeats."""
    with contextlib.ExitStack() as running:
        workers = {entry: running.enter_context(Worker(entry)) for entry in chosen}
        present = [entry for entry, worker in workers.items() if worker.absent is None]
        sizes = {entry: _size(entry, workers[entry], trials) for entry in present}
        rounds = [
            {entry: workers[entry].run(sizes[entry]) for entry in present} for _ in range(repeats)
        ]
        return [
            _row("rate", entry, workers[entry], sizes.get(entry), rounds, sizes) for entry in chosen
        ]


def scaling(entry: Entry, sizes: Sequence[int], repeats: int) -> list[dict[str, Cell]]:
    """One row for each number of trials."""
    with Worker(entry) as worker:
        for size in sizes:
            worker.run(min(size, 10**8))  # what depends on the size is compiled
        rounds = [{size: worker.run(size) for size in sizes} for _ in range(repeats)]
        return [
            _row("scaling", entry, worker, size, [{entry: each[size]} for each in rounds], {})
            for size in sizes
        ]


def memory(entry: Entry, size: int) -> list[dict[str, Cell]]:
    """Peak memory of one run in a fresh process."""
    with Worker(entry) as worker:
        return [_row("memory", entry, worker, size, [{entry: worker.run(size)}], {})]


def has_accelerator() -> bool:
    """Whether JAX, left to itself, finds something else than a CPU."""
    with Worker(Entry("words", "laplace", 0)) as worker:
        return worker.device != "cpu"


def _size(entry: Entry, worker: Worker, trials: int) -> int:
    """How many trials a repeat has: all for dpjax, as many as fit in SECONDS for the others."""
    size = trials
    if not entry.contestant.startswith(("dpjax", "words")):
        size, seconds = min(1000, trials), 0.0
        while seconds < 0.1 and size < trials:
            size = min(size * 4, trials)
            worker.run(size)  # compiles, perhaps
            seconds = worker.run(size)["seconds"]
        size = min(trials, max(size, round(size * SECONDS / seconds))) if seconds else size
    worker.run(size)  # once unmeasured, for what depends on the size
    return size


def _row(
    part: str,
    entry: Entry,
    worker: Worker,
    size: int | None,
    rounds: Sequence[dict[Any, dict[str, Any]]],
    sizes: dict[Entry, int],
) -> dict[str, Cell]:
    """Medians over the rounds; only labels where the contestant is absent."""
    row: dict[str, Cell] = dict.fromkeys(COLUMNS)
    row |= {"part": part, "device": worker.device, **entry._asdict()}
    if size is None:
        return row | {"note": f"absent: {worker.absent}"}
    _check(entry, size, rounds[0][entry]["rmse"])
    seconds = statistics.median(each[entry]["seconds"] for each in rounds)

    def over(name: str, devices: int) -> float | None:
        other = Entry(name, entry.mechanism, devices)
        if other not in sizes:
            return None
        return statistics.median(
            (size / each[entry]["seconds"]) / (sizes[other] / each[other]["seconds"])
            for each in rounds
        )

    busy = entry.devices * entry.processes
    bound = worker.bound
    return row | {
        "trials": size,
        "repeats": len(rounds),
        "seconds": seconds,
        "trials_per_second": size / seconds,
        "over_numpy": over("numpy_pcg64", 1),
        "over_blocked": over("jax_blocked", 1),
        "share_of_words": over("words", busy),
        "peak_mb": max(each[entry]["peak_mb"] for each in rounds),
        "note": f"{size / seconds / bound:.1%} of the integer units" if bound else "",
    }


def _check(entry: Entry, trials: int, rmse: float) -> None:
    """A contestant that is fast because it is wrong is none: 6 standard errors allowed."""
    law = RMSE[entry.mechanism]
    spread = {"laplace": 1.25, "gaussian": 0.5}[entry.mechanism] ** 0.5  # of x^2 over 2 rmse^2
    trials = max(trials // entry.points, 1)
    if entry.contestant != "words" and not abs(rmse / law - 1) < 6 * spread / trials**0.5 + 1e-5:
        raise ValueError(f"{entry.contestant} = {rmse}: expected an RMSE near {law}")


def report(table: Table) -> str:
    """The table as text."""
    lines = [
        f"Trials per second, medians of {REPEATS} interleaved repeats; {platform.machine()},"
        f" {os.cpu_count()} CPUs",
        f"{'mechanism':9} {'contestant':14} {'device':>6} {'dev':>3} {'proc':>4} {'points':>6}"
        f" {'trials':>8} {'M/s':>9} {'/ NumPy':>8} {'/ blocked':>9} {'of words':>8} {'MB':>6}",
    ]
    for i in range(len(table)):
        row = {name: column[i] for name, column in table.columns.items()}
        lines.append(
            f"{row['mechanism']:9} {row['contestant']:14} {row['device'][:6]:>6}"
            f" {row['devices']:3.0f} {row['processes']:4.0f} {row['points']:6.0f}"
            f" {_number(row['trials'], '8.2g')} {_number(row['trials_per_second'] / 1e6, '9.4g')}"
            f" {_number(row['over_numpy'], '8.2f')} {_number(row['over_blocked'], '9.2f')}"
            f" {_number(row['share_of_words'], '8.2f')} {_number(row['peak_mb'], '6.0f')}"
            f" {row['note'] if isinstance(row['note'], str) else ''}".rstrip()
        )
    return "\n".join(lines)


def _number(value: float, form: str) -> str:
    """A number in a column, blank if there is none."""
    return format(value, form) if value == value else " " * int(form.partition(".")[0])


COLOUR = {"laplace": style.LAPLACE, "gaussian": style.GAUSSIAN}


def draw(table: Table) -> Figure:
    """Bars of the rates, and the rate against the number of trials."""
    figure, axes = style.figure(9.6, 4.6, [["rates", "scaling"]], width_ratios=[1.5, 1])
    _draw_rates(axes["rates"], table.where(part="rate", device="cpu").having("trials"))
    ax = axes["scaling"]
    rows = table.where(part="scaling")
    for mechanism in MECHANISMS:
        line = rows.where(mechanism=mechanism)
        ax.plot(line["trials"], line["trials_per_second"], "o-", color=COLOUR[mechanism], ms=4)
        end = (line["trials"][-1], line["trials_per_second"][-1])
        ax.annotate(
            mechanism.capitalize(),
            end,
            (-4, 7 if mechanism == "laplace" else -12),
            textcoords="offset points",
            ha="right",
            color=COLOUR[mechanism],
            fontweight="bold",
        )
    ax.set(xscale="log", yscale="log", xlabel="Trials of one run", ylabel="Trials per second")
    ax.set_title("dpjax.sweep, one point")
    return figure


def _draw_rates(ax: Axes, rows: Table) -> None:
    """Two bars for each contestant, the fastest on top."""
    labels = [
        _label(
            rows["contestant"][i], *(int(rows[c][i]) for c in ("devices", "processes", "points"))
        )
        for i in range(len(rows))
    ]
    laplace = rows["mechanism"] == "laplace"
    order = [labels[i] for i in np.argsort(rows["trials_per_second"]) if laplace[i]]
    for i, label in enumerate(labels):
        rate = rows["trials_per_second"][i]
        y = order.index(label) + (0.2 if laplace[i] else -0.2)
        ax.barh(y, rate, 0.38, color=COLOUR[rows["mechanism"][i]])
        ax.annotate(
            f"{rate / 1e6:,.0f} M/s" if rate >= 1e8 else f"{rate / 1e6:.2g} M/s",
            (rate, y),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    ax.set_yticks(range(len(order)), order)
    ax.set(xscale="log", xlabel="Trials per second (above: Laplace, below: Gaussian)")
    ax.set_xlim(right=ax.get_xlim()[1] * 3)
    ax.grid(axis="y", visible=False)
    ax.set_title("RMSE of one mechanism")


def _label(contestant: str, devices: int, processes: int, points: int) -> str:
    """A contestant's name in the figure."""
    name = {
        "numpy_pcg64": "NumPy, PCG64",
        "numpy_sfc64": "NumPy, SFC64",
        "jax_whole": "jax.random, one array",
        "jax_blocked": "jax.random, blocked",
        "words": "words alone",
        "dpjax_simulate": "dpjax.simulate",
        "dpjax_sweep": "dpjax.sweep",
        "opendp": "OpenDP",
    }.get(contestant, contestant)
    extra = [
        f"{number} {what}"
        for number, what in ((devices, "devices"), (processes, "processes"), (points, "points"))
        if number > 1
    ]
    return ", ".join([name, *extra])
