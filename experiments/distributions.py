"""Noisy answers at three epsilons: simulated histograms over the densities of the law."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from dpjax import theory
from dpjax.accounting import gaussian
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "The noisy answer at three epsilons"
SETTING = "The same count, whose true answer is 319, released again and again at three epsilons."
COLUMNS = (
    "mechanism",
    "epsilon",
    "delta",
    "scale",
    "trials",
    "low",  # the bin, in answers
    "high",
    "fraction",
    "fraction_standard_error",
    "fraction_theory",
)
# The bins in units of scale: as wide as the law is smooth, as far as the trials reach.
EDGES = {"laplace": np.linspace(-16, 16, 129), "gaussian": np.linspace(-5, 5, 81)}
LAWS = {"laplace": theory.Laplace, "gaussian": theory.Gaussian}
LOOK = {
    "laplace": ("Laplace", style.LAPLACE, "o"),
    "gaussian": ("Gaussian", style.GAUSSIAN, "s"),
}


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each mechanism, epsilon and bin; the noise scales are the article's."""
    from experiments import simulation  # here, so that a redraw needs no JAX

    count, rows = article.true_count(), []
    for done, (mechanism, epsilon) in enumerate(
        ((mechanism, epsilon) for mechanism in LOOK for epsilon in article.EPSILONS), start=1
    ):
        delta = 0.0 if mechanism == "laplace" else article.DELTA
        scale = 1 / epsilon
        if mechanism == "gaussian":
            scale = float(gaussian.customary_noise_multiplier(epsilon, delta))
        point = {"mechanism": mechanism, "epsilon": epsilon}
        key = simulation.point_key(seed, "distributions", point)
        edges = EDGES[mechanism]
        counts = simulation.histogram(key, mechanism, scale, trials, edges)
        expected = _fractions(LAWS[mechanism](1.0), edges)
        for low, high, seen, share in zip(edges[:-1], edges[1:], counts, expected, strict=True):
            fraction = float(seen) / trials
            rows.append(
                point
                | {
                    "delta": delta,
                    "scale": scale,
                    "trials": trials,
                    "low": count + scale * low,
                    "high": count + scale * high,
                    "fraction": fraction,
                    # of the law's fraction, so that an empty bin has a standard error too
                    "fraction_standard_error": float(np.sqrt(share * (1 - share) / trials)),
                    "fraction_theory": float(share),
                }
            )
        progress(done, len(LOOK) * len(article.EPSILONS))
    return rows


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    within = {
        (mechanism, epsilon): float(LAWS[mechanism](rows["scale"][0]).abs_quantile(0.95))
        for mechanism in LOOK
        for epsilon in article.EPSILONS
        if len(rows := table.where(mechanism=mechanism, epsilon=epsilon))
    }
    low, middle, high = (f"{within['laplace', epsilon]:.3g}" for epsilon in article.EPSILONS)
    return (
        f"Of the answers with Laplace noise 95% lie within ±{low} people of the truth at epsilon"
        f" {article.EPSILONS[0]:g}, within ±{middle} at {article.EPSILONS[1]:g} and ±{high} at"
        f" {article.EPSILONS[2]:g}; those by the customary Gaussian formula spread"
        f" {within['gaussian', 1.0] / within['laplace', 1.0]:.1f} times as far. Tell your readers"
        " such an interval with the answer: the lower row, on a logarithmic axis, shows that"
        " simulated answers keep to it far into the tails."
    )


def report(table: Table) -> str:
    """How far 95 % of the answers lie, and how the histograms fit the laws."""
    lines = [f"Noisy answers about the true count, {article.true_count()}"]
    for mechanism, (name, _, _) in LOOK.items():
        for epsilon in article.EPSILONS:
            rows = table.where(mechanism=mechanism, epsilon=epsilon)
            within = float(LAWS[mechanism](rows["scale"][0]).abs_quantile(0.95))
            full = rows["fraction_theory"] * rows["trials"] >= 100
            error = (rows["fraction"] - rows["fraction_theory"]) / rows["fraction_standard_error"]
            lines.append(
                f"{name:8} epsilon {epsilon:4g}: 95 % within ±{within:#.4g} by theory; in"
                f" {np.sum(full)} bins of 100 trials or more the histogram is"
                f" {np.max(np.abs(error[full]), initial=0):.2f} standard errors off at most"
            )
    return "\n".join(lines)


def draw(table: Table) -> Figure:
    """Above, the three epsilons on one axis of answers; below, each at its own scale, in log."""
    mosaic = [[f"{row} {e}" for e in article.EPSILONS] for row in ("answers", "tails")]
    figure, axes = style.figure(7.2, 5.2, mosaic, height_ratios=[1, 1.25])
    for epsilon in article.EPSILONS:
        answers, tails = axes[f"answers {epsilon}"], axes[f"tails {epsilon}"]
        for mechanism, (_, colour, marker) in LOOK.items():
            rows = table.where(mechanism=mechanism, epsilon=epsilon)
            law = LAWS[mechanism](rows["scale"][0])
            _draw_answers(answers, rows, law, colour)
            _draw_tails(tails, rows, law, colour, marker)
            within = float(law.abs_quantile(0.95))
            where = (0.97, 0.82 if mechanism == "laplace" else 0.71)
            style.name(
                answers, f"±{within:.3g}", where, colour, transform=answers.transAxes, ha="right"
            )
        answers.set_title(f"Answers at ε = {epsilon:g}")
        answers.text(0.97, 0.93, "95 % within", transform=answers.transAxes, ha="right", fontsize=8)
        tails.set_xlabel("Noisy answer (people)")
    first, true = article.EPSILONS[0], article.true_count()
    answers, tails = axes[f"answers {first}"], axes[f"tails {first}"]
    answers.set_ylabel("Density per person")
    tails.set_ylabel("Density per person, log scale")
    style.name(answers, "Laplace", (true - 16, 0.031), style.LAPLACE, ha="right")
    style.name(answers, "Gaussian", (203, 0.0175), style.GAUSSIAN)
    customary = {"fontsize": 7.5, "fontweight": "normal"}
    style.name(answers, "customary,\nδ = $10^{-5}$", (203, 0.0092), style.GAUSSIAN, **customary)
    trials = style.power(table["trials"][0])
    note = f"lines: theory\npoints: {trials}\ntrials, every\nthird bin"
    below: dict[str, Any] = style.SMALL | {"ha": "center", "va": "bottom"}
    tails.text(true, 6e-8, note, **below)
    return figure


def _draw_answers(ax: Axes, rows: Table, law: theory.Laplace | theory.Gaussian, colour) -> None:
    """The histogram, filled, under the density; the same stretch of answers for every epsilon."""
    count = article.true_count()
    density = rows["fraction"] / (rows["high"] - rows["low"])
    edges = np.append(rows["low"], rows["high"][-1])
    ax.stairs(density, edges, fill=True, color=colour, alpha=0.25, lw=0)
    near = rows["scale"][0] * np.linspace(-10, 10, 401)  # at a large epsilon a peak of few pixels
    noise = np.unique([-120.0, 120.0, *near[np.abs(near) < 120]])
    ax.plot(count + noise, law.density(noise), color=colour, lw=1.3)
    ax.set(xlim=(count - 120, count + 120), xticks=[count - 100, count, count + 100])
    ax.set_ylim(0)


def _draw_tails(
    ax: Axes, rows: Table, law: theory.Laplace | theory.Gaussian, colour: str, marker: str
) -> None:
    """Histogram and density on a log scale, where Laplace is a tent and Gaussian a dome."""
    count, unit = article.true_count(), 1 / rows["epsilon"][0]
    middle, width = (rows["low"] + rows["high"]) / 2, rows["high"] - rows["low"]
    seen = np.flatnonzero(rows["fraction"] > 0)[::3]
    ax.errorbar(
        middle[seen],
        (rows["fraction"] / width)[seen],
        (rows["fraction_standard_error"] / width)[seen],
        **style.points(colour, marker, size=2.6),
    )
    noise = unit * np.linspace(-22, 22, 177)  # the peak at 0 is one of them
    ax.plot(count + noise, law.density(noise), color=colour, lw=1.3)
    ax.set(
        yscale="log",
        xlim=(count - 22 * unit, count + 22 * unit),
        ylim=(3e-8 / unit, 5 / unit),
        xticks=[count - 20 * unit, count, count + 20 * unit],
    )
    ax.yaxis.set_minor_locator(NullLocator())


def _fractions(law: theory.Laplace | theory.Gaussian, edges: np.ndarray) -> np.ndarray:
    """Probability of each bin, from tails so that far bins do not cancel."""
    above = np.where(edges > 0, law.tail(edges), 2 - law.tail(-edges)) / 2
    below = np.where(edges < 0, law.tail(-edges), 2 - law.tail(edges)) / 2
    return np.where(edges[:-1] >= 0, above[:-1] - above[1:], below[1:] - below[:-1])
