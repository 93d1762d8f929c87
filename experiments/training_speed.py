"""The benchmark of private training: models trained together in one program against one by one.

Run by name, `python -m experiments training_speed`. All ways train models of `dp_sgd`, compiled, to
the same accuracies, and no time counts the compilation. The textbook's way forms the gradient of
every record to clip it; the others clip by the product of two norms. Repeats are interleaved, so
that what disturbs the machine disturbs all.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments import dp_sgd, style
from experiments.progress import Progress
from experiments.table import Cell, Table

COLUMNS = (
    "way",  # together, one_by_one, or the textbook's, one by one too
    "models",
    "repeats",
    "seconds",  # median
    "seconds_per_model",
    "times_faster",  # than one by one for each model, median of the ratios within a repeat
)
TITLE = "Models trained together and one by one"
TRIALS = 1100  # models: as many as dp_sgd trains together
ONE_BY_ONE = {"textbook": 4, "one_by_one": 32}  # models of a repeat; time grows in proportion
REPEATS = 5


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for one by one, and one for each number of models trained together.

    Args:
        trials: the most models trained together.
        seed: of the models.
        progress: called after each repeat.
    """
    sizes = sorted({*(4**power for power in range(6) if 2 * 4**power <= trials), trials})
    plans = [*((way, min(size, trials)) for way, size in ONE_BY_ONE.items())]
    plans += [("together", size) for size in sizes]
    ready = {plan: _ready(*plan, seed) for plan in plans}
    firsts = {plan: way() for plan, way in ready.items()}  # compiles
    _check(firsts)
    rounds = []
    for done in range(1, REPEATS + 1):
        rounds.append({plan: _seconds(way) for plan, way in ready.items()})
        progress(done, REPEATS)
    alone = plans[1]
    rows = []
    for way, size in plans:
        seconds = statistics.median(times[way, size] for times in rounds)
        faster = statistics.median(
            (times[alone] / alone[1]) / (times[way, size] / size) for times in rounds
        )
        rows.append(
            {
                "way": way,
                "models": size,
                "repeats": REPEATS,
                "seconds": seconds,
                "seconds_per_model": seconds / size,
                "times_faster": faster,
            }
        )
    return rows


def _ready(way: str, size: int, seed: int) -> Callable[[], np.ndarray]:
    """Trains so many models in one of the ways and gives their accuracies."""
    import jax

    from experiments import training  # here, so that a redraw needs no JAX

    train, test = (jax.device_put(records) for records in training.digits())
    multipliers = np.resize(dp_sgd.noise_multipliers("exact"), size)
    rates = [dp_sgd.learning_rate(multiplier) for multiplier in multipliers]
    columns = [
        np.asarray(column, np.float32)
        for column in (multipliers, np.full(size, dp_sgd.CLIP_NORM), rates)
    ]
    keys = training.keys(seed, "training_speed", [{"part": "model"}], size)
    settings: dict[str, Any] = {
        "sampling_probability": dp_sgd.SAMPLING_PROBABILITY,
        "num_steps": dp_sgd.NUM_STEPS,
    }
    if way == "together":
        return lambda: np.asarray(training.accuracies(keys, train, test, *columns, **settings))
    settings["gradient_sum"] = {
        "one_by_one": training.clipped_sum,
        "textbook": training.per_example_sum,
    }[way]

    @jax.jit
    def one(key, train, test, noise_multiplier, clip_norm, learning_rate):
        weights = training.train(
            key,
            train,
            noise_multiplier=noise_multiplier,
            clip_norm=clip_norm,
            learning_rate=learning_rate,
            **settings,
        )
        return training.accuracy(weights, test)

    models = list(zip(keys, *columns, strict=True))
    return lambda: np.array([one(key, train, test, *setting) for key, *setting in models])


def _check(accuracies: dict[tuple[str, int], np.ndarray]) -> None:
    """A way that is fast because it is wrong is none; a digit or two of 360 may differ."""
    most = max(accuracies.values(), key=len)
    for (way, _), found in accuracies.items():
        if not np.allclose(found, most[: len(found)], atol=0.01):
            raise ValueError(f"{way} = {found[:3]}: expected accuracies near {most[:3]}")


def _seconds(way: Callable[[], np.ndarray]) -> float:
    """Time of one repeat; the accuracies are on the host at its end."""
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


def report(table: Table) -> str:
    """The table as text."""
    lines = [
        f"Time for each private model, medians of {REPEATS} interleaved repeats;"
        f" {platform.machine()}, {os.cpu_count()} CPUs",
        f"{'way':12} {'models':>7} {'seconds':>9} {'ms a model':>11} {'times faster':>13}",
    ]
    for i in range(len(table)):
        lines.append(
            f"{table['way'][i]:12} {table['models'][i]:7.0f} {table['seconds'][i]:9.3f}"
            f" {1000 * table['seconds_per_model'][i]:11.2f} {table['times_faster'][i]:13.2f}"
        )
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows, in two sentences."""
    together, alone = table.where(way="together"), table.where(way="one_by_one")
    textbook = table.where(way="textbook")
    return (
        f"In one program of {together['models'][-1]:,.0f} models a private model of the digits"
        f" takes {1000 * together['seconds_per_model'][-1]:.1f} ms, one by one"
        f" {1000 * alone['seconds_per_model'][0]:.1f} ms: {together['times_faster'][-1]:.1f} times"
        f" as long. Forming the gradient of every record, as textbooks do, takes"
        f" {1000 * textbook['seconds_per_model'][0]:.0f} ms."
    )


def draw(table: Table) -> Figure:
    """Time for each model against how many are trained together."""
    figure, axes = style.figure(5.6, 3.9, [["time"]])
    ax = axes["time"]
    together, alone = table.where(way="together"), table.where(way="one_by_one")
    models, each = together["models"], 1000 * together["seconds_per_model"]
    ax.plot(models, each, "s-", color=style.GAUSSIAN, ms=4.5)
    single = 1000 * alone["seconds_per_model"][0]
    ax.axhline(single, color=style.LAPLACE, lw=1.4)
    for size, value, faster in zip(models, each, together["times_faster"], strict=True):
        label = f"{faster:.1f}×"
        ax.annotate(
            label, (size, value), (0, 7), textcoords="offset points", ha="center", fontsize=8
        )
    style.name(ax, "one by one", (models[-1], 1.04 * single), style.LAPLACE, ha="right")
    style.log_axis(ax, "x", models.tolist())
    ax.set(xlabel="Models trained together", ylabel="Time for each model (ms)")
    ax.set_ylim(0, 1.25 * max(single, each.max()))
    ax.set_title(TITLE)
    return figure
