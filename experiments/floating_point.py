"""What floating-point noise gives away: answers that only one of two neighbours can give.

Noise of scale 1 is added to 0 or to 1. The supports are compared exactly: in float32 all 2^23
outcomes of the textbook sampler, in float64 by a search for a random word that gives the answer.
Remedies are post-processing of the same outcomes. Every float32 mechanism is audited by
`float_bits`, whole-number ones by their answers.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpjax.accounting import gaussian
from experiments import article, style
from experiments.progress import Progress
from experiments.table import Cell, Table

ABOVE: dict[str, Any] = {**style.SMALL, "va": "bottom"}  # the mark that a text belongs to
TITLE = "What the bits of noise give away"
SETTING = (
    "Noise of scale 1 is added to a true answer of 0 or of 1, in the numbers that a computer has."
    " An answer that only one of the two can give tells which it was, whatever epsilon was"
    " promised."
)
COLUMNS = (
    "part",  # support: one implementation; tail: how far float32 noise reaches
    "noise",
    "sampler",
    "remedy",
    "scale",  # over the sensitivity
    "outcomes",  # compared; in float32 all there are
    "share_betraying",  # of the answers on 0: impossible on 1
    "share_betraying_neighbour",  # of the answers on 1: impossible on 0
    "share_standard_error",  # 0 where all outcomes are compared
    "epsilon_claimed",
    "delta",
    "delta_exact",  # of the implementation at epsilon_claimed, from all outcomes
    "trials",  # of the audit
    "epsilon_proven",
    "epsilon_limit",
)
SAMPLED = 20_000  # answers in float64 for which a word is searched
REMEDIES = {  # step to round to, 0 for none, and bound to clamp to
    "none": (0.0, np.inf),
    "rounded to 1/1024": (1 / 1024, np.inf),
    "snapped": (1.0, 4.0),  # the last steps of Mironov's: a step of at least the scale, a clamp
}
IMPLEMENTATIONS = (
    ("jax.random float32", "none"),
    ("jax.random float64", "none"),
    ("dpjax float32", "none"),
    ("jax.random float32", "rounded to 1/1024"),
    ("jax.random float32", "snapped"),
    ("dpjax discrete", "none"),
)
TAIL_SCALES = (*(float(f"{10 ** (i / 8):.4g}") for i in range(-8, 9)), 0.2, 0.3, 0.5, 2.0)
REACH = {"laplace": 43, "gaussian": 9}  # of the discrete mechanisms at scale 1, whole numbers


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each implementation, and one for each scale of float32 noise."""
    from experiments import textbook  # here, so that a redraw needs no JAX

    rows, total = [], 2 * (len(IMPLEMENTATIONS) + len(TAIL_SCALES))
    for noise in ("laplace", "gaussian"):
        outcomes = textbook.all_noise(noise)
        for row in _rows(noise, outcomes, trials, seed):
            rows.append(dict.fromkeys(COLUMNS) | {"noise": noise} | row)
            progress(len(rows), total)
    return rows


def _rows(noise: str, outcomes: np.ndarray, trials: int, seed: int) -> Iterator[dict[str, Cell]]:
    """All rows of one noise."""
    claimed, delta = claim(noise)
    for sampler, remedy in IMPLEMENTATIONS:
        point = {"noise": noise, "sampler": sampler, "remedy": remedy}
        row: dict[str, Cell] = {
            **point,
            "part": "support",
            "scale": 1.0,
            "epsilon_claimed": claimed,
            "delta": delta,
        }
        if sampler == "jax.random float32":
            ones, others = (remedied(each, *REMEDIES[remedy]) for each in (outcomes, outcomes + 1))
            row |= compared(ones, others, claimed)
        elif sampler == "jax.random float64":
            row |= searched(noise, min(trials, SAMPLED), seed)
        elif sampler == "dpjax discrete":
            share = least_whole(noise)
            row |= {"share_betraying": share, "share_betraying_neighbour": share}
        if sampler != "jax.random float64":
            row |= audited(noise, sampler, remedy, delta, trials, seed)
        yield row
    for scale in sorted(TAIL_SCALES):
        near, far = beyond_reach(outcomes, scale)
        yield {
            "part": "tail",
            "sampler": "jax.random float32",
            "scale": scale,
            "outcomes": outcomes.size,
            "share_betraying": near,
            "share_betraying_neighbour": far,
            "share_standard_error": 0.0,
        }


def claim(noise: str) -> tuple[float, float]:
    """The epsilon and delta of noise of scale 1 at sensitivity 1, were it of real numbers."""
    if noise == "laplace":
        return 1.0, 0.0
    return float(gaussian.epsilon(article.DELTA, mu=1.0)), article.DELTA


def remedied(answers, step: float, bound: float):
    """Post-processing: to a multiple of the step, clamped; for NumPy, and JAX with traced numbers.

    Kept monotone, so that sorted answers stay sorted.
    """
    if isinstance(answers, np.ndarray) and not step:
        return answers
    xp = answers.__array_namespace__()
    rounded = xp.where(step > 0, xp.round(answers / xp.where(step > 0, step, 1)) * step, answers)
    return xp.clip(rounded, -bound, bound).astype(answers.dtype)


def compared(ones: np.ndarray, others: np.ndarray, epsilon: float) -> dict[str, Cell]:
    """Two sorted lists of equally likely outcomes: what is in one alone, and delta, exactly."""
    one, other = (_counted(outcomes) for outcomes in (ones, others))
    shares, excess = [], []
    for (values, p), (them, q) in ((one, other), (other, one)):
        at = np.minimum(np.searchsorted(them, values), them.size - 1)
        there = np.where(them[at] == values, q[at], 0.0)
        shares.append(float(np.sum(p[there == 0])))
        excess.append(float(np.sum(np.maximum(p - np.exp(epsilon) * there, 0))))
    return {
        "outcomes": ones.size,
        "share_betraying": shares[0],
        "share_betraying_neighbour": shares[1],
        "share_standard_error": 0.0,
        "delta_exact": max(excess),
    }


def _counted(outcomes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different numbers of a sorted list and the share of each."""
    starts = np.flatnonzero(np.append(True, np.diff(outcomes) > 0))
    return outcomes[starts], np.diff(np.append(starts, outcomes.size)) / outcomes.size


def least_whole(noise: str) -> float:
    """The chance of the farthest whole number that discrete noise reaches, on one side."""
    x = np.arange(-60, 61)
    weights = np.exp(-np.abs(x)) if noise == "laplace" else np.exp(-(x**2) / 2)
    return float(np.exp(-REACH[noise] if noise == "laplace" else -(REACH[noise] ** 2) / 2)) / float(
        weights.sum()
    )


def searched(noise: str, size: int, seed: int) -> dict[str, Cell]:
    """The float64 sampler's answers, each looked for on the other neighbour."""
    import jax

    from experiments import simulation, textbook

    point = {"noise": noise, "sampler": "jax.random float64"}
    key = simulation.point_key(seed, "floating_point", point)
    with jax.enable_x64(True):
        drawn = np.asarray(textbook.SAMPLERS[noise](key, (size,), np.float64))
    shares = [
        float(np.mean(~textbook.is_possible(drawn + value, 1.0 - value, 1.0, noise, "float64")))
        for value in (0.0, 1.0)
    ]
    return {
        "outcomes": size,
        "share_betraying": shares[0],
        "share_betraying_neighbour": shares[1],
        "share_standard_error": float(np.sqrt(max(s * (1 - s) for s in shares) / size)),
    }


def audited(
    noise: str, sampler: str, remedy: str, delta: float, trials: int, seed: int
) -> dict[str, Cell]:
    """The epsilon that an audit proves of the implementation."""
    import jax.numpy as jnp

    import dpjax
    from experiments import simulation

    point = {"noise": noise, "sampler": sampler, "remedy": remedy}
    key = simulation.point_key(seed, "floating_point", point)
    whole = sampler == "dpjax discrete"
    ours = {"laplace": dpjax.discrete_laplace, "gaussian": dpjax.discrete_gaussian}
    if whole:
        mechanism = functools.partial(ours[noise], scale=1.0)
        neighbours = jnp.int32(0), jnp.int32(1)
    else:
        of = {"jax.random float32": _textbook, "dpjax float32": _ours}[sampler]
        step, bound = map(np.float32, REMEDIES[remedy])
        mechanism = functools.partial(of, noise=noise, step=step, bound=bound)
        neighbours = 0.0, 1.0
    found = dpjax.audit(key, mechanism, *neighbours, trials, delta=delta, float_bits=not whole)
    return {"trials": trials, "epsilon_proven": found.epsilon, "epsilon_limit": found.limit}


def _textbook(key, value, *, noise: str, step, bound):
    """The textbook mechanism: `jax.random`'s noise, added."""
    from experiments import textbook

    added = value + textbook.SAMPLERS[noise](key, value.shape, value.dtype)
    return remedied(added, step, bound)


def _ours(key, value, *, noise: str, step, bound):
    """The mechanism of dpjax."""
    from experiments import simulation

    return remedied(simulation.MECHANISMS[noise](key, value, scale=1.0), step, bound)


def beyond_reach(outcomes: np.ndarray, scale: float) -> tuple[float, float]:
    """Shares of the answers on 0 below all, and on 1 above all, that the other can give."""
    low, high = float(outcomes[0]), float(outcomes[-1])
    below = np.searchsorted(outcomes, np.float32(low + 1 / scale))
    above = outcomes.size - np.searchsorted(outcomes, np.float32(high - 1 / scale), side="right")
    return float(below / outcomes.size), float(above / outcomes.size)


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    rows = table.where(part="support", noise="laplace")
    share = {
        (sampler, remedy): rows.where(sampler=sampler, remedy=remedy)["share_betraying"][0]
        for sampler, remedy in IMPLEMENTATIONS
    }
    tail = table.where(part="tail", noise="gaussian", scale=1.0)
    beyond = max(tail["share_betraying"][0], tail["share_betraying_neighbour"][0])
    return (
        f"With textbook Laplace noise {share['jax.random float32', 'none']:.0%} of the answers in"
        f" float32 and {share['jax.random float64', 'none']:.0%} in float64 can come from one of"
        " the two only; rounding to 1/1024 leaves"
        f" {share['jax.random float32', 'rounded to 1/1024']:.2%}, and snapping to whole steps or"
        " noise on whole numbers nothing that shows. Noise in float32 also ends early: a share"
        f" {beyond:.3g} of the answers with Gaussian noise is out of the neighbour's reach, more"
        f" than a delta of {article.DELTA:g}. Release real data with a library that is made for it."
    )


def report(table: Table) -> str:
    """Each implementation: how many answers betray, delta at the claim, what an audit proves."""
    lines = [
        f"{'noise':9} {'sampler':19} {'remedy':18} | {'betraying':>9} {'delta':>9} |"
        f" {'claimed':>7} {'proven':>7} {'limit':>6}"
    ]
    rows = table.where(part="support")
    for i in range(len(rows)):
        numbers = [
            "" if np.isnan(rows[name][i]) else format(rows[name][i], ".3g")
            for name in ("share_betraying", "delta_exact", "epsilon_claimed")
        ]
        proven = [
            "" if np.isnan(rows[name][i]) else format(rows[name][i], ".4g")
            for name in ("epsilon_proven", "epsilon_limit")
        ]
        lines.append(
            f"{rows['noise'][i]:9} {rows['sampler'][i]:19} {rows['remedy'][i]:18} |"
            f" {numbers[0]:>9} {numbers[1]:>9} | {numbers[2]:>7} {proven[0]:>7}"
            f" {proven[1]:>6}".rstrip()
        )
    return "\n".join(lines)


LOOK = {"laplace": ("Laplace", style.LAPLACE), "gaussian": ("Gaussian", style.GAUSSIAN)}
NAMES = {
    ("jax.random float32", "none"): "textbook, float32",
    ("jax.random float64", "none"): "textbook, float64",
    ("dpjax float32", "none"): "dpjax, float32",
    ("jax.random float32", "rounded to 1/1024"): "rounded to 1/1024",
    ("jax.random float32", "snapped"): "snapped to 1, clamped",
    ("dpjax discrete", "none"): "whole numbers (dpjax)",
}
LEAST = 1e-7


def draw(table: Table) -> Figure:
    """Left the share of answers that betray, right the reach of float32."""
    figure, axes = style.figure(
        7.6, 4.6, [["support", "tail"]], gridspec_kw={"width_ratios": [1.7, 1]}
    )
    _draw_support(axes["support"], table.where(part="support"))
    _draw_tail(axes["tail"], table.where(part="tail"))
    return figure


def _draw_support(ax: Axes, table: Table) -> None:
    """A bar for each implementation, and beside it what the audit proves."""
    for place, implementation in enumerate(IMPLEMENTATIONS):
        for noise, shift in (("laplace", -0.2), ("gaussian", 0.2)):
            sampler, remedy = implementation
            row = table.where(noise=noise, sampler=sampler, remedy=remedy)
            share, proven = row["share_betraying"][0], row["epsilon_proven"][0]
            _, colour = LOOK[noise]
            end = max(np.nan_to_num(share), LEAST)
            ax.barh(place + shift, end - LEAST, 0.34, LEAST, color=colour)
            text = "not enumerated" if np.isnan(share) else f"{100 * share:.2g} %"
            if not np.isnan(proven):
                text += f"; proven ε ≥ {proven:.3g}"
            if not place:
                text = f"{LOOK[noise][0]}: {text}"
            inside = end > 1e-3
            ax.text(
                end * (0.7 if inside else 1.6),
                place + shift,
                text,
                ha="right" if inside else "left",
                va="center",
                fontsize=7.5,
                color="white" if inside and noise == "gaussian" else style.INK,
            )
    ax.set_yticks(range(len(IMPLEMENTATIONS)), [NAMES[each] for each in IMPLEMENTATIONS])
    ax.tick_params(axis="y", labelcolor=style.INK)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set(xlim=(LEAST, 1.3), xlabel="Share of the answers on 0 that are impossible on 1")
    ax.minorticks_off()
    ax.grid(False, axis="y")
    ax.set_title(TITLE)
    claims = [table.where(noise=noise)["epsilon_claimed"][0] for noise in LOOK]
    text = (
        f"proven: by an audit; claimed are\nε = {claims[0]:.3g} (Laplace, δ = 0) and"
        f"\nε = {claims[1]:.3g} (Gaussian, δ = $10^{{-5}}$)"
    )
    ax.text(0.985, 0.19, text, transform=ax.transAxes, ha="right", **ABOVE)


def _draw_tail(ax: Axes, table: Table) -> None:
    """The share of answers that lie beyond the neighbour's reach."""
    for noise, (name, colour) in LOOK.items():
        rows = table.where(noise=noise)
        worse = np.maximum(rows["share_betraying"], rows["share_betraying_neighbour"])
        ax.plot(1 / rows["scale"], np.where(worse > 0, worse, np.nan), color=colour, label=name)
    ax.axhline(article.DELTA, color=style.MUTED, lw=0.9, ls=(0, (4, 2)))
    ax.text(0.11, article.DELTA * 1.3, "δ = $10^{-5}$", **ABOVE)
    style.name(ax, "Gaussian", (1.7, 4e-4), style.GAUSSIAN, ha="right")
    style.name(ax, "Laplace", (3.3, 4e-6), style.LAPLACE, ha="right")
    style.log_axis(ax, "x", (0.1, 1, 10))
    ax.set_yscale("log")
    ax.set(xlim=(0.1, 10), ylim=(LEAST, 1.3), xlabel="Sensitivity over scale")
    ax.set_ylabel("Share beyond the neighbour's reach")
    ax.minorticks_off()
    ax.set_title("float32 tails end early")
