"""Is this person in the data? The best attack on a noisy count against what a guarantee allows.

The attacker knows the count without the person and the noise, sees one noisy answer, and says "in"
where it lies above a threshold. The likelihood of "in" over "out" grows with the answer, so no
other attack has more true positives at the same false positives (Neyman and Pearson).
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpjax import theory
from dpjax.accounting import gaussian, risk
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "Is this person in the data? The best attack on a noisy count"
SETTING = (
    "An attacker knows everybody in a table but one, sees one noisy count and says whether that"
    " person is in it. This is the best attack that there is."
)
COLUMNS = (
    "part",  # roc or advantage
    "design",
    "epsilon",
    "delta",
    "scale",
    "trials",  # with the person, and as many without
    "threshold",  # answers above it, less the count without the person, are taken for "in"
    "fpr_theory",  # false positive rate
    "fpr",
    "fpr_standard_error",
    "tpr_bound",  # the most true positives that (epsilon, delta) allows any mechanism
    "tpr_theory",  # those of this one
    "tpr",
    "tpr_standard_error",
    "advantage_bound",  # true less false positive rate
    "advantage_theory",
    "advantage",
    "advantage_standard_error",
)
EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
ROC_EPSILONS = (1.0, 4.0)
FALSE_POSITIVES = np.array([1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9])
MIDDLE = 0.5  # where both answers are equally likely, the threshold of the largest advantage
DELTA = article.DELTA
LAWS = {"laplace": theory.Laplace, "gaussian": theory.Gaussian}


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each design and epsilon, and at some epsilons one for each threshold."""
    rows, done = [], 0
    for design, epsilon in ((design, epsilon) for design in LAWS for epsilon in EPSILONS):
        scale = noise_scale(design, epsilon)
        thresholds = np.append(-LAWS[design](scale).quantile(FALSE_POSITIVES), MIDDLE)
        out, there = _said_in(design, epsilon, scale, thresholds, trials, seed)
        rates = [
            dict.fromkeys(COLUMNS)
            | {
                "design": design,
                "epsilon": epsilon,
                "delta": 0.0 if design == "laplace" else DELTA,
                "scale": scale,
                "trials": trials,
                "threshold": float(threshold),
            }
            | _rates(fpr, tpr, trials)
            for threshold, fpr, tpr in zip(thresholds, out, there, strict=True)
        ]
        middle = rates.pop()
        rows.append(middle | {"part": "advantage"} | _advantage(design, epsilon, scale, middle))
        if epsilon in ROC_EPSILONS:
            rows += [
                row | {"part": "roc"} | _curves(design, epsilon, scale, fpr)
                for row, fpr in zip(rates, FALSE_POSITIVES.tolist(), strict=True)
            ]
        done += 1
        progress(done, len(LAWS) * len(EPSILONS))
    return rows


def noise_scale(design: str, epsilon: float) -> float:
    """The least noise of a count that is private at this epsilon, the Gaussian's at DELTA."""
    if design == "laplace":
        return 1 / epsilon
    return float(gaussian.noise_multiplier(epsilon, DELTA))


def true_positives(design: str, scale: float, fpr: np.ndarray) -> np.ndarray:
    """The best attack's true positive rate at a false positive rate: exact."""
    if design == "laplace":
        return 1 - risk.tradeoff_of_laplace(fpr, noise_multiplier=scale)
    return 1 - risk.tradeoff_of_gaussian(fpr, mu=1 / scale)


def _said_in(
    design: str, epsilon: float, scale: float, thresholds: np.ndarray, trials: int, seed: int
) -> list[np.ndarray]:
    """Shares of answers above each threshold, without the person and with them."""
    import dpjax  # here, as is JAX behind it, so that a redraw needs none
    from experiments import simulation

    order = np.argsort(thresholds)
    edges = thresholds[order].astype(np.float32)
    shares = []
    for person in (0.0, 1.0):
        place = {"design": design, "epsilon": epsilon, "person": person}
        key = simulation.point_key(seed, "membership", place)
        mechanism = functools.partial(simulation.MECHANISMS[design], scale=np.float32(scale))
        counted = dpjax.simulate(
            key, mechanism, person, trials, measure=_answer, edges=edges
        ).histogram
        assert counted is not None  # there are edges
        above = np.cumsum(counted.counts[::-1])[::-1][1:] / trials
        shares.append(above[np.argsort(order)])
    return shares


def _answer(answer, value):
    """What the attacker sees."""
    return answer


def _rates(fpr: float, tpr: float, trials: int) -> dict[str, float]:
    """Simulated rates with their standard errors."""
    return {
        "fpr": float(fpr),
        "fpr_standard_error": float(np.sqrt(fpr * (1 - fpr) / trials)),
        "tpr": float(tpr),
        "tpr_standard_error": float(np.sqrt(tpr * (1 - tpr) / trials)),
    }


def _curves(design: str, epsilon: float, scale: float, fpr: float) -> dict[str, float]:
    """The rates that theory gives at a false positive rate."""
    return {
        "fpr_theory": fpr,
        "tpr_theory": float(true_positives(design, scale, np.asarray(fpr))),
        "tpr_bound": float(_bound(epsilon, fpr)),
    }


def _bound(epsilon: float, fpr: np.ndarray | float) -> np.ndarray:
    """The most true positives at a false positive rate under (epsilon, DELTA)."""
    return 1 - risk.tradeoff_of_guarantee(fpr, epsilon=epsilon, delta=DELTA)


def _advantage(
    design: str, epsilon: float, scale: float, row: Mapping[str, Any]
) -> dict[str, float]:
    """The largest advantage: its bound, its law, and simulated at the middle threshold."""
    # Below the middle threshold lies a half in each world, and what the noise has within 1/2.
    law = LAWS[design](scale).tail(MIDDLE) / 2
    return _curves(design, epsilon, scale, float(law)) | {
        "advantage_bound": float(risk.advantage_of_guarantee(epsilon, DELTA)),
        "advantage_theory": float(1 - 2 * law),
        "advantage": row["tpr"] - row["fpr"],
        "advantage_standard_error": float(
            np.hypot(row["tpr_standard_error"], row["fpr_standard_error"])
        ),
    }


LOOK = {
    "laplace": ("Laplace", style.LAPLACE, "o"),
    "gaussian": ("Gaussian", style.GAUSSIAN, "s"),
}


def report(table: Table) -> str:
    """The advantage at some epsilons, and true positives at few false ones."""
    lines = [
        f"The best attack on one noisy count, any mechanism at delta {DELTA:g}:"
        " advantage (true less false positive rate), and true positives at 1 % of false ones",
        f"{'design':10} {'epsilon':>8} {'simulated':>10} {'std. error':>11} {'theory':>8}"
        f" {'bound':>8} | {'TPR at 1 %':>10} {'theory':>8} {'bound':>8}",
    ]
    for design in LAWS:
        for epsilon in ROC_EPSILONS:
            row = table.where(part="advantage", design=design, epsilon=epsilon)
            rate = table.where(part="roc", design=design, epsilon=epsilon, fpr_theory=0.01)
            lines.append(
                f"{LOOK[design][0]:10} {epsilon:8g} {row['advantage'][0]:10.4f}"
                f" {row['advantage_standard_error'][0]:11.1e} {row['advantage_theory'][0]:8.4f}"
                f" {row['advantage_bound'][0]:8.4f} | {rate['tpr'][0]:10.2%}"
                f" {rate['tpr_theory'][0]:8.2%} {rate['tpr_bound'][0]:8.2%}"
            )
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    rows = table.where(part="advantage", epsilon=1.0)
    laplace, normal = (rows.where(design=design)["advantage"][0] for design in LAWS)
    laplace_scale, gaussian_scale = (rows.where(design=design)["scale"][0] for design in LAWS)
    error = theory.Gaussian(gaussian_scale).rmse / theory.Laplace(laplace_scale).rmse
    few = table.where(part="roc", epsilon=4.0, fpr_theory=0.01)
    laplace_few, gaussian_few = (few.where(design=design)["tpr"][0] for design in LAWS)
    return (
        f"At epsilon 1 the attacker's advantage is {laplace:.3f} with Laplace noise and"
        f" {normal:.3f} with Gaussian noise at delta {DELTA:g}, whose error is {error:.1f} times as"
        f" large; the guarantee would allow {rows['advantage_bound'][0]:.3f}. At epsilon 4 and 1%"
        f" of false alarms the attacker finds {laplace_few:.0%} of the members behind Laplace noise"
        f" and {gaussian_few:.0%} behind Gaussian noise. Look at the risk of the mechanism, and not"
        " at epsilon alone."
    )


def draw(table: Table) -> Figure:
    """True against false positives at some epsilons, and the advantage against epsilon."""
    names = [f"roc {epsilon:g}" for epsilon in ROC_EPSILONS]
    figure, axes = style.figure(10.8, 4.3, [[*names, "advantage"]], width_ratios=[1, 1, 1.35])
    for name, epsilon in zip(names, ROC_EPSILONS, strict=True):
        _draw_roc(axes[name], table.where(part="roc", epsilon=epsilon), epsilon)
    axes[names[0]].set_ylabel("True positive rate (%)")
    text = {"fontsize": 8, "color": style.MUTED}
    axes[names[0]].text(0.014, 55, "ruled out\nby (ε, δ)", va="center", **text)
    axes[names[0]].text(0.1, 0.065, "guessing", **text)
    style.name(axes[names[1]], "Laplace", (0.012, 7), style.LAPLACE)
    style.name(axes[names[1]], "Gaussian", (0.012, 0.12), style.GAUSSIAN)
    axes[names[1]].tick_params(labelleft=False)
    _draw_advantage(axes["advantage"], table.where(part="advantage"))
    return figure


def _draw_roc(ax: Axes, rows: Table, epsilon: float) -> None:
    """The bound, both laws, and the simulated attack."""
    fpr = np.geomspace(8e-5, 1, 400)
    bound = 100 * _bound(epsilon, fpr)
    ax.fill_between(100 * fpr, bound, 150, color=style.GRID, lw=0)
    ax.plot(100 * fpr, bound, color=style.INK, lw=1)
    ax.plot(100 * fpr, 100 * fpr, color=style.MUTED, lw=0.9, ls=(0, (1, 2)))
    for design, (_, colour, marker) in LOOK.items():
        of = rows.where(design=design)
        law = true_positives(design, of["scale"][0], fpr)
        ax.plot(100 * fpr, 100 * law, color=colour)
        ax.errorbar(
            100 * of["fpr"],
            100 * of["tpr"],
            100 * of["tpr_standard_error"],
            100 * of["fpr_standard_error"],
            **style.points(colour, marker, size=3.8),
        )
    style.log_axis(ax, "x", (0.01, 0.1, 1, 10, 100))
    style.log_axis(ax, "y", (0.01, 0.1, 1, 10, 100))
    ax.set(xlim=(0.0085, 115), ylim=(0.0085, 130), xlabel="False positive rate (%)")
    ax.set_title(f"The best attack at ε = {epsilon:g}")


def _draw_advantage(ax: Axes, rows: Table) -> None:
    """The bound, both laws, and the simulated attack at the middle threshold."""
    epsilon = np.geomspace(0.09, 11, 300)
    bound = risk.advantage_of_guarantee(epsilon, DELTA)
    ax.fill_between(epsilon, bound, 1.05, color=style.GRID, lw=0)
    ax.plot(epsilon, bound, color=style.INK, lw=1)
    for design, (_, colour, marker) in LOOK.items():
        of = rows.where(design=design)
        scales = np.array([noise_scale(design, e) for e in epsilon.tolist()])
        ax.plot(epsilon, 1 - LAWS[design](scales).tail(MIDDLE), color=colour)
        ax.errorbar(
            of["epsilon"],
            of["advantage"],
            of["advantage_standard_error"],
            **style.points(colour, marker, size=3.8),
        )
    style.log_axis(ax, "x", (0.1, 0.2, 0.5, 1, 2, 5, 10))
    ax.set(xlim=(0.09, 11), ylim=(0, 1.05), xlabel="ε of one count (Gaussian: δ = $10^{-5}$)")
    ax.set_ylabel("Advantage: true less false positive rate")
    ax.set_title("The largest advantage")
    ax.text(0.115, 0.72, "ruled out for any mechanism", fontsize=8, color=style.MUTED)
    style.name(ax, "Laplace", (2.25, 0.6), style.LAPLACE)
    style.name(ax, "Gaussian", (3.3, 0.28), style.GAUSSIAN)
    trials = style.power(rows["trials"][0])
    note = f"lines: theory; points: simulated,\n{trials} answers each with and without"
    ax.text(0.1, 1.02, note, **style.SMALL)
