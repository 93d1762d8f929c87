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
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from dpjax import curves, theory
from dpjax.accounting import basic, exact, rdp
from dpjax.crossover import crossover, crossover_map
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "Which noise for your number of queries"
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
UP_TO = 100  # queries: the end of the curves, and of what "stays better" says
SIMULATED = (1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100)
MAP_EPSILONS = np.array([float(f"{10 ** (i / 20):.4g}") for i in range(-40, 21)])
MAP_DELTAS = np.array([float(f"{10 ** (i / 4):.4g}") for i in range(-48, -7)])
LEADER_EPSILONS = MAP_EPSILONS[::2]
LEADER_QUERIES = np.array([*range(1, 13), 14, 16, 18, 20])


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
    rows += [empty | row for row in (*_map(), *_leaders(), *_boundaries())]
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


def _map() -> list[dict[str, Cell]]:
    """Where the exact Gaussian overtakes the basic Laplace, over (epsilon, delta)."""
    epsilon, delta = np.meshgrid(MAP_EPSILONS, MAP_DELTAS)
    challenger = curves.gaussian(epsilon, delta, accountant=exact.epsilon)
    found = crossover_map(curves.laplace_basic(epsilon), challenger, up_to=UP_TO)
    first_query = challenger(np.ones((1, 1, 1)))[0]
    return [
        {
            "part": "map",
            "design": "gaussian_exact",
            "incumbent": "laplace_basic",
            "epsilon": float(e),
            "delta": float(d),
            "num_queries": 1,
            "rmse_theory": float(rmse),
            "k_star": None if np.isnan(k_star) else float(k_star),
            "first_integer": None if np.isnan(first) else int(first),
        }
        for e, d, rmse, k_star, first in zip(
            *(grid.flat for grid in (epsilon, delta, first_query, *found)), strict=True
        )
    ]


def _leaders() -> list[dict[str, Cell]]:
    """Which mechanism has the lower RMSE over (epsilon, k), both with their exact budgets."""
    k, epsilon = (
        axis.ravel() for axis in np.meshgrid(LEADER_QUERIES, LEADER_EPSILONS, indexing="ij")
    )
    gaussian = curves.gaussian(epsilon, DELTA, accountant=exact.epsilon)(k[None])[0]
    laplace = curves.laplace_basic(epsilon)(k[None])[0] <= gaussian
    open_cells = np.flatnonzero(~laplace)  # elsewhere it leads even by basic composition
    tight = curves.calibrated("laplace", epsilon[open_cells], DELTA, accountant=exact.epsilon)
    assert tight.allows is not None
    laplace[open_cells] = tight.allows(k[open_cells], gaussian[open_cells])
    return [
        {
            "part": "leader",
            "design": "laplace_exact" if leads else "gaussian_exact",
            "epsilon": float(e),
            "delta": DELTA,
            "num_queries": int(queries),
        }
        for e, queries, leads in zip(epsilon, k, laplace, strict=True)
    ]


def _boundaries() -> list[dict[str, Cell]]:
    """Where each Gaussian design overtakes the basic Laplace, over epsilon."""
    rows = []
    for design, accountant in (
        ("gaussian_renyi_classic", partial(rdp.epsilon, conversion="classic")),
        ("gaussian_renyi_improved", rdp.epsilon),
        ("gaussian_exact", exact.epsilon),
    ):
        challenger = curves.gaussian(MAP_EPSILONS, DELTA, accountant=accountant)
        found = crossover_map(curves.laplace_basic(MAP_EPSILONS), challenger, up_to=UP_TO)
        rows += [
            {
                "part": "boundary",
                "design": design,
                "incumbent": "laplace_basic",
                "epsilon": float(epsilon),
                "delta": DELTA,
                "k_star": None if np.isnan(k_star) else float(k_star),
                "first_integer": None if np.isnan(first) else int(first),
            }
            for epsilon, k_star, first in zip(MAP_EPSILONS, *found, strict=True)
        ]
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
    """What the figure shows, in two sentences."""
    first = {
        (incumbent, design): table.where(part="crossing", incumbent=incumbent, design=design)[
            "first_integer"
        ][0]
        for incumbent in ("laplace_basic", "laplace_exact")
        for design in ("gaussian_exact", "gaussian_renyi_classic")
    }
    last = {
        design: table.where(part="curve", design=design, num_queries=UP_TO)["rmse_theory"][0]
        for design in ("laplace_basic", "laplace_exact", "gaussian_exact")
    }
    exact = first["laplace_basic", "gaussian_exact"]
    classic = first["laplace_basic", "gaussian_renyi_classic"]
    return (
        f"At epsilon {EPSILON:g}, Gaussian noise has the lower error from query {exact:.0f} on by"
        f" exact accounting; the classic Rényi conversion would say {classic:.0f}. Exact accounting"
        f" of Laplace noise leaves that at {first['laplace_exact', 'gaussian_exact']:.0f}, but at"
        f" {UP_TO} queries it takes the error of Laplace noise from {last['laplace_basic']:.0f} to"
        f" {last['laplace_exact']:.0f}, against {last['gaussian_exact']:.0f} for Gaussian noise."
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
    _draw_leader(axes["leader"], table)
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
        name = ax.annotate(
            look.name if look.label is None else look.label,
            end,
            (8, look.nudge),
            textcoords="offset points",
            va="center",
            color=look.colour,
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


def _draw_leader(ax: Axes, table: Table) -> None:
    """Who leads over (epsilon, k) by exact budgets, and where other accountants put the border."""
    cells = table.where(part="leader")
    epsilon, k = np.unique(cells["epsilon"]), np.unique(cells["num_queries"])
    leads = (cells["design"] == "laplace_exact").reshape(k.size, epsilon.size)
    looks = [style.shade(style.GAUSSIAN, 0.28), style.shade(style.LAPLACE, 0.38)]
    ax.pcolormesh(_edges(epsilon), _edges(k), leads, cmap=ListedColormap(looks), vmin=0, vmax=1)
    for design, text, above in (
        ("gaussian_renyi_classic", "Rényi classic", True),
        ("gaussian_renyi_improved", "Rényi improved", True),
        ("gaussian_exact", "exact", False),
    ):
        look = DESIGNS[design]
        rows = table.where(part="boundary", design=design)
        x, y = rows["epsilon"], rows["k_star"]
        ax.plot(x, y, color=look.colour, ls=look.line)
        style.name(
            ax,
            text,
            (x[4], y[4] * (1.03 if above else 0.97)),
            look.colour,
            (y[5] - y[4]) / (x[5] - x[4]),
            fontsize=8,
            va="bottom" if above else "top",
        )
    style.log_axis(ax, "x", (0.01, 0.1, 1, 10))
    style.log_axis(ax, "y", (1, 2, 3, 5, 7, 10, 15, 20))
    ax.set(xlim=(epsilon[0], epsilon[-1]), ylim=(1, k[-1]))
    ax.set(xlabel="Total ε", ylabel="Number of queries k")
    ax.grid(visible=False)
    ax.set_title("The noise with the lower RMSE, δ = 1e-5")
    ax.text(1.5, 2.6, "Laplace", color=style.INK, fontweight="bold", ha="center")
    ax.text(0.04, 7.5, "Gaussian", color=style.INK, fontweight="bold", ha="center")
    note = "areas: both by exact accounting\nlines: where Gaussian meets Laplace/basic"
    ax.text(0.0115, 1.08, note, fontsize=8)


def _edges(centres: np.ndarray) -> np.ndarray:
    """Edges of cells around centres, halfway in the logarithm."""
    logs = np.log(centres)
    middle = (logs[1:] + logs[:-1]) / 2
    return np.exp([2 * logs[0] - middle[0], *middle, 2 * logs[-1] - middle[-1]])


def _draw_map(ax: Axes, table: Table) -> None:
    """Lines of equal k* over (epsilon, delta), with the article's budget marked."""
    rows = table.where(part="map")
    shape = (len(np.unique(rows["delta"])), len(np.unique(rows["epsilon"])))
    # Contours are straight between grid points, so they are made in the logarithms.
    epsilon = np.log10(rows["epsilon"]).reshape(shape)
    delta = np.log10(rows["delta"]).reshape(shape)
    # The laws are sqrt(k) and k times their values at k = 1, so they meet at the square of the
    # ratio of these: k* where that is 1 or more, and below 1 the Gaussian leads from the start.
    k_star = (rows["rmse_theory"] / theory.Laplace(1 / rows["epsilon"]).rmse).reshape(shape) ** 2
    levels = [1, 2, 3, 4, 5, 7, 10, 15, 20]
    shades = [style.shade(style.GAUSSIAN, 0.5 * i / len(levels)) for i in range(len(levels) + 1)]
    ax.contourf(epsilon, delta, k_star, levels, colors=shades, extend="both")
    lines = ax.contour(epsilon, delta, k_star, levels, colors=style.GAUSSIAN, linewidths=0.8)
    ax.clabel(lines, fontsize=8, fmt="%g")
    here = table.where(part="crossing", incumbent="laplace_basic", design="gaussian_exact")
    at = (np.log10(here["epsilon"][0]), np.log10(here["delta"][0]))
    ax.plot(*at, "o", ms=6.5, color=style.GAUSSIAN, mec="white", mew=1.1)
    ax.annotate(
        f"{here['k_star'][0]:.2f}", at, (7, -11), textcoords="offset points", fontweight="bold"
    )
    ax.set_xticks([-2, -1, 0, 1], ["0.01", "0.1", "1", "10"])
    ax.set_yticks(range(-12, -1, 2), [f"$10^{{{power}}}$" for power in range(-12, -1, 2)])
    ax.grid(visible=False)
    ax.set(xlabel="Total ε", ylabel="Total δ")
    ax.set_title("Gaussian leads from k* queries")
    ax.text(-1.9, -2.4, "from the\nfirst query", fontsize=8, va="center")
    ax.text(-1.9, -11.8, "RMSE; Gaussian/exact\nagainst Laplace/basic", fontsize=8)
