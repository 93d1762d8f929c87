"""d counts of the same people at one budget: noise in each norm, and where Gaussian noise leads.

A person may be in all d counts: neighbours then differ by d in L1, sqrt(d) in L2 and 1 in the
largest entry, and each noise is scaled by the sensitivity in its own norm.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from dpjax import theory
from dpjax.accounting import gaussian
from dpjax.crossover import crossover
from dpjax.curves import ErrorCurve
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "Many counts of the same people"
SETTING = (
    "One person may be in all of d counts that are released at once, such as d yes-or-no questions"
    " to the same people, at a total of epsilon 1. The sensitivity is d in the L1 norm, √d in L2"
    " and 1 in L∞, and each noise is made for its own norm."
)
COLUMNS = (
    "part",  # curve, simulated or crossing
    "mechanism",
    "measure",
    "dimension",  # of a crossing: the first at which Gaussian noise is no worse
    "d_star",  # where the laws cross
    "epsilon",
    "delta",
    "scale",
    "trials",  # vectors
    "error_theory",
    "error",
    "error_standard_error",
)
EPSILON = 1.0
DIMENSIONS = np.arange(1, 101)
MEASURES = ("rmse", "mae")
SCALES: dict[str, Callable] = {  # sensitivity in the noise's own norm over epsilon
    "laplace": lambda d: d / EPSILON,
    "gaussian": lambda d: np.sqrt(d) * gaussian.noise_multiplier(EPSILON, article.DELTA),
    "l2_laplace": lambda d: np.sqrt(d) / EPSILON,
    "linf_laplace": lambda d: np.ones_like(d) / EPSILON,
}
LAWS: dict[str, Callable] = {
    "laplace": lambda scale, d: theory.Laplace(scale),
    "gaussian": lambda scale, d: theory.Gaussian(scale),
    "l2_laplace": theory.L2Laplace,
    "linf_laplace": theory.LinfLaplace,
}
# Entries of Laplace and Gaussian noise are independent: any one is simulated as one number. Those
# of the others share a length, so that whole vectors are drawn, each dimension compiled anew.
SIMULATED = {
    "laplace": (1, 2, 3, 5, 7, 9, 14, 20, 30, 50, 70, 100),
    "gaussian": (1, 2, 3, 5, 7, 9, 14, 20, 30, 50, 70, 100),
    "l2_laplace": (10,),
    "linf_laplace": (10,),
}


def error(mechanism: str, measure: str, dimension: ArrayLike) -> np.ndarray:
    """The error of each count by the law, in people; any real dimension for the first two."""
    d = np.asarray(dimension, np.float64)
    law = LAWS[mechanism](SCALES[mechanism](d), d)
    return np.broadcast_to(getattr(law, measure), d.shape)


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """The laws at every dimension, simulated points, and where Gaussian noise takes the lead."""
    rows = [
        _row("curve", mechanism, measure, dimension)
        for mechanism in LAWS
        for measure in MEASURES
        for dimension in DIMENSIONS.tolist()
    ]
    for incumbent in ("laplace", "l2_laplace", "linf_laplace"):
        rows += [_crossing(incumbent, measure) for measure in MEASURES]
    steps = sum(len(dimensions) for dimensions in SIMULATED.values())
    done = 0
    for mechanism, dimensions in SIMULATED.items():
        for dimension in dimensions:
            rows += _simulated(mechanism, dimension, trials, seed)
            progress(done := done + 1, steps)
    return rows


def _row(part: str, mechanism: str, measure: str, dimension: int, **cells: Cell) -> dict[str, Cell]:
    """One row, with the law's error."""
    d = np.float64(dimension)
    return dict.fromkeys(COLUMNS) | {
        "part": part,
        "mechanism": mechanism,
        "measure": measure,
        "dimension": int(dimension),
        "epsilon": EPSILON,
        "delta": article.DELTA if mechanism == "gaussian" else 0.0,
        "scale": float(SCALES[mechanism](d)),
        "error_theory": float(error(mechanism, measure, d)),
        **cells,
    }


def _crossing(incumbent: str, measure: str) -> dict[str, Cell]:
    """The dimension from which Gaussian noise has no more error than the incumbent."""
    real = incumbent == "laplace"
    curves = (
        ErrorCurve(partial(error, mechanism, measure), measure, real)
        for mechanism in (incumbent, "gaussian")
    )
    found = crossover(*curves, up_to=1000)
    assert found.first_integer is not None  # Gaussian noise grows like sqrt(d), all others like d
    return _row("crossing", incumbent, measure, found.first_integer, d_star=found.k_star)


def _simulated(mechanism: str, dimension: int, trials: int, seed: int) -> list[dict[str, Cell]]:
    """Both errors of one entry."""
    import dpjax  # here, so that a redraw needs no JAX
    from experiments import simulation

    point: dict[str, str | float] = {"mechanism": mechanism, "dimension": dimension}
    key = simulation.point_key(seed, "vector_queries", point)
    scale = np.float32(SCALES[mechanism](np.float64(dimension)))
    release = partial(getattr(dpjax, mechanism), scale=scale)
    if mechanism in ("laplace", "gaussian"):
        found = dpjax.simulate(key, release, 0.0, trials)
    else:
        found = dpjax.simulate(
            key, release, np.zeros(dimension, np.float32), trials, measure=first_entry
        )
    return [
        _row("simulated", mechanism, measure, dimension)
        | {
            "trials": trials,
            "error": float(getattr(found, measure)),
            "error_standard_error": float(getattr(found, f"{measure}_standard_error")),
        }
        for measure in MEASURES
    ]


def first_entry(answer, value):
    """The error of the first count: all have the same law."""
    return (answer - value)[..., 0]


def report(table: Table) -> str:
    """Errors at some dimensions, and where Gaussian noise leads."""
    shown = [d for d in (1, 2, 5, 10, 20, 50, 100) if d in table["dimension"]]
    lines = [
        f"Error of each of d counts of the same people at epsilon {EPSILON:g} in all (Gaussian:"
        f" delta {article.DELTA:g})",
        f"{'mechanism':13} {'measure':7}" + "".join(f"{f'd = {d}':>9}" for d in shown),
    ]
    for mechanism in LAWS:
        for measure in MEASURES:
            rows = table.where(part="curve", mechanism=mechanism, measure=measure)
            values = [rows.where(dimension=d)["error_theory"][0] for d in shown]
            lines.append(f"{mechanism:13} {measure:7}" + "".join(f"{v:9.4g}" for v in values))
    for measure in MEASURES:
        rows = table.where(part="crossing", measure=measure)
        leads = ", ".join(
            f"{mechanism} from d = {dimension:.0f}"
            for mechanism, dimension in zip(rows["mechanism"], rows["dimension"], strict=True)
        )
        lines.append(f"Gaussian leads by {measure.upper()} over {leads}")
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    rows = table.where(part="crossing")
    first = {
        (measure, mechanism): f"{dimension:.0f}"
        for measure, mechanism, dimension in zip(
            rows["measure"], rows["mechanism"], rows["dimension"], strict=True
        )
    }
    return (
        f"Gaussian noise at delta {article.DELTA:g} has a smaller error than Laplace noise from"
        f" d = {first['rmse', 'laplace']} counts by RMSE and from d = {first['mae', 'laplace']} by"
        " mean absolute error, so say which error matters before you choose. If no delta is"
        " allowed, take noise made for the L∞ norm (dotted), which Gaussian noise overtakes by"
        f" RMSE only at d = {first['rmse', 'linf_laplace']}."
    )


LOOK = {  # colour, marker, line
    "laplace": (style.LAPLACE, "o", "-"),
    "l2_laplace": (style.LAPLACE, "D", (0, (4, 1.5))),
    "linf_laplace": (style.LAPLACE, "v", (0, (1.5, 1))),
    "gaussian": (style.GAUSSIAN, "s", "-"),
}
NAMES = {
    "laplace": "Laplace, L1",
    "l2_laplace": "L2-Laplace",
    "linf_laplace": "L∞-Laplace",
    "gaussian": "Gaussian, L2",
}


def draw(table: Table) -> Figure:
    """Error against dimension by either measure, with the crossings."""
    figure, axes = style.figure(9.6, 4.3, [list(MEASURES)])
    for measure, ax in axes.items():
        _draw_measure(ax, table.where(measure=measure), measure)
    note = f"lines: theory\npoints: simulated, {style.power(_trials(table))} trials each"
    ax = axes["rmse"]
    ax.text(0.02, 0.98, note, transform=ax.transAxes, **style.SMALL)
    return figure


def _trials(table: Table) -> float:
    """Trials of each simulated point."""
    return table.where(part="simulated")["trials"][0]


def _draw_measure(ax: Axes, table: Table, measure: str) -> None:
    """The lines of the laws, simulated points, and a mark where Gaussian noise takes over."""
    ends = []
    for mechanism, (colour, marker, line) in LOOK.items():
        curve = table.where(part="curve", mechanism=mechanism)
        ax.plot(curve["dimension"], curve["error_theory"], color=colour, ls=line)
        points = table.where(part="simulated", mechanism=mechanism)
        ax.errorbar(
            points["dimension"],
            points["error"],
            points["error_standard_error"],
            **style.points(colour, marker, size=3.8),
        )
        ends.append((curve["error_theory"][-1], mechanism))
    for end, mechanism in ends:
        style.name(ax, NAMES[mechanism], (108, end), LOOK[mechanism][0], va="center")
    crossing = table.where(part="crossing", mechanism="laplace")
    d_star, first = crossing["d_star"][0], crossing["dimension"][0]
    at = float(error("laplace", measure, d_star))
    ax.plot([d_star, d_star], [0.01, at], color=style.GAUSSIAN, lw=1)
    ax.plot(d_star, at, "o", ms=8, mfc=style.GAUSSIAN, mec="white", mew=1.2, zorder=4)
    ax.annotate(
        f"d* = {d_star:.2f}\nagainst Laplace",
        (d_star, 1.05),
        (6, 0),
        textcoords="offset points",
        color=style.GAUSSIAN,
        fontsize=8,
    )
    style.log_axis(ax, "x", (1, 2, 5, 10, 20, 50, 100))
    style.log_axis(ax, "y", (1, 2, 5, 10, 20, 50, 100))
    ax.set(xlim=(0.93, 108), ylim=(0.9, 160), xlabel="Number of counts d, each with all people")
    ax.set_ylabel(f"{measure.upper()} of each count (people), ε = 1 in all")
    ax.set_title(f"By {measure.upper()} Gaussian noise leads from d = {first:.0f}")
