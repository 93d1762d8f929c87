"""The maps of the crossover: from how many queries Gaussian noise leads, and who leads where."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes

from dpjax import curves, theory
from dpjax.accounting import exact, rdp
from dpjax.crossover import crossover_map
from experiments import article, style
from experiments.table import Cell, Table

DELTA = article.DELTA
UP_TO = 100  # queries compared
EPSILONS = np.array([float(f"{10 ** (i / 20):.4g}") for i in range(-40, 21)])
DELTAS = np.array([float(f"{10 ** (i / 4):.4g}") for i in range(-48, -7)])
LEADER_EPSILONS = EPSILONS[::2]
LEADER_QUERIES = np.array([*range(1, 13), 14, 16, 18, 20])


class Look(Protocol):
    """How a design is drawn."""

    @property
    def colour(self) -> str: ...

    @property
    def line(self) -> Any: ...


def k_star() -> list[dict[str, Cell]]:
    """Where the exact Gaussian overtakes the basic Laplace, over (epsilon, delta)."""
    epsilon, delta = np.meshgrid(EPSILONS, DELTAS)
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


def leaders() -> list[dict[str, Cell]]:
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


def boundaries() -> list[dict[str, Cell]]:
    """Where each Gaussian design overtakes the basic Laplace, over epsilon."""
    rows = []
    for design, accountant in (
        ("gaussian_renyi_classic", partial(rdp.epsilon, conversion="classic")),
        ("gaussian_renyi_improved", rdp.epsilon),
        ("gaussian_exact", exact.epsilon),
    ):
        challenger = curves.gaussian(EPSILONS, DELTA, accountant=accountant)
        found = crossover_map(curves.laplace_basic(EPSILONS), challenger, up_to=UP_TO)
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
            for epsilon, k_star, first in zip(EPSILONS, *found, strict=True)
        ]
    return rows


def draw_leaders(ax: Axes, table: Table, looks: Mapping[str, Look]) -> None:
    """Who leads over (epsilon, k) by exact budgets, and where other accountants put the border."""
    cells = table.where(part="leader")
    epsilon, k = np.unique(cells["epsilon"]), np.unique(cells["num_queries"])
    leads = (cells["design"] == "laplace_exact").reshape(k.size, epsilon.size)
    ax.set_facecolor(style.shade(style.GAUSSIAN, 0.28))
    shade, ends = style.shade(style.LAPLACE, 0.38), _edges(epsilon)
    for low, high, row in zip(_edges(k)[:-1], _edges(k)[1:], leads, strict=True):
        changes = np.flatnonzero(np.diff([False, *row, False]))
        for start, stop in changes.reshape(-1, 2):  # runs of cells, and not each by itself
            ax.fill_betweenx([low, high], ends[start], ends[stop], color=shade, lw=0)
    for design, text, above in (
        ("gaussian_renyi_classic", "Rényi classic", True),
        ("gaussian_renyi_improved", "Rényi improved", True),
        ("gaussian_exact", "exact", False),
    ):
        look = looks[design]
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
    ax.set_title("The noise with the lower RMSE, δ = $\\mathbf{10^{-5}}$")
    ax.text(1.5, 2.6, "Laplace", color=style.INK, fontweight="bold", ha="center")
    ax.text(0.04, 7.5, "Gaussian", color=style.INK, fontweight="bold", ha="center")
    note = "areas: both by exact accounting\nlines: where Gaussian meets Laplace/basic"
    ax.text(0.0115, 1.08, note, fontsize=8)


def _edges(centres: np.ndarray) -> np.ndarray:
    """Edges of cells around centres, halfway in the logarithm."""
    logs = np.log(centres)
    middle = (logs[1:] + logs[:-1]) / 2
    return np.exp([2 * logs[0] - middle[0], *middle, 2 * logs[-1] - middle[-1]])


def draw_k_star(ax: Axes, table: Table) -> None:
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
