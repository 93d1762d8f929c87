"""Which noise for k queries: error at one total budget, where the designs cross, and a map of k*.

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

from dpjax import crossover, theory
from dpjax.accounting import calibrate, exact, gaussian, loss, rdp
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

COLUMNS = (
    "part",  # curve, crossing or map
    "design",  # of the curve; the challenger of a crossing
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
NUM_QUERIES = np.arange(1, 101)
SIMULATED = (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100)
MAP_EPSILONS = np.array([float(f"{10 ** (i / 20):.4g}") for i in range(-40, 21)])
MAP_DELTAS = np.array([float(f"{10 ** (i / 4):.4g}") for i in range(-48, -7)])


class Design(NamedTuple):
    """A mechanism with the way its budget is counted, and its look."""

    name: str
    mechanism: str
    colour: str
    line: str | tuple
    marker: str
    nudge: float  # of the name, in points, where curves end close together


DESIGNS = {
    "laplace_basic": Design("Laplace, basic", "laplace", style.LAPLACE, "-", "o", 0),
    "laplace_renyi": Design("Laplace, Rényi", "laplace", style.LAPLACE, (0, (2.5, 1)), "D", 4),
    "gaussian_renyi_classic": Design(
        "Gaussian, Rényi classic", "gaussian", style.CUSTOMARY, (0, (5, 1.5)), "^", 1
    ),
    "gaussian_renyi_improved": Design(
        "Gaussian, Rényi improved", "gaussian", style.MIDDLE, (0, (2.5, 1)), "v", 0
    ),
    "gaussian_exact": Design("Gaussian, exact", "gaussian", style.GAUSSIAN, "-", "s", -4),
}
LAWS = {"laplace": theory.Laplace, "gaussian": theory.Gaussian}
RENYI = {name: partial(rdp.epsilon, conversion=name) for name in ("classic", "improved")}


def scale(design: str, num_queries: np.ndarray) -> np.ndarray:
    """Noise scale of each of k queries of sensitivity 1, for all of them to cost (1, 1e-5)."""
    if design == "laplace_basic":
        return num_queries / EPSILON
    if design == "laplace_renyi":
        return calibrate.noise_multiplier(
            lambda m: num_queries * loss.laplace(m), EPSILON, DELTA, accountant=RENYI["improved"]
        )
    accountant = {
        "gaussian_renyi_classic": RENYI["classic"],
        "gaussian_renyi_improved": RENYI["improved"],
        "gaussian_exact": exact.epsilon,
    }[design]
    # k Gaussian losses of multiplier sqrt(k) z are one of multiplier z, for every accountant here
    one = calibrate.noise_multiplier(loss.gaussian, EPSILON, DELTA, accountant=accountant)
    return np.sqrt(num_queries) * one


def rmse(design: str, num_queries: np.ndarray) -> np.ndarray:
    """RMSE of each of k queries by the law."""
    return LAWS[DESIGNS[design].mechanism](scale(design, num_queries)).rmse


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """Curves with simulated points, the crossings, and the map."""
    from experiments import simulation  # here, so that a redraw needs no JAX

    empty: dict[str, Cell] = dict.fromkeys(COLUMNS)
    rows, done, steps = [], 0, len(DESIGNS) * len(SIMULATED)
    for design, (_, mechanism, *_) in DESIGNS.items():
        scales = scale(design, NUM_QUERIES)
        for num_queries, noise in zip(NUM_QUERIES, scales, strict=True):
            row = empty | {
                "part": "curve",
                "design": design,
                "epsilon": EPSILON,
                "delta": DELTA,
                "num_queries": int(num_queries),
                "rmse_theory": float(LAWS[mechanism](noise).rmse),
            }
            if num_queries in SIMULATED:
                point = {"design": design, "num_queries": int(num_queries)}
                key = simulation.point_key(seed, "crossover", point)
                error = simulation.noise(key, mechanism, float(noise), trials)
                row |= {"trials": trials, "rmse": float(error.rmse)}
                row |= {"rmse_standard_error": float(error.rmse_standard_error)}
                done += 1
                progress(done, steps)
            rows.append(row)
    rows += [empty | row for row in _crossings()]
    rows += [empty | row for row in _map()]
    return rows


def _crossings() -> list[dict[str, Cell]]:
    """Where each Gaussian design overtakes each Laplace design."""
    rows = []
    for incumbent in ("laplace_basic", "laplace_renyi"):
        for design in ("gaussian_renyi_classic", "gaussian_renyi_improved", "gaussian_exact"):
            found = crossover(partial(rmse, incumbent), partial(rmse, design))
            rows.append(
                {
                    "part": "crossing",
                    "design": design,
                    "incumbent": incumbent,
                    "epsilon": EPSILON,
                    "delta": DELTA,
                    "k_star": found.k_star if incumbent == "laplace_basic" else None,
                    "first_integer": found.first_integer,
                }
            )
    return rows


def _map() -> list[dict[str, Cell]]:
    """Where the exact Gaussian overtakes the basic Laplace, over (epsilon, delta)."""
    epsilon, delta = np.meshgrid(MAP_EPSILONS, MAP_DELTAS)
    one = gaussian.noise_multiplier(epsilon, delta)
    k_star = (one * epsilon) ** 2 / 2  # sqrt(2) k / epsilon = sqrt(k) one
    return [
        {
            "part": "map",
            "design": "gaussian_exact",
            "incumbent": "laplace_basic",
            "epsilon": float(e),
            "delta": float(d),
            "k_star": float(k),
            "first_integer": int(np.floor(k)) + 1,
        }
        for e, d, k in zip(epsilon.flat, delta.flat, k_star.flat, strict=True)
    ]


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


def draw(table: Table) -> Figure:
    """The curves with their crossings, and the map of k*."""
    figure, axes = style.figure(9.6, 4.7, [["curves", "map"]], width_ratios=[1.55, 1])
    _draw_curves(axes["curves"], table)
    _draw_map(axes["map"], table)
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
        ax.annotate(
            look.name,
            end,
            (8, look.nudge),
            textcoords="offset points",
            va="center",
            color=look.colour,
            fontweight="bold",
            fontsize=8.5,
            annotation_clip=False,
        )
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
            color=look.colour,
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


def _draw_map(ax: Axes, table: Table) -> None:
    """Lines of equal k* over (epsilon, delta), with the article's budget marked."""
    rows = table.where(part="map")
    shape = (len(np.unique(rows["delta"])), len(np.unique(rows["epsilon"])))
    # Contours are straight between grid points, so they are made in the logarithms.
    epsilon = np.log10(rows["epsilon"]).reshape(shape)
    delta = np.log10(rows["delta"]).reshape(shape)
    k_star = rows["k_star"].reshape(shape)
    levels = [1, 2, 3, 4, 5, 7, 10, 15, 20]
    shades = [style.shade(style.GAUSSIAN, 0.04 + 0.5 * i / len(levels)) for i in range(10)]
    ax.contourf(epsilon, delta, k_star, levels, colors=shades, extend="both")
    lines = ax.contour(epsilon, delta, k_star, levels, colors=style.GAUSSIAN, linewidths=0.8)
    ax.clabel(lines, fontsize=8, fmt="%g")
    here = table.where(part="crossing", incumbent="laplace_basic", design="gaussian_exact")
    at = (np.log10(here["epsilon"][0]), np.log10(here["delta"][0]))
    ax.plot(*at, "o", ms=6.5, color=style.GAUSSIAN, mec="white", mew=1.1)
    ax.annotate(
        f"{here['k_star'][0]:.2f}", at, (5, 4), textcoords="offset points", fontweight="bold"
    )
    ax.set_xticks([-2, -1, 0, 1], ["0.01", "0.1", "1", "10"])
    ax.set_yticks(range(-12, -1, 2), [f"$10^{{{power}}}$" for power in range(-12, -1, 2)])
    ax.grid(visible=False)
    ax.set(xlabel="Total ε", ylabel="Total δ")
    ax.set_title("Gaussian leads from k* queries")
    ax.text(-1.9, -11.8, "RMSE; Gaussian/exact\nagainst Laplace/basic", fontsize=8)
