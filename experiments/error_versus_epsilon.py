"""RMSE of one count against epsilon: simulation over theory, and the article's table."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpjax import theory
from dpjax.accounting import gaussian
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "The error that a guarantee costs"
SETTING = (
    "A count of 1,000 made-up people, of whom 319 have the attribute, is released once with noise."
    " One person changes it by at most 1."
)
COLUMNS = (
    "design",
    "mechanism",
    "epsilon",
    "delta",  # the one asked for
    "true_delta",  # the one the scale really gives at this epsilon
    "scale",
    "trials",
    "rmse_theory",
    "rmse",
    "rmse_standard_error",
    "relative_rmse_theory",
    "relative_rmse",
    "relative_rmse_standard_error",
    "mae_theory",
    "mae",
    "mae_standard_error",
)
# 10 points a decade; the article's three epsilons are among them.
EPSILONS = np.array([float(f"{10 ** (i / 10):.4g}") for i in range(-12, 13)])
XLIM = (0.055, 18)
LAWS = {"laplace": theory.Laplace, "gaussian": theory.Gaussian}


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each design and epsilon; the sensitivity of a count is 1."""
    from experiments import simulation  # here, so that a redraw needs no JAX

    delta, count = article.DELTA, article.true_count()
    rows = []
    for design, mechanism, scales, true_delta in (
        ("laplace", "laplace", 1 / EPSILONS, np.zeros_like(EPSILONS)),
        (
            "gaussian_customary",
            "gaussian",
            gaussian.customary_noise_multiplier(EPSILONS, delta),
            gaussian.customary_delta(EPSILONS, delta),
        ),
        (
            "gaussian_exact",
            "gaussian",
            gaussian.noise_multiplier(EPSILONS, delta),
            np.full_like(EPSILONS, delta),
        ),
    ):
        for epsilon, scale, truth in zip(EPSILONS, scales, true_delta, strict=True):
            point = {"design": design, "epsilon": float(epsilon)}
            key = simulation.point_key(seed, "error_versus_epsilon", point)
            error = simulation.noise(key, mechanism, float(scale), trials)
            law = LAWS[mechanism](scale)
            rows.append(
                point
                | {
                    "mechanism": mechanism,
                    "delta": 0.0 if mechanism == "laplace" else delta,
                    "true_delta": float(truth),
                    "scale": float(scale),
                    "trials": trials,
                    "rmse_theory": float(law.rmse),
                    "rmse": float(error.rmse),
                    "rmse_standard_error": float(error.rmse_standard_error),
                    "relative_rmse_theory": float(law.rmse) / count,
                    "relative_rmse": float(error.rmse) / count,
                    "relative_rmse_standard_error": float(error.rmse_standard_error) / count,
                    "mae_theory": float(law.mae),
                    "mae": float(error.mae),
                    "mae_standard_error": float(error.mae_standard_error),
                }
            )
            progress(len(rows), 3 * len(EPSILONS))
    return rows


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    laplace = table.where(design="laplace", epsilon=1.0)
    gaussian_rows = table.where(design="gaussian_exact", epsilon=1.0)
    unsafe = float(gaussian.customary_unsafe_epsilon(article.DELTA))
    return (
        f"At epsilon 1 the noisy count is typically off by {digits(laplace['rmse'])} people (RMSE)"
        f" with Laplace noise and by {digits(gaussian_rows['rmse'])} with Gaussian noise at delta"
        f" {article.DELTA:g}; a tenth of the epsilon costs ten times the error with Laplace noise."
        " The customary Gaussian formula adds more noise than needed at small epsilon, and from"
        f" epsilon {unsafe:.2f} on less than its claim takes. Read off the epsilon at the error"
        " that you can bear, and calibrate Gaussian noise exactly."
    )


def report(table: Table) -> str:
    """The article's table: simulated, theory, and as the article prints it."""
    lines = [
        f"RMSE of one count, true count {article.true_count()}; Gaussian noise is the customary"
        f" sqrt(2 ln(1.25/delta))/epsilon at delta {article.DELTA:g}",
        f"{'mechanism':10} {'epsilon':>7} | {'simulated':>9} {'std. error':>10} {'theory':>8}"
        f" {'article':>8} | {'relative':>8}   {'theory':>8}   {'article':>7}",
    ]
    for design, mechanism in (("laplace", "laplace"), ("gaussian_customary", "gaussian")):
        for i, epsilon in enumerate(article.EPSILONS):
            row = table.where(design=design, epsilon=epsilon)
            lines.append(
                f"{mechanism:10} {epsilon:7g} | {digits(row['rmse']):>9}"
                f" {row['rmse_standard_error'][0]:10.1e} {digits(row['rmse_theory']):>8}"
                f" {article.PRINTED_RMSE[mechanism][i]:>8} |"
                f" {digits(100 * row['relative_rmse']):>8} %"
                f" {digits(100 * row['relative_rmse_theory']):>8} %"
                f" {article.PRINTED_RELATIVE[mechanism][i]:>9}".rstrip()
            )
    return "\n".join(lines)


def digits(column: np.ndarray) -> str:
    """The one value of a column, with four significant digits."""
    return format(column[0], "#.4g")


LOOK = {
    "laplace": ("Laplace", style.LAPLACE, "o"),
    "gaussian_exact": ("Gaussian, exact", style.GAUSSIAN, "s"),
    "gaussian_customary": ("Gaussian, customary", style.CUSTOMARY, "^"),
}


def draw(table: Table) -> Figure:
    """RMSE against epsilon; below, how far the simulation is from the law."""
    figure, axes = style.figure(7.2, 6.2, [["error"] * 3, list(LOOK)], height_ratios=[2.8, 1])
    _draw_error(axes["error"], table)
    for design, (name, colour, marker) in LOOK.items():
        rows, ax = table.where(design=design), axes[design]
        law = rows["rmse_theory"]
        ax.axhline(0, color=colour, lw=1.2)
        ax.errorbar(
            rows["epsilon"],
            100 * (rows["rmse"] / law - 1),
            100 * rows["rmse_standard_error"] / law,
            **style.points(colour, marker, size=3),
        )
        ax.set_title(name, fontsize=8.5, color=style.legible(colour), pad=4)
        style.log_axis(ax, "x", (0.1, 1, 10))
        ax.set(xlim=XLIM, xlabel="ε of one query")
        ax.tick_params(labelleft=design == "laplace")
    bound = max(abs(limit) for design in LOOK for limit in axes[design].get_ylim())
    for design in LOOK:
        axes[design].set_ylim(-bound, bound)
    axes["laplace"].set_ylabel("Simulated RMSE\nbeyond theory (%)")
    return figure


def _draw_error(ax: Axes, table: Table) -> None:
    """The lines of the laws, the simulated points, and the article's points with their values."""
    for design, (_, colour, marker) in LOOK.items():
        rows = table.where(design=design)
        kept = rows["true_delta"] <= rows["delta"] * (1 + 1e-6)
        ax.plot(rows["epsilon"], np.where(kept, rows["rmse_theory"], np.nan), color=colour)
        ax.plot(rows["epsilon"], rows["rmse_theory"], color=colour, ls=(0, (1, 1)))
        ax.errorbar(
            rows["epsilon"],
            rows["rmse"],
            rows["rmse_standard_error"],
            **style.points(colour, marker, size=3.6),
        )
    for design, shift, ha, va in (
        ("laplace", -5, "right", "top"),
        ("gaussian_customary", 5, "left", "bottom"),
    ):
        for epsilon in article.EPSILONS:
            row = table.where(design=design, epsilon=epsilon)
            at = (epsilon, row["rmse"][0])
            ax.plot(*at, "o", ms=9, mfc="none", mec=style.INK, mew=0.9)
            text = digits(row["rmse"])
            ax.annotate(text, at, (shift, shift), textcoords="offset points", ha=ha, va=va)
    style.log_axis(ax, "x", (0.1, 1, 10))
    style.log_axis(ax, "y", (0.1, 1, 10, 100))
    ax.set(xlim=XLIM, ylim=(0.06, 170), ylabel="RMSE of one count (people)")
    ax.set_xlabel("ε of one query (Laplace: δ = 0; Gaussian: δ = $10^{-5}$)")
    ax.set_title("One knob: the smaller the epsilon, the larger the error")
    style.note(
        ax, f"lines: theory; points: simulated, {style.power(table['trials'][0])} trials each"
    )

    def along(text: str, epsilon: float, rmse: float, colour: str) -> None:
        style.name(ax, text, (epsilon, rmse), colour, slope=-rmse / epsilon)

    along("Laplace", 0.25, 3.3, style.LAPLACE)
    along("Gaussian, exact calibration", 0.2, 10.4, style.GAUSSIAN)
    along("Gaussian, customary formula", 0.155, 38.5, style.CUSTOMARY)
    unsafe = float(gaussian.customary_unsafe_epsilon(article.DELTA))
    ax.annotate(
        f"customary formula\nunsafe from ε = {unsafe:.2f}\n(dotted)",
        (unsafe, float(gaussian.customary_noise_multiplier(unsafe, article.DELTA))),
        (7, 2.6),
        ha="center",
        fontsize=8,
        color=style.MUTED,
        arrowprops={"arrowstyle": "-", "color": style.MUTED, "lw": 0.7},
    )
    percent = article.true_count() / 100
    relative = ax.secondary_yaxis(
        "right",
        functions=(
            lambda people: np.asarray(people) / percent,
            lambda share: np.asarray(share) * percent,
        ),
    )
    style.log_axis(relative, "y", (0.1, 1, 10))
    relative.set_ylabel(f"RMSE over the true count, {article.true_count()} (%)")
