"""The benchmark of private training: models trained together in one program against one by one.

Run by name, `python -m experiments training_speed`. All ways train models of `dp_sgd` to the same
accuracies, and no time counts the compilation. One by one is what one would write with JAX: one
model's whole training, all steps in a scan, and its accuracy are one compiled function, with keys
of `jax.random`; a loop in Python calls it with each epsilon and seed. The textbook's way differs in
that it forms the gradient of every record to clip it, where the others clip by the product of two
norms; the unrolled way in that the same random numbers come from `dpjax.prng`, with wider vectors.
Together is `training.together`, the unrolled way for blocks of models on every core. Repeats are
interleaved, so that what disturbs the machine disturbs all.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments import dp_sgd, style
from experiments.progress import Progress
from experiments.table import Cell, Table

COLUMNS = (
    "way",  # together, or one by one: one_by_one itself, textbook and unrolled
    "models",
    "devices",  # CPU devices that train together; JAX may use every core for one model, too
    "repeats",
    "seconds",  # median
    "seconds_per_model",
    "cpu_seconds_per_model",  # of all threads, median
    "times_faster",  # than one by one for each model, median of the ratios within a repeat
    "times_less_cpu",  # the same of the CPU's time
)
TITLE = "Models trained together and one by one"
TRIALS = 1100  # models: as many as dp_sgd trains together
ONE_BY_ONE = {
    "one_by_one": 32,
    "textbook": 4,
    "unrolled": 32,
}  # models of a repeat; time grows in proportion
REPEATS = 5


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each way one by one, and one for each number of models trained together.

    Args:
        trials: the most models trained together.
        seed: of the models.
        progress: called after each repeat.
    """
    import jax

    from experiments import training  # here, so that a redraw needs no JAX

    training.use_every_core()
    sizes = sorted({*(4**power for power in range(1, 6) if 2 * 4**power <= trials), trials})
    plans = [*((way, min(size, trials)) for way, size in ONE_BY_ONE.items())]
    plans += [("together", size) for size in sizes]
    ready = {plan: _ready(*plan, seed) for plan in plans}
    firsts = {plan: way() for plan, way in ready.items()}  # compiles
    _check(firsts)
    rounds = []
    for done in range(1, REPEATS + 1):
        rounds.append({plan: _seconds(way) / plan[1] for plan, way in ready.items()})
        progress(done, REPEATS)
    rows = []
    for way, size in plans:
        times = np.array([each[way, size] for each in rounds])
        alone = np.array([each[plans[0]] for each in rounds])
        (wall, cpu), (faster, less) = np.median(times, axis=0), np.median(alone / times, axis=0)
        rows.append(
            {
                "way": way,
                "models": size,
                "devices": jax.local_device_count() if way == "together" else 1,
                "repeats": REPEATS,
                "seconds": wall * size,
                "seconds_per_model": wall,
                "cpu_seconds_per_model": cpu,
                "times_faster": faster,
                "times_less_cpu": less,
            }
        )
    return rows


def _ready(way: str, size: int, seed: int) -> Callable[[], np.ndarray]:
    """Trains so many models in one of the ways and gives their accuracies."""
    import jax

    from dpjax import prng
    from dpjax.simulate import COMPILER_OPTIONS
    from experiments import training

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
    if way == "textbook":
        settings["gradient_sum"] = training.per_example_sum
    unrolled = way == "unrolled"

    @partial(jax.jit, compiler_options=COMPILER_OPTIONS if unrolled else None)
    def one(key, train, test, noise_multiplier, clip_norm, learning_rate):
        weights = training.train(
            prng.unroll(key) if unrolled else key,
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


def _seconds(way: Callable[[], np.ndarray]) -> np.ndarray:
    """Time and CPU's time of one repeat; the accuracies are on the host at its end."""
    start = time.perf_counter(), time.process_time()
    way()
    return np.subtract((time.perf_counter(), time.process_time()), start)


def report(table: Table) -> str:
    """The table as text."""
    lines = [
        f"Time for each private model, medians of {table['repeats'][0]:.0f} interleaved repeats",
        f"{'way':12} {'models':>7} {'devices':>8} {'ms a model':>11} {'CPU ms':>8}"
        f" {'times faster':>13} {'less CPU':>9}",
    ]
    for i in range(len(table)):
        lines.append(
            f"{table['way'][i]:12} {table['models'][i]:7.0f} {table['devices'][i]:8.0f}"
            f" {1000 * table['seconds_per_model'][i]:11.2f}"
            f" {1000 * table['cpu_seconds_per_model'][i]:8.2f}"
            f" {table['times_faster'][i]:13.2f} {table['times_less_cpu'][i]:9.2f}"
        )
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows, in three sentences."""
    together, alone = table.where(way="together"), table.where(way="one_by_one")
    textbook, unrolled = table.where(way="textbook"), table.where(way="unrolled")
    cores = together["devices"][-1]
    return (
        f"In one program of {together['models'][-1]:,.0f} models on {cores:.0f} cores a private"
        f" model of the digits takes {1000 * together['seconds_per_model'][-1]:.1f} ms, one by one"
        f" {1000 * alone['seconds_per_model'][0]:.1f} ms: {together['times_faster'][-1]:.1f} times"
        f" as long, and {together['times_less_cpu'][-1]:.1f} times as much of the CPU's time."
        f" One by one with the same random numbers drawn by dpjax it takes"
        f" {1000 * unrolled['seconds_per_model'][0]:.1f} ms. Forming the gradient of every record,"
        f" as textbooks do, takes {1000 * textbook['seconds_per_model'][0]:.0f} ms."
    )


def draw(table: Table) -> Figure:
    """Time for each model against how many are trained together."""
    figure, axes = style.figure(5.6, 3.9, [["time"]])
    ax = axes["time"]
    together = table.where(way="together")
    models, each = together["models"], 1000 * together["seconds_per_model"]
    ax.plot(models, each, "s-", color=style.GAUSSIAN, ms=4.5)
    tallest = each.max()
    for way, name, colour, side in (
        ("one_by_one", "one by one", style.LAPLACE, "bottom"),
        ("unrolled", "one by one, random numbers by dpjax", style.MIDDLE, "top"),
    ):
        single = 1000 * table.where(way=way)["seconds_per_model"][0]
        tallest = max(tallest, single)
        ax.axhline(single, color=colour, lw=1.4)
        place = (models[-1], (1.02 if side == "bottom" else 0.98) * single)
        style.name(ax, name, place, colour, ha="right", va=side)
    for size, value, faster in zip(models, each, together["times_faster"], strict=True):
        label = f"{faster:.1f}×"
        ax.annotate(
            label, (size, value), (0, -14), textcoords="offset points", ha="center", fontsize=8
        )
    style.log_axis(ax, "x", models.tolist())
    ax.set(xlabel=f"Models trained together on {together['devices'][0]:.0f} cores")
    ax.set(ylabel="Time for each model (ms)", ylim=(0, 1.2 * tallest), title=TITLE)
    return figure
