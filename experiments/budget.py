"""Epsilon consumed by k queries at fixed noise, as each accountant counts it at one total delta."""

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpjax import theory
from dpjax.accounting import basic, exact, loss, rdp
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "The budget that queries use up"
COLUMNS = ("mechanism", "accountant", "num_queries", "delta", "noise_multiplier", "epsilon")
# Both mechanisms answer each query with the same RMSE: that of Laplace noise at epsilon 0.1.
LAPLACE = 10.0
NOISE_MULTIPLIER = {"laplace": LAPLACE, "gaussian": float(theory.Laplace(LAPLACE).rmse)}
SETTING = (
    "k counts of the same people are answered with noise of a fixed size, an RMSE of"
    f" {NOISE_MULTIPLIER['gaussian']:.1f} people each. How much epsilon is used up after k answers,"
    " by each accountant?"
)
LOSS = {"laplace": loss.laplace, "gaussian": loss.gaussian}
NUM_QUERIES = np.unique(np.round(10 ** np.linspace(0, 4, 81)).astype(int))
ACCOUNTANTS = {
    "basic": basic.epsilon,
    "advanced": basic.advanced,
    "renyi_classic": partial(rdp.epsilon, conversion="classic"),
    "renyi_improved": partial(rdp.epsilon, conversion="improved"),
    "exact": exact.epsilon,
}


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each mechanism, accountant and number of queries; nothing is simulated."""
    rows = []
    for mechanism, noise_multiplier in NOISE_MULTIPLIER.items():
        for accountant, epsilon_of in ACCOUNTANTS.items():
            queries = NUM_QUERIES * LOSS[mechanism](noise_multiplier)
            epsilons = epsilon_of(queries, article.DELTA)
            for num_queries, epsilon in zip(NUM_QUERIES, epsilons, strict=True):
                rows.append(
                    {
                        "mechanism": mechanism,
                        "accountant": accountant,
                        "num_queries": int(num_queries),
                        "delta": article.DELTA,
                        "noise_multiplier": noise_multiplier,
                        "epsilon": float(epsilon),
                    }
                )
            progress(len(rows) // len(NUM_QUERIES), len(LOSS) * len(ACCOUNTANTS))
    return rows


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    epsilon = {
        (mechanism, accountant): table.where(mechanism=mechanism, accountant=accountant)["epsilon"]
        for mechanism in LOSS
        for accountant in ACCOUNTANTS
    }
    exactly, improved, basically = (
        np.concatenate([epsilon[mechanism, accountant] for mechanism in LOSS])
        for accountant in ("exact", "renyi_improved", "basic")
    )
    most = np.max(improved / exactly) - 1
    hundred = table.where(num_queries=100)

    def after(mechanism: str, accountant: str) -> str:
        row = hundred.where(mechanism=mechanism, accountant=accountant)
        return f"{row['epsilon'][0]:.3g}"

    return (
        "After a hundred answers with Laplace noise basic composition counts epsilon"
        f" {after('laplace', 'basic')} where {after('laplace', 'exact')} is true; with Gaussian"
        f" noise of the same error {after('gaussian', 'exact')} is true, all at delta"
        f" {article.DELTA:g}. Rényi accounting with the improved conversion overstates epsilon by"
        f" at most {most:.0%} here, basic composition up to {np.max(basically / exactly):.0f}"
        " times. Fix the number of queries beforehand, and let a tight accountant count."
    )


def report(table: Table) -> str:
    """Epsilon after some numbers of queries."""
    shown = [k for k in (1, 10, 100, 1000, 10_000) if k in table["num_queries"]]
    lines = [
        f"Epsilon consumed at delta {article.DELTA:g} by k queries of RMSE"
        f" {NOISE_MULTIPLIER['gaussian']:.2f} (Gaussian: basic splits delta over the k queries,"
        " advanced half over them and half as slack)",
        f"{'mechanism':10} {'accountant':15}" + "".join(f"{f'k = {k}':>11}" for k in shown),
    ]
    for mechanism in LOSS:
        for accountant in ACCOUNTANTS:
            rows = table.where(mechanism=mechanism, accountant=accountant)
            values = [rows.where(num_queries=k)["epsilon"][0] for k in shown]
            lines.append(
                f"{mechanism:10} {accountant:15}" + "".join(f"{value:11.4g}" for value in values)
            )
    return "\n".join(lines)


LINES = {  # style and width: the tighter, the heavier
    "basic": ((0, (1, 1.2)), 1.3),
    "advanced": ((0, (4, 1.5, 1, 1.5)), 1.3),
    "renyi_classic": ((0, (5, 2)), 1.3),
    "renyi_improved": ((0, (2.5, 1)), 1.5),
    "exact": ("-", 2.0),
}
COLOUR = {"laplace": style.LAPLACE, "gaussian": style.GAUSSIAN}


def draw(table: Table) -> Figure:
    """Epsilon against k above, over the exact epsilon below; Laplace left, Gaussian right."""
    mosaic = [[f"{row} {mechanism}" for mechanism in LOSS] for row in ("epsilon", "ratio")]
    figure, axes = style.figure(7.6, 6.2, mosaic, height_ratios=[1.6, 1])
    for mechanism, multiplier in NOISE_MULTIPLIER.items():
        above, below = axes[f"epsilon {mechanism}"], axes[f"ratio {mechanism}"]
        exact_epsilon = table.where(mechanism=mechanism, accountant="exact")["epsilon"]
        for accountant, (line, width) in LINES.items():
            rows = table.where(mechanism=mechanism, accountant=accountant)
            look = {"color": COLOUR[mechanism], "ls": line, "lw": width}
            above.plot(rows["num_queries"], rows["epsilon"], **look)
            below.plot(rows["num_queries"], rows["epsilon"] / exact_epsilon, **look)
        for ax in (above, below):
            style.log_axis(ax, "x", (1, 10, 100, 1000, 10_000))
            ax.set(xlim=(0.93, 10_800))
        style.log_axis(above, "y", (0.1, 1, 10, 100, 1000))
        above.set(ylim=(0.08, 4500))
        below.set(ylim=(0.94, 2.06), yticks=[1, 1.25, 1.5, 1.75, 2], xlabel="Number of queries k")
        above.set_title(f"{mechanism.capitalize()} noise of scale {multiplier:.4g}")
    axes["epsilon laplace"].set_ylabel("ε of all k queries, at δ = $10^{-5}$")
    axes["ratio laplace"].set_ylabel("ε over the exact ε")
    _name_curves(axes, table)
    return figure


def _name_curves(axes: dict[str, Axes], table: Table) -> None:
    """The accountants' names along their curves, where these lie apart."""

    def along(panel: str, accountant: str, k: float, text: str, lift: float) -> None:
        row, mechanism = panel.split()
        rows = table.where(mechanism=mechanism, accountant=accountant)
        y = rows["epsilon"]
        if row == "ratio":
            y = y / table.where(mechanism=mechanism, accountant="exact")["epsilon"]
        log_k = np.log(rows["num_queries"])
        at = np.interp(np.log(k), log_k, y)
        slope = np.interp(np.log(k), log_k, np.gradient(y, log_k)) / k
        at, slope = (at * lift, slope * lift) if row == "epsilon" else (at + lift, slope)
        look = {"fontsize": 8, "fontweight": "normal"}
        style.name(axes[panel], text, (k, at), COLOUR[mechanism], slope=slope, **look)

    along("epsilon laplace", "basic", 90, "basic", 1.35)
    along("epsilon laplace", "advanced", 1.15, "advanced", 1.25)
    along("epsilon laplace", "exact", 110, "Rényi, exact", 0.52)
    along("epsilon gaussian", "basic", 260, "basic: δ/k a query", 1.35)
    along("epsilon gaussian", "advanced", 1.15, "advanced: δ/2 for the queries", 1.25)
    along("epsilon gaussian", "exact", 60, "Rényi, exact", 0.52)
    along("ratio laplace", "basic", 31, "basic", 0.12)
    along("ratio laplace", "advanced", 300, "advanced", -0.085)
    along("ratio laplace", "renyi_classic", 60, "Rényi, classic", 0.03)
    along("ratio laplace", "renyi_improved", 60, "improved", 0.02)
    along("ratio laplace", "exact", 1.2, "exact", 0.02)
    along("ratio gaussian", "basic", 2.3, "basic", 0.19)
    along("ratio gaussian", "renyi_classic", 30, "Rényi, classic", 0.03)
    along("ratio gaussian", "renyi_improved", 30, "improved", 0.03)
    along("ratio gaussian", "exact", 30, "exact", 0.02)
