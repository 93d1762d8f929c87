"""Which noise for k queries: error at one total budget, where designs cross, and maps of who leads.

A count is asked k times (or k counts that one person can all change by 1) at a total of epsilon and
delta. Laplace noise under basic composition costs an RMSE proportional to k, Gaussian noise one
proportional to sqrt(k): few queries favour Laplace, many favour Gaussian, and how the budget is
counted decides from where.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpjax import curves, theory
from dpjax.accounting import basic, exact, rdp
from dpjax.crossover import crossover
from experiments import article, style
from experiments import crossover_maps as maps
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "Which noise for your number of queries"
SETTING = (
    "k counts that one person can all change share one total budget: epsilon 1 and delta 1e-5 in"
    " the upper plot, the budget on the axes below. Which noise gives each answer the smaller"
    " error?"
)
COLUMNS = (
    "part",  # curve, crossing, map, leader or boundary
    "design",  # of the curve; the challenger of a crossing or boundary; who leads
    "incumbent",
    "epsilon",
    "delta",
    "num_queries",
    "rmse_theory",
    "trials",
    "rmse",
    "rmse_standard_error",
    "k_star",  # empty where the curve is only known at whole k, or does not cross
    "first_integer",
)
EPSILON, DELTA = 1.0, article.DELTA
UP_TO = maps.UP_TO  # queries: the end of the curves, and of what "stays better" says
SIMULATED = (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100)


class Design(NamedTuple):
    """A mechanism with the way its budget is counted, and its look."""

    name: str
    mechanism: str
    colour: str
    line: str | tuple
    marker: str
    nudge: float  # of the name, in points, where curves end close together
    label: str | None = None  # at the curve's end, if not the name; none where two curves share it


DESIGNS = {
    "laplace_basic": Design("Laplace, basic", "laplace", style.LAPLACE, "-", "o", 0),
    "laplace_optimal": Design(
        "Laplace, optimal",
        "laplace",
        style.LAPLACE,
        (0, (2.5, 1)),
        "D",
        8,
        "Laplace, optimal and exact",
    ),
    "laplace_exact": Design("Laplace, exact", "laplace", style.LAPLACE, (0, (1, 1)), "P", 0, ""),
    "gaussian_renyi_classic": Design(
        "Gaussian, Rényi classic", "gaussian", style.CUSTOMARY, (0, (5, 1.5)), "^", -1
    ),
    "gaussian_renyi_improved": Design(
        "Gaussian, Rényi improved", "gaussian", style.MIDDLE, (0, (2.5, 1)), "v", 0
    ),
    "gaussian_exact": Design("Gaussian, exact", "gaussian", style.GAUSSIAN, "-", "s", -4),
}
LAWS = {"laplace": theory.Laplace, "gaussian": theory.Gaussian}


def error_curves() -> dict[str, curves.ErrorCurve]:
    """RMSE of each of k queries of sensitivity 1, all k at a total of EPSILON and DELTA."""
    classic = partial(rdp.epsilon, conversion="classic")
    improved = partial(rdp.epsilon, conversion="improved")
    return {
        "laplace_basic": curves.laplace_basic(EPSILON),
        "laplace_optimal": curves.calibrated("laplace", EPSILON, DELTA, accountant=basic.optimal),
        "laplace_exact": curves.calibrated("laplace", EPSILON, DELTA, accountant=exact.epsilon),
        "gaussian_renyi_classic": curves.gaussian(EPSILON, DELTA, accountant=classic),
        "gaussian_renyi_improved": curves.gaussian(EPSILON, DELTA, accountant=improved),
        "gaussian_exact": curves.gaussian(EPSILON, DELTA, accountant=exact.epsilon),
    }


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """Curves with simulated points, the crossings, and the map."""
    from experiments import simulation  # here, so that a redraw needs no JAX

    empty: dict[str, Cell] = dict.fromkeys(COLUMNS)
    rows, done, errors = [], 0, error_curves()
    for design, curve in errors.items():
        mechanism = DESIGNS[design].mechanism
        # exact Laplace is calibrated at a few points: it lies on the optimal curve, near enough
        num_queries = np.array(SIMULATED if design == "laplace_exact" else range(1, UP_TO + 1))
        for k, rmse in zip(num_queries.tolist(), curve(num_queries).tolist(), strict=True):
            row = empty | {
                "part": "curve",
                "design": design,
                "epsilon": EPSILON,
                "delta": DELTA,
                "num_queries": k,
                "rmse_theory": rmse,
            }
            if k in SIMULATED:
                scale = rmse / float(LAWS[mechanism](1.0).rmse)
                key = simulation.point_key(seed, "crossover", {"design": design, "num_queries": k})
                error = simulation.noise(key, mechanism, scale, trials)
                row |= {"trials": trials, "rmse": float(error.rmse)}
                row |= {"rmse_standard_error": float(error.rmse_standard_error)}
                done += 1
                progress(done, len(DESIGNS) * len(SIMULATED))
            rows.append(row)
    rows += [empty | row for row in _crossings(errors)]
    rows += [empty | row for row in (*maps.k_star(), *maps.leaders(), *maps.boundaries())]
    return rows


def _crossings(errors: dict[str, curves.ErrorCurve]) -> list[dict[str, Cell]]:
    """Where each Gaussian design overtakes each Laplace design."""
    rows = []
    for incumbent in ("laplace_basic", "laplace_optimal", "laplace_exact"):
        for design in ("gaussian_renyi_classic", "gaussian_renyi_improved", "gaussian_exact"):
            found = crossover(errors[incumbent], errors[design], up_to=UP_TO)
            rows.append(
                {
                    "part": "crossing",
                    "design": design,
                    "incumbent": incumbent,
                    "epsilon": EPSILON,
                    "delta": DELTA,
                    "k_star": found.k_star,
                    "first_integer": found.first_integer,
                }
            )
    return rows


def report(table: Table) -> str:
    """The crossings at the article's budget."""
    lines = [
        f"Number of queries k from which Gaussian noise has the lower RMSE, all k at a total of"
        f" epsilon {EPSILON:g}, delta {DELTA:g}",
        f"{'challenger':26} {'incumbent':16} {'k*':>8} {'first integer':>14}",
    ]
    crossings = table.where(part="crossing")
    for i in range(len(crossings)):
        k_star, first = crossings["k_star"][i], crossings["first_integer"][i]
        lines.append(
            f"{DESIGNS[crossings['design'][i]].name:26}"
            f" {DESIGNS[crossings['incumbent'][i]].name:16}"
            f" {'' if np.isnan(k_star) else f'{k_star:.3f}':>8}"
            f" {'none' if np.isnan(first) else f'{first:.0f}':>14}"
        )
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    first = {
        (incumbent, design): table.where(part="crossing", incumbent=incumbent, design=design)[
            "first_integer"
        ][0]
        for incumbent, design in (
            ("laplace_exact", "gaussian_exact"),
            ("laplace_basic", "gaussian_renyi_classic"),
        )
    }
    last = {
        design: table.where(part="curve", design=design, num_queries=UP_TO)["rmse_theory"][0]
        for design in ("laplace_basic", "laplace_exact", "gaussian_exact")
    }
    exactly = first["laplace_exact", "gaussian_exact"]
    return (
        f"At epsilon {EPSILON:g} Laplace noise has the smaller error up to {exactly - 1:.0f}"
        f" queries and Gaussian noise from {exactly:.0f} on, if exact accounting keeps both"
        " budgets; basic composition and the classic Rényi conversion put the change at"
        f" {first['laplace_basic', 'gaussian_renyi_classic']:.0f}. Take Laplace noise for few"
        f" queries and Gaussian noise for many: at {UP_TO} queries its error is"
        f" {last['gaussian_exact']:.0f}, against {last['laplace_exact']:.0f} for Laplace noise, or"
        f" {last['laplace_basic']:.0f} where that is counted by basic composition."
    )


def draw(table: Table) -> Figure:
    """The curves with their crossings, the map of the leader, and the map of k*."""
    figure, axes = style.figure(
        9.6,
        8.6,
        [["curves"] * 8 + ["."] * 2, ["leader"] * 5 + ["map"] * 5],
        height_ratios=[1.25, 1],
    )
    _draw_curves(axes["curves"], table)
    maps.draw_leaders(axes["leader"], table, DESIGNS)
    maps.draw_k_star(axes["map"], table)
    return figure


def _draw_curves(ax: Axes, table: Table) -> None:
    """Lines by the laws, points by simulation, and a drop line from each crossing to its k*."""
    curves = table.where(part="curve")
    for design, look in DESIGNS.items():
        rows = curves.where(design=design)
        ax.plot(rows["num_queries"], rows["rmse_theory"], color=look.colour, ls=look.line)
        points = rows.having("rmse")
        ax.errorbar(
            points["num_queries"],
            points["rmse"],
            points["rmse_standard_error"],
            **style.points(look.colour, look.marker, size=3.8),
        )
        end = (rows["num_queries"][-1], rows["rmse_theory"][-1])
        name = ax.annotate(
            look.name if look.label is None else look.label,
            end,
            (8, look.nudge),
            textcoords="offset points",
            va="center",
            color=style.legible(look.colour),
            fontweight="bold",
            fontsize=8.5,
            annotation_clip=False,
        )
        name.set_in_layout(False)  # it has the free column beside the plot
    crossings = table.where(part="crossing", incumbent="laplace_basic")
    for i, design in enumerate(crossings["design"]):
        k_star, look = crossings["k_star"][i], DESIGNS[design]
        at = np.sqrt(2) * k_star / EPSILON
        left = k_star == min(crossings["k_star"])
        ax.plot([k_star, k_star], [0.5, at], color=look.colour, lw=0.9)
        ax.plot(k_star, at, "o", ms=6.5, color=look.colour, mec="white", mew=1.1, zorder=5)
        ax.annotate(
            f"k* = {k_star:.2f}" if left else f"{k_star:.2f}",
            (k_star, 1.35),
            (-3 if left else 2.5, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            color=style.legible(look.colour),
            fontweight="bold",
            fontsize=8,
        )
    style.log_axis(ax, "x", (1, 2, 5, 10, 20, 50, 100))
    style.log_axis(ax, "y", (1, 2, 5, 10, 20, 50, 100))
    ax.set(xlim=(0.93, 108), ylim=(1.2, 170))
    ax.set_xlabel("Number of queries k")
    ax.set_ylabel(f"RMSE of each query, all k at ε = {EPSILON:g}, δ = $10^{{-5}}$")
    ax.set_title("Few queries favour Laplace, many favour Gaussian")
    trials = style.power(curves.having("trials")["trials"][0])
    ax.text(1, 120, f"lines: theory\npoints: simulated, {trials} trials each", **style.SMALL)
