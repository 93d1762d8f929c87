"""A sum whose bound on one record is too low: the epsilon claimed, the true one, the one proven.

Noise is calibrated for records of at most 1; then somebody with a record of `factor` is added.
Gaussian noise is audited twice, by counting and under the assumption of a Gaussian trade-off.
"""

import functools
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dpjax.accounting import gaussian
from dpjax.queries import bounded_sum
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

ABOVE: dict[str, Any] = {**style.SMALL, "va": "bottom"}  # the mark that a text belongs to
TITLE = "A sensitivity that is too small"
SETTING = (
    "A sum is released with noise made for records of at most 1, at a claimed epsilon of 1. Then"
    " somebody with a larger record joins, and an audit compares the outputs with and without."
)
COLUMNS = (
    "design",
    "audit",  # counting, or gaussian: the bound on mu, as an epsilon at delta
    "factor",  # the largest record over the bound that the noise is calibrated for
    "epsilon_claimed",
    "delta",
    "scale",
    "epsilon_true",
    "trials",  # of each neighbour
    "confidence",
    "epsilon_proven",
    "epsilon_limit",  # the most that so many trials can prove
)
EPSILON, CONFIDENCE = 1.0, 0.95
FACTORS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
RECORDS = (0.2, 0.9, 0.5)
AUDITS = (("laplace", "counting"), ("gaussian", "counting"), ("gaussian", "gaussian"))


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each design, kind of audit and size of the record that is added."""
    import dpjax  # here, so that a redraw needs no JAX
    from experiments import simulation

    claimed = bounded_sum(lower=0.0, upper=1.0)
    scales = {
        "laplace": claimed.sensitivity("add_remove", norm=1) / EPSILON,
        "gaussian": claimed.sensitivity("add_remove", norm=2)
        * float(gaussian.noise_multiplier(EPSILON, article.DELTA)),
    }
    rows: list[dict[str, Cell]] = []
    for design, kind in AUDITS:
        scale, delta = scales[design], 0.0 if design == "laplace" else article.DELTA
        noisy = functools.partial(simulation.MECHANISMS[design], scale=np.float32(scale))
        for factor in FACTORS:
            point = {"design": design, "audit": kind, "factor": factor}
            key = simulation.point_key(seed, "sensitivity_underestimated", point)
            sums = float(np.sum(RECORDS)), float(np.sum([*RECORDS, factor]))  # nobody clips them
            if kind == "counting":
                found = dpjax.audit(key, noisy, *sums, trials, delta=delta, confidence=CONFIDENCE)
                proven, limit = found.epsilon, found.limit
            else:
                shift = dpjax.audit_gaussian(key, noisy, *sums, trials, confidence=CONFIDENCE)
                proven, limit = shift.epsilon(delta), gaussian.epsilon(delta, mu=shift.limit)
            rows.append(
                point
                | {
                    "epsilon_claimed": EPSILON,
                    "delta": delta,
                    "scale": scale,
                    "epsilon_true": true_epsilon(design, factor, scale),
                    "trials": trials,
                    "confidence": CONFIDENCE,
                    "epsilon_proven": proven,
                    "epsilon_limit": float(limit),
                }
            )
            progress(len(rows), len(AUDITS) * len(FACTORS))
    return rows


def true_epsilon(design: str, factor: float, scale: float) -> float:
    """What noise of this scale gives when one record changes the sum by `factor`."""
    if design == "laplace":
        return factor / scale
    return float(gaussian.epsilon(article.DELTA, mu=factor / scale))


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    twice = {
        (design, kind): table.where(design=design, audit=kind, factor=2.0)
        for design, kind in AUDITS
    }
    laplace, gauss = twice["laplace", "counting"], twice["gaussian", "gaussian"]
    counted = twice["gaussian", "counting"]["epsilon_proven"][0]
    return (
        f"If a record is twice the bound, the true epsilon is {laplace['epsilon_true'][0]:.3g} with"
        f" Laplace noise and {gauss['epsilon_true'][0]:.3g} with Gaussian noise, and not the"
        f" {EPSILON:g} that is claimed. Audits of {laplace['trials'][0]:,.0f} trials prove"
        f" {laplace['epsilon_proven'][0]:.3g} and {gauss['epsilon_proven'][0]:.3g} of it, the"
        f" latter by assuming a Gaussian trade-off; by counting it would be {counted:.3g}. Clip"
        " every record in the program, and audit that program."
    )


def report(table: Table) -> str:
    """Claimed, true and proven epsilon of each factor."""
    lines = [
        f"claimed epsilon {EPSILON:g}; proven at confidence {CONFIDENCE:g}, trials per neighbour"
        f" {table['trials'][0]:,.0f}",
        f"{'factor':>7} | {'Laplace':>8} {'proven':>8} | {'Gaussian':>8} {'counted':>8}"
        f" {'assumed Gaussian':>17}",
    ]
    for factor in FACTORS:
        laplace, counted, assumed = (
            table.where(design=design, audit=kind, factor=factor) for design, kind in AUDITS
        )
        lines.append(
            f"{factor:7g} | {laplace['epsilon_true'][0]:8.4g} {laplace['epsilon_proven'][0]:8.4g} |"
            f" {counted['epsilon_true'][0]:8.4g} {counted['epsilon_proven'][0]:8.4g}"
            f" {assumed['epsilon_proven'][0]:17.4g}"
        )
    return "\n".join(lines)


def draw(table: Table) -> Figure:
    """Proven epsilon over the factor, with the truth as lines and the claim beneath."""
    figure, axes = style.figure(7.2, 4.3, [["one"]])
    ax = axes["one"]
    for design, kind, colour, marker in (
        ("laplace", "counting", style.LAPLACE, "o"),
        ("gaussian", "counting", style.CUSTOMARY, "^"),
        ("gaussian", "gaussian", style.GAUSSIAN, "s"),
    ):
        rows = table.where(design=design, audit=kind)
        if kind == "counting":
            truth = style.LAPLACE if design == "laplace" else style.GAUSSIAN
            ax.plot(rows["factor"], rows["epsilon_true"], color=truth)
        ax.plot(rows["factor"], rows["epsilon_proven"], marker, ms=5, mfc="white", mec=colour)
    ax.axhline(EPSILON, color=style.INK, lw=1, ls=(0, (4, 2)))
    limit = float(table.where(design="laplace")["epsilon_limit"][0])
    ax.axhline(limit, color=style.MUTED, lw=1, ls=(0, (1, 1)))
    style.log_axis(ax, "x", (1, 1.5, 2, 3, 4, 6, 8, 10))
    style.log_axis(ax, "y", (0.5, 1, 2, 5, 10, 20))
    ax.set(xlim=(0.95, 11.5), ylim=(0.45, 32))
    ax.set_xlabel("Largest record over the bound that the noise was made for")
    ax.set_ylabel("ε (Laplace: δ = 0; Gaussian: δ = $10^{-5}$)")
    ax.set_title("The leak grows with the record that the bound leaves out")
    trials = style.power(table["trials"][0])
    ax.text(11.2, EPSILON * 0.95, "claimed", ha="right", **style.SMALL)
    most = f"the most that {trials} trials can prove by counting"
    ax.text(0.97, limit * 1.04, most, **ABOVE)
    style.name(ax, "Laplace", (2.22, 1.83), style.LAPLACE, slope=1.83 / 2.22)
    slope = float(np.interp(4.5, FACTORS, table.where(audit="gaussian")["epsilon_true"])) * 1.12
    style.name(ax, "Gaussian", (4.2, slope), style.GAUSSIAN, slope=slope / 4.0)
    ax.text(
        0.985,
        0.03,
        f"lines: the true ε; marks: proven by the outputs of {trials} trials, confidence"
        f" {CONFIDENCE:.0%}\n○ △ by counting   □ assuming a Gaussian trade-off",
        transform=ax.transAxes,
        ha="right",
        **ABOVE,
    )
    return figure
