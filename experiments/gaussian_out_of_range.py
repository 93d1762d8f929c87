"""The customary Gaussian formula against the exact one, from epsilon 0.1 to 100.

Where the formula breaks its claim by theory, by an audit that assumes a Gaussian trade-off, and by
one that only counts. An event that shows the breach is about as rare as e^-epsilon, so counting
needs more trials than anyone has; how many, follows from the law.
"""

import functools
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import special

from dpjax.accounting import gaussian
from dpjax.audit import counting
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

ABOVE: dict[str, Any] = {**style.SMALL, "va": "bottom"}  # the mark that a text belongs to
TITLE = "A formula outside its range"
SETTING = (
    "One count is released with Gaussian noise at delta 1e-5, by the customary formula and by exact"
    " calibration. The true epsilon is set against the one claimed, and audits try to prove it from"
    " the outputs alone."
)
COLUMNS = (
    "design",
    "epsilon",  # claimed
    "delta",
    "scale",
    "epsilon_true",  # at delta, of one count
    "trials",  # of each neighbour
    "confidence",
    "epsilon_assumed_gaussian",  # proven, if the trade-off is Gaussian
    "limit_assumed_gaussian",
    "epsilon_counted",  # proven
    "limit_counted",
    "trials_to_contradict",  # by counting, where that is typical; empty: none
    "trials_at_least",  # fewer can never contradict the claim by counting
)
CONFIDENCE = 0.95
EPSILONS = np.array([float(f"{10 ** (i / 6):.4g}") for i in range(-6, 13)])
EPSILONS = np.sort(np.append(EPSILONS, 20.0))
DESIGNS = ("gaussian_customary", "gaussian_exact")
MOST_TRIALS = 1e16


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each formula and epsilon."""
    import dpjax  # here, so that a redraw needs no JAX
    from experiments import simulation

    delta = article.DELTA
    rows: list[dict[str, Cell]] = []
    for design in DESIGNS:
        for epsilon in EPSILONS:
            formula = {
                "gaussian_customary": gaussian.customary_noise_multiplier,
                "gaussian_exact": gaussian.noise_multiplier,
            }[design]
            scale = float(formula(epsilon, delta))  # a count has sensitivity 1
            point = {"design": design, "epsilon": float(epsilon)}
            noisy = functools.partial(dpjax.gaussian, scale=np.float32(scale))

            def key(audit: str, point: dict = point):
                return simulation.point_key(seed, f"gaussian_out_of_range/{audit}", point)

            counted = dpjax.audit(
                key("counting"), noisy, 0.0, 1.0, trials, delta=delta, confidence=CONFIDENCE
            )
            assumed = dpjax.audit_gaussian(
                key("gaussian"), noisy, 0.0, 1.0, trials, confidence=CONFIDENCE
            )
            rows.append(
                point
                | {
                    "delta": delta,
                    "scale": scale,
                    "epsilon_true": float(gaussian.epsilon(delta, mu=1 / scale)),
                    "trials": trials,
                    "confidence": CONFIDENCE,
                    "epsilon_assumed_gaussian": assumed.epsilon(delta),
                    "limit_assumed_gaussian": float(gaussian.epsilon(delta, mu=assumed.limit)),
                    "epsilon_counted": counted.epsilon,
                    "limit_counted": counted.limit,
                    "trials_to_contradict": trials_to_contradict(float(epsilon), 1 / scale),
                    "trials_at_least": float(
                        counting.trials_needed(epsilon, delta=delta, confidence=CONFIDENCE)
                    ),
                }
            )
            progress(len(rows), len(DESIGNS) * len(EPSILONS))
    return rows


def typical_bound(trials: float, mu: float) -> float:
    """What counting proves of a shift mu in a typical run: each count is its expectation.

    The best threshold is taken from the law; both counts are rounded against the bound.
    """
    trials = float(np.round(trials))
    chance = np.geomspace(1 / trials, 0.5, 60)  # of the event where it is rare
    others = np.ceil(trials * chance)
    hits = np.floor(trials * special.ndtr(special.ndtri(chance) + mu))
    bound = counting.epsilon_lower_bound(
        hits, trials, others, trials, delta=article.DELTA, confidence=CONFIDENCE
    )
    return float(np.max(bound))


def trials_to_contradict(epsilon: float, mu: float) -> float | None:
    """The trials of each neighbour from which a typical run contradicts the claim; None if none."""
    if float(gaussian.epsilon(article.DELTA, mu=mu)) <= epsilon * (1 + 1e-9):
        return None
    least = float(counting.trials_needed(epsilon, delta=article.DELTA, confidence=CONFIDENCE))
    low, high = np.log10([least, MOST_TRIALS])
    if least >= MOST_TRIALS or typical_bound(10**high, mu) <= epsilon:
        return None
    while high - low > 0.02:  # decades
        middle = (low + high) / 2
        high, low = (middle, low) if typical_bound(10**middle, mu) > epsilon else (high, middle)
    return float(f"{10**high:.2g}")


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    customary = table.where(design="gaussian_customary")
    unsafe = float(gaussian.customary_unsafe_epsilon(article.DELTA))
    caught = customary["epsilon"][customary["epsilon_assumed_gaussian"] > customary["epsilon"]]
    twenty = customary.where(epsilon=20.0)
    seen = f"from epsilon {caught.min():.3g} to {caught.max():.3g}" if caught.size else "nowhere"
    return (
        f"From epsilon {unsafe:.2f} on the customary formula leaks more than it claims. An audit of"
        f" {customary['trials'][0]:,.0f} trials that assumes a Gaussian trade-off proves it {seen};"
        f" by counting it would take {twenty['trials_to_contradict'][0]:,.0f} trials where 20 is"
        f" claimed and {twenty['epsilon_true'][0]:.3g} true. Calibrate exactly, and never take an"
        " audit that finds nothing for a proof of privacy."
    )


def report(table: Table) -> str:
    """Claim, truth and what either audit proves, for every second point and 20."""
    lines = [
        f"customary formula at delta {article.DELTA:g}, {table['trials'][0]:,.0f} trials of each"
        f" neighbour, confidence {CONFIDENCE:g}",
        f"{'claimed':>8} {'true':>9} {'if Gaussian':>12} {'counted':>9} {'countable':>10}"
        f" {'to contradict':>14}",
    ]
    rows = table.where(design="gaussian_customary")
    shown = {*range(0, len(rows), 2), int(np.flatnonzero(rows["epsilon"] == 20.0)[0])}
    for i in sorted(shown):
        needed = rows["trials_to_contradict"][i]
        lines.append(
            f"{rows['epsilon'][i]:8.4g} {rows['epsilon_true'][i]:9.4g}"
            f" {rows['epsilon_assumed_gaussian'][i]:12.4g} {rows['epsilon_counted'][i]:9.4g}"
            f" {rows['limit_counted'][i]:10.4g}"
            f" {'' if np.isnan(needed) else f'{needed:.2g}':>14}".rstrip()
        )
    return "\n".join(lines)


def draw(table: Table) -> Figure:
    """Above true and proven over claimed epsilon, below the trials that counting needs."""
    figure, axes = style.figure(7.2, 6.4, [["ratio"], ["trials"]], height_ratios=[1.7, 1])
    _draw_ratio(axes["ratio"], table)
    _draw_trials(axes["trials"], table)
    return figure


def _draw_ratio(ax: Axes, table: Table) -> None:
    """Epsilon over the claim: lines are the law, marks are proven."""
    for design, colour in zip(DESIGNS, (style.CUSTOMARY, style.GAUSSIAN), strict=True):
        rows = table.where(design=design)
        claimed = rows["epsilon"]
        ax.plot(claimed, rows["epsilon_true"] / claimed, color=colour)
        for column, marker in (("epsilon_assumed_gaussian", "s"), ("epsilon_counted", "^")):
            proven = np.where(rows[column] > 0, rows[column], np.nan)
            ax.plot(claimed, proven / claimed, marker, ms=4.2, mfc="white", mec=colour, mew=0.9)
    rows = table.where(design="gaussian_customary")
    ax.plot(
        rows["epsilon"], rows["limit_counted"] / rows["epsilon"], color=style.MUTED, ls=(0, (1, 1))
    )
    ax.axhline(1, color=style.INK, lw=0.9, ls=(0, (4, 2)))
    unsafe = float(gaussian.customary_unsafe_epsilon(article.DELTA))
    ax.axvline(unsafe, color=style.MUTED, lw=0.7)
    ax.text(unsafe * 1.05, 0.13, f"unsafe from ε = {unsafe:.2f}", **style.SMALL)
    style.log_axis(ax, "x", (0.1, 1, 10, 100))
    ax.set(xlim=(0.085, 118), ylim=(0, 2.45), ylabel="ε over the ε claimed, at δ = $10^{-5}$")
    ax.set_title(f"From ε = {unsafe:.2f} on the customary formula leaks more than it claims")
    trials = style.power(table["trials"][0])
    text = (
        f"lines: true; marks: proven by {trials} trials\n□ assuming a Gaussian trade-off   △ by"
        " counting\ndotted: the most that counting can prove"
    )
    ax.text(0.09, 2.36, text, **style.SMALL)
    style.name(ax, "customary\nformula", (24, 1.56), style.CUSTOMARY, ha="right")
    style.name(ax, "exact calibration", (0.55, 1.06), style.GAUSSIAN)


def _draw_trials(ax: Axes, table: Table) -> None:
    """Trials with which counting contradicts the customary claim, typically and at best."""
    rows = table.where(design="gaussian_customary")
    ax.plot(rows["epsilon"], rows["trials_to_contradict"], color=style.CUSTOMARY)
    unsafe = rows["epsilon"] > float(gaussian.customary_unsafe_epsilon(article.DELTA))
    least = np.where(unsafe, rows["trials_at_least"], np.nan)
    ax.plot(rows["epsilon"], least, color=style.CUSTOMARY, ls=(0, (1, 1)))
    at = rows.where(epsilon=20.0)["trials_to_contradict"][0]
    ax.plot(20.0, at, "o", ms=5, color=style.CUSTOMARY)
    exponent = int(np.floor(np.log10(at)))
    label = f"ε = 20: ${at / 10**exponent:.0f} · 10^{{{exponent}}}$ trials"
    ax.annotate(label, (20.0, at), (-8, 0), textcoords="offset points", ha="right", va="center")
    typical = "solid: with so many a typical run\ncontradicts the customary formula"
    ax.text(0.09, 6e15, f"{typical}\ndotted: with fewer none can", **style.SMALL)
    ax.axhline(table["trials"][0], color=style.MUTED, lw=0.9)
    used = f"used above: {style.power(table['trials'][0])}"
    ax.text(0.09, table["trials"][0] * 1.5, used, **ABOVE)
    style.log_axis(ax, "x", (0.1, 1, 10, 100))
    ax.set_yscale("log")
    ax.set(xlim=(0.085, 118), ylim=(1e3, 2e16), xlabel="ε claimed for one count")
    ax.set_ylabel("Trials of each neighbour\nthat counting needs")
    ax.minorticks_off()
