"""How common is one of 16 answers: error against the number of people, local against central.

Central: a trusted curator adds Laplace noise of scale 1 / epsilon to the count. Local: each person
randomizes an answer at the same epsilon, and the frequency is estimated from the reports.
"""

from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from dpjax import theory
from experiments import style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "Local against central: the price of trusting nobody"
SETTING = (
    "How common is one of 16 answers, which 10% of the people give, at epsilon 1? Either a trusted"
    " curator adds noise to the count, or each person randomizes the answer before handing it over."
)
COLUMNS = (
    "part",  # curve, simulated or needed: the people for an RMSE of TARGET
    "mechanism",
    "epsilon",
    "people",
    "rmse_theory",  # of the estimated frequency
    "trials",  # surveys
    "rmse",
    "rmse_standard_error",
)
EPSILON = 1.0
CATEGORIES = 16
FREQUENCY = 0.1  # of the answer asked for
TARGET = 0.01
PEOPLE = np.unique(np.round(10 ** np.linspace(1, 6, 51)).astype(int))
SIMULATED = (100, 10_000)
CENTRAL = (10, 100, 1000, 10_000, 100_000, 1_000_000)
LOCAL = {
    "randomized_response": theory.local.randomized_response(1 / EPSILON),  # asked: this one or not
    "k_ary_response": theory.local.k_ary_response(1 / EPSILON, CATEGORIES),
    "optimized_unary": theory.local.optimized_unary(1 / EPSILON),
}
MECHANISMS = ("laplace", *LOCAL)


def rmse(mechanism: str, people: ArrayLike) -> np.ndarray:
    """RMSE of the estimated frequency by the law."""
    if mechanism == "laplace":
        return np.asarray(theory.Laplace(1 / EPSILON).rmse / np.asarray(people))
    return np.sqrt(LOCAL[mechanism].variance(FREQUENCY) / np.asarray(people))


def needed(mechanism: str, target: float) -> float:
    """How many people give that RMSE."""
    if mechanism == "laplace":
        return float(rmse("laplace", 1) / target)
    return float((rmse(mechanism, 1) / target) ** 2)


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """The laws, the people needed, and simulated surveys of about `trials` reports in all."""
    rows = [_row("curve", mechanism, n) for mechanism in MECHANISMS for n in PEOPLE]
    rows += [_row("needed", mechanism, needed(mechanism, TARGET)) for mechanism in MECHANISMS]
    points = [("laplace", n) for n in CENTRAL] + [(m, n) for m in LOCAL for n in SIMULATED]
    for done, (mechanism, people) in enumerate(points, 1):
        rows.append(_simulated(mechanism, people, trials, seed))
        progress(done, len(points))
    return rows


def _row(part: str, mechanism: str, people: float, **cells: Cell) -> dict[str, Cell]:
    """One row, with the law's error."""
    return dict.fromkeys(COLUMNS) | {
        "part": part,
        "mechanism": mechanism,
        "epsilon": EPSILON,
        "people": float(people),
        "rmse_theory": float(rmse(mechanism, people)),
        **cells,
    }


def _simulated(mechanism: str, people: int, trials: int, seed: int) -> dict[str, Cell]:
    """Surveys of so many people; those of 100 or more, as many as there are trials to give."""
    import dpjax  # here, so that a redraw needs no JAX
    from experiments import simulation

    point: dict[str, str | float] = {"mechanism": mechanism, "people": people}
    key = simulation.point_key(seed, "local_versus_central", point)
    if mechanism == "laplace":
        release = partial(dpjax.laplace, scale=np.float32(1 / EPSILON / people))
        surveys, found = trials, dpjax.simulate(key, release, 0.0, trials)
    else:
        surveys = max(trials // people, 100)
        release = partial(getattr(dpjax, mechanism), scale=np.float32(1 / EPSILON))
        if mechanism == "k_ary_response":
            release = partial(release, num_categories=CATEGORIES)
        measure = partial(estimate, mechanism)
        found = dpjax.simulate(key, release, answers(mechanism, people), surveys, measure=measure)
    return _row("simulated", mechanism, people) | {
        "trials": surveys,
        "rmse": float(found.rmse),
        "rmse_standard_error": float(found.rmse_standard_error),
    }


def answers(mechanism: str, people: int) -> np.ndarray:
    """What people would say: a tenth the answer asked for, all others one of the rest in turn."""
    asked = np.arange(people) < round(FREQUENCY * people)
    category = np.where(asked, 0, 1 + np.arange(people) % (CATEGORIES - 1))
    if mechanism == "randomized_response":
        return asked
    if mechanism == "k_ary_response":
        return category.astype(np.int32)
    return category[:, None] == np.arange(CATEGORIES)


def estimate(mechanism: str, reports, value):
    """The error of the frequency estimated from a survey's reports."""
    import jax.numpy as jnp

    from dpjax import postprocess

    if mechanism == "k_ary_response":
        reports = reports == 0
    elif mechanism == "optimized_unary":
        reports = reports[..., 0]
    share = jnp.mean(reports, axis=-1, dtype=np.float32)
    return postprocess.debiased_frequency(share, law=LOCAL[mechanism]) - FREQUENCY


def report(table: Table) -> str:
    """Error at some numbers of people, and the people that one percent needs."""
    shown = [n for n in (100, 1000, 10_000, 100_000, 1_000_000) if n in table["people"]]
    lines = [
        f"RMSE of the frequency ({FREQUENCY:g}) of one of {CATEGORIES} answers at epsilon"
        f" {EPSILON:g}, and the people for an RMSE of {TARGET:g}",
        f"{'mechanism':20}" + "".join(f"{n:>11,}" for n in shown) + f"{'needed':>11}",
    ]
    for mechanism in MECHANISMS:
        curve = table.where(part="curve", mechanism=mechanism)
        values = [curve.where(people=n)["rmse_theory"][0] for n in shown]
        people = table.where(part="needed", mechanism=mechanism)["people"][0]
        lines.append(
            f"{mechanism:20}"
            + "".join(f"{value:11.3g}" for value in values)
            + f"{np.ceil(people):11,.0f}"
        )
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    rows = table.where(part="needed")
    people = {
        mechanism: f"{np.ceil(number):,.0f}"
        for mechanism, number in zip(rows["mechanism"], rows["people"], strict=True)
    }
    return (
        "For an error of one percentage point (RMSE) a trusted curator needs"
        f" {people['laplace']} people. Randomized response to a yes-or-no question needs"
        f" {people['randomized_response']} and optimized unary encoding of all {CATEGORIES} answers"
        f" {people['optimized_unary']}, and the gap widens with more people. Collect data locally"
        " only where nobody can be trusted with them."
    )


LOOK = {  # name, colour, marker
    "laplace": ("central: Laplace", style.LAPLACE, "o"),
    "randomized_response": ("randomized response (yes or no)", style.CUSTOMARY, "v"),
    "optimized_unary": ("optimized unary encoding", style.GAUSSIAN, "s"),
    "k_ary_response": ("16-ary response", style.MIDDLE, "^"),
}
PLACES = {  # of the names: people, lift
    "laplace": (2_000, 1.35),
    "randomized_response": (14, 0.57),
    "optimized_unary": (130, 0.68),
    "k_ary_response": (130, 1.25),
}


def draw(table: Table) -> Figure:
    """RMSE against the number of people; the people that the target needs."""
    figure, axes = style.figure(7.2, 5.0, [["error"]])
    ax = axes["error"]
    ax.axhline(100 * TARGET, color=style.MUTED, lw=0.8, ls=(0, (2, 2)))
    for mechanism, (name, colour, marker) in LOOK.items():
        curve = table.where(part="curve", mechanism=mechanism)
        ax.plot(curve["people"], 100 * curve["rmse_theory"], color=colour)
        points = table.where(part="simulated", mechanism=mechanism)
        ax.errorbar(
            points["people"],
            100 * points["rmse"],
            100 * points["rmse_standard_error"],
            **style.points(colour, marker, size=4),
        )
        place, lift = PLACES[mechanism]
        value = 100 * float(rmse(mechanism, place))
        slope = -value * lift / place * (1 if mechanism == "laplace" else 0.5)
        people = table.where(part="needed", mechanism=mechanism)["people"][0]
        name = f"{name}: {np.ceil(people):,.0f}"
        style.name(ax, name, (place, value * lift), colour, slope=slope, fontsize=8)
        ax.plot(people, 100 * TARGET, "o", ms=7, mfc=colour, mec="white", mew=1.2, zorder=4)
    style.log_axis(ax, "x", (10, 100, 1000, 10_000, 100_000, 1_000_000))
    style.log_axis(ax, "y", (0.001, 0.01, 0.1, 1, 10, 100))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.set(xlim=(9, 1.1e6), ylim=(1e-4, 300), xlabel="People")
    ax.set_ylabel("RMSE of the estimated frequency (%), ε = 1")
    ax.set_title("What it costs to trust nobody: one of 16 answers, true of 10 %")
    trials = style.power(table.where(part="simulated", mechanism="laplace")["trials"][0])
    what = f"lines: theory; points: simulated, {trials} reports each"
    style.note(ax, f"{what}\nfilled, and in numbers: people for an RMSE of 1 %")
    return figure
