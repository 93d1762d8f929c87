"""The benchmark of accountants: the same compositions put to each package, side by side in one run.

Run by name, `python -m experiments accounting`, with the extra `bench`; a package that is not there
gets a row that says so. Each answers as many of the same settings, from the first on, as fit in
SECONDS, and its time is given for one of them. The error is against the middle of the bracket that
`exact` proves, whose width is in the table and which other tests hold against independent values;
an error below 0 is an epsilon below the truth.
"""

import contextlib
import logging
import os
import platform
import statistics
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpjax.accounting import exact, gaussian, loss
from experiments import style
from experiments.accountants import CONTESTANTS, DELTA, Answer, Contestant
from experiments.progress import Progress
from experiments.table import Cell, Table

COLUMNS = (
    "task",
    "package",
    "version",
    "method",
    "settings",  # answered in one repeat
    "of_settings",
    "failed",  # settings at which the package raised an error or gave no number
    "repeats",
    "answer",  # to the first setting
    "truth",
    "truth_width",  # of the proven bracket, relative
    "least_error",  # relative to the truth, over the settings answered
    "largest_error",
    "seconds_per_setting",  # median over the repeats
    "times_dpjax",  # seconds over those of dpjax by the task's first method, in the same repeat
    "note",
)
TRIALS = 1000  # settings of a task
EPSILONS = 50  # of the crossover
REPEATS = 3
SECONDS = 3.0  # of one repeat of one contestant
LEAST = 3  # settings, however slow
TITLES = {
    "gaussian": "Gaussian composition",
    "training_renyi": "DP-SGD by Rényi",
    "training_exact": "DP-SGD exact",
    "crossover": "Crossover k*",
    "one_loss": "One DP-SGD setting",
}


class Task(NamedTuple):
    """A question: its settings as columns, and the true answers."""

    columns: tuple[np.ndarray, ...]
    truth: np.ndarray
    width: np.ndarray


def tasks(number: int, seed: int) -> dict[str, Task]:
    """The settings: the first is a known one, the rest are drawn evenly in their logarithms."""
    draw = np.random.default_rng(seed)

    def spread(low: float, high: float, first: float) -> np.ndarray:
        return np.array([first, *np.exp(draw.uniform(np.log(low), np.log(high), number - 1))])

    sigma = spread(10, 200, 50)
    count = np.rint(spread(100, 10_000, 1000)).astype(np.int64)
    whole = exact.epsilon_bracket(count * loss.gaussian(sigma), DELTA)
    q, s = spread(1e-3, 0.1, 0.01), spread(0.7, 4, 1.0)
    steps = np.rint(spread(100, 20_000, 10_000)).astype(np.int64)
    part = exact.epsilon_bracket(steps * loss.sampled_gaussian(q, s), DELTA)
    epsilon = np.array([1.0, *np.geomspace(0.1, 10, EPSILONS - 1)])
    k_star = (epsilon * gaussian.noise_multiplier(epsilon, DELTA)) ** 2 / 2
    training = _task((q, s, steps), *part)
    return {
        "gaussian": _task((np.ones(number), sigma, count), *whole),
        "training_renyi": training,
        "training_exact": training,
        "crossover": _task((epsilon,), k_star, k_star, k_star),
        "one_loss": _task((q[:1], s[:1], steps[:1]), *(end[:1] for end in part)),
    }


def _task(
    columns: tuple[np.ndarray, ...], lower: np.ndarray, estimate: np.ndarray, upper: np.ndarray
) -> Task:
    return Task(columns, estimate, (upper - lower) / estimate)


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """All contestants on all tasks.

    Args:
        trials: settings of a task.
        seed: of the settings.
        progress: called after each task.
    """
    if trials < LEAST:
        raise ValueError(f"--trials = {trials}: expected at least {LEAST} settings")
    rows: list[dict[str, Cell]] = []
    questions = tasks(trials, seed)
    with _silence():
        for done, (name, task) in enumerate(questions.items(), 1):
            rows += measure(name, task, CONTESTANTS[name])
            progress(done, len(questions))
    return rows


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Without other packages' warnings of series cut off and orders left out."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def measure(name: str, task: Task, contestants: Sequence[Contestant]) -> list[dict[str, Cell]]:
    """One row for each contestant, from interleaved repeats."""
    answers: dict[Contestant, Answer] = {}
    absent: dict[Contestant, str] = {}
    for contestant in contestants:
        try:
            answers[contestant] = contestant.make()
        except ImportError as error:
            absent[contestant] = f"absent: {' '.join(str(error).split())}"
    sizes = {
        c: _size(answer, task) if c.package != "dpjax" else None for c, answer in answers.items()
    }
    rounds = [
        {c: _timed(answer, task, sizes[c]) for c, answer in answers.items()} for _ in range(REPEATS)
    ]
    reference = contestants[0]
    rows = []
    for contestant in contestants:
        row: dict[str, Cell] = dict.fromkeys(COLUMNS)
        row |= {"task": name, "package": contestant.package, "method": contestant.method}
        row |= {"version": contestant.version, "note": absent.get(contestant, "")}
        if contestant in answers:
            seconds = [each[contestant].seconds for each in rounds]
            base = [each[reference].seconds for each in rounds]
            found = rounds[0][contestant].answers
            error = found / task.truth[: found.size] - 1
            row |= {
                "settings": found.size,
                "of_settings": task.truth.size,
                "failed": int(np.isnan(found).sum()),
                "repeats": REPEATS,
                "answer": None if np.isnan(found[0]) else float(found[0]),
                "truth": float(task.truth[0]),
                "truth_width": float(task.width.max()),
                "least_error": float(np.nanmin(error)),
                "largest_error": float(np.nanmax(error)),
                "seconds_per_setting": statistics.median(seconds),
                "times_dpjax": statistics.median(s / b for s, b in zip(seconds, base, strict=True)),
            }
        rows.append(row)
    return rows


class Timed(NamedTuple):
    """Answers to the first settings, and the seconds for one."""

    answers: np.ndarray
    seconds: float


def _timed(answer: Answer, task: Task, size: int | None) -> Timed:
    """The first `size` settings; a single one several times, and its median."""
    columns = [column[:size] for column in task.columns]
    number, seconds, found = len(columns[0]), [], np.empty(0)
    while not seconds or (number == 1 and len(seconds) < 5):
        start = time.perf_counter()
        found = answer(*columns)
        seconds.append(time.perf_counter() - start)
    return Timed(np.asarray(found, np.float64), statistics.median(seconds) / number)


def _size(answer: Answer, task: Task) -> int:
    """As many settings as fit in SECONDS, judged by a few after one that loads what is lazy."""
    _timed(answer, task, 1)
    return int(np.clip(SECONDS / _timed(answer, task, LEAST).seconds, LEAST, task.truth.size))


def report(table: Table) -> str:
    """The table as text."""
    lines = [
        f"Seconds for one setting, medians of {REPEATS} interleaved repeats; {platform.machine()},"
        f" {os.cpu_count()} CPUs; delta {DELTA:g}",
        f"{'task':15} {'package':17} {'method':28} {'settings':>8} {'answer':>9} {'error from':>11}"
        f" {'to':>9} {'seconds':>9} {'/ dpjax':>8}",
    ]
    for i in range(len(table)):
        row = {name: column[i] for name, column in table.columns.items()}
        start = f"{row['task']:15} {row['package']:17} {row['method']:28}"
        if np.isnan(row["settings"]):
            lines.append(f"{start} {row['note']}")
            continue
        lines.append(
            f"{start} {row['settings']:8.0f} {row['answer']:9.6f} {row['least_error']:11.1e}"
            f" {row['largest_error']:9.1e} {row['seconds_per_setting']:9.2g}"
            f" {row['times_dpjax']:8.3g}"
            + (f"  {row['failed']:.0f} failed" if row["failed"] else "")
        )
    return "\n".join(lines)


def draw(table: Table) -> Figure:
    """Bars of the seconds for one setting, a plot for each task."""
    names = list(TITLES)
    figure, axes = style.figure(11.5, 6.4, [names[:3], [*names[3:], "key"]])
    for name, title in TITLES.items():
        _draw_task(axes[name], table.where(task=name).having("settings"))
        axes[name].set_title(title)
    axes["key"].axis("off")
    axes["key"].text(
        0,
        0.95,
        "Bars: seconds for one setting, log scale.\n"
        "Numbers: that time over dpjax's, and the\n"
        "largest error of epsilon (or k*) relative\n"
        "to the exact value, over the settings\n"
        "that the package answered.\n\n"
        "A minus sign: it answered below the exact\n"
        f"value. Total δ = {style.power(DELTA)}.",
        va="top",
        fontsize=9,
    )
    return figure


def _draw_task(ax: Axes, rows: Table) -> None:
    """The fastest on top."""
    order = np.argsort(-rows["seconds_per_setting"])
    labels = []
    for y, i in enumerate(order):
        ours = rows["package"][i] == "dpjax"
        seconds = rows["seconds_per_setting"][i]
        ax.barh(y, seconds, 0.7, color=style.GAUSSIAN if ours else style.LAPLACE)
        low, high = rows["least_error"][i], rows["largest_error"][i]
        error = low if -low > high else high
        ax.annotate(
            f"×{_short(float(rows['times_dpjax'][i]))}, {_error(float(error))}",
            (seconds, y),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
        labels.append(f"{rows['package'][i]}\n{rows['method'][i]}")
    ax.set_yticks(range(len(labels)), labels, fontsize=6.5)
    ax.set(xscale="log", xlabel="Seconds for one setting")
    low, high = ax.get_xlim()
    ax.set_xlim(low / 2, high * (high / low) ** 0.45)
    ax.grid(axis="y", visible=False)


def _short(ratio: float) -> str:
    """Two significant digits, without an exponent."""
    return f"{float(f'{ratio:.2g}'):,g}"


def _error(error: float) -> str:
    """A relative error: in percent where that can be read, in powers of ten down to rounding."""
    if abs(error) >= 5e-4:
        return f"{error:+.1%}"
    return f"{error:+.0e}" if abs(error) > 1e-12 else "0"
