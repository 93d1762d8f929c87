"""The most common age among 442 patients, chosen in private: how often right, and at what loss.

Scores are the counts of ten decades of age; one patient replaced by another changes each by at most
1, and not all in one direction, so that scale 2 / epsilon gives epsilon-DP to all mechanisms.
"""

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from dpjax import queries, theory
from experiments import patients, style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "Choosing the most common age"
SETTING = (
    "Which decade of age is the most common among the 442 patients? A mechanism chooses one of ten"
    " decades by noisy scores, the numbers of patients in them; a neighbour has one patient"
    " exchanged for another."
)
COLUMNS = (
    "mechanism",
    "epsilon",
    "scale",
    "right_theory",  # chance of the highest count
    "lost_theory",  # mean of how far the chosen count lies below it, in patients
    "trials",
    "right",
    "right_standard_error",
    "lost",
    "lost_standard_error",
)
EPSILONS = np.array([float(f"{10 ** (i / 4):.4g}") for i in range(-10, 3)])
DECADES = np.arange(0, 101, 10)
# Report noisy max with Gumbel noise is the exponential mechanism, with exponential noise it is
# permute-and-flip: dpjax draws both so. The exponential mechanism comes by its weights, too.
LAWS = {
    "exponential_by_weights": theory.selection.exponential_mechanism,
    "exponential_mechanism": theory.selection.exponential_mechanism,
    "report_noisy_max": theory.selection.report_noisy_max,
    "permute_and_flip": theory.selection.permute_and_flip,
}


def scores() -> np.ndarray:
    """How many patients are in each decade of age."""
    return np.asarray(queries.histogram(DECADES)(patients.ages()))


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each mechanism and epsilon."""
    counts = scores()
    rows = []
    for mechanism, law in LAWS.items():
        for epsilon in EPSILONS:
            scale = 2 * queries.histogram(DECADES).sensitivity("replace_one", norm=np.inf) / epsilon
            chances = law(counts, scale)
            rows.append(
                {
                    "mechanism": mechanism,
                    "epsilon": float(epsilon),
                    "scale": float(scale),
                    "right_theory": float(chances[np.argmax(counts)]),
                    "lost_theory": float(theory.selection.expected_gap(counts, chances)),
                    "trials": trials,
                }
                | _simulated(mechanism, float(epsilon), float(scale), trials, seed)
            )
            progress(len(rows), len(LAWS) * len(EPSILONS))
    return rows


def _simulated(
    mechanism: str, epsilon: float, scale: float, trials: int, seed: int
) -> dict[str, Cell]:
    """Chance of the highest count and score lost, from the same choices."""
    import dpjax  # here, so that a redraw needs no JAX
    from experiments import simulation

    point: dict[str, str | float] = {"mechanism": mechanism, "epsilon": epsilon}
    key = simulation.point_key(seed, "selection", point)
    choose = getattr(dpjax, mechanism, by_weights)
    counts = scores().astype(np.float32)
    found = dpjax.simulate(
        key, partial(choose, scale=np.float32(scale)), counts, trials, measure=wrong_and_lost
    )
    wrong, lost = found.mean
    right_error, lost_error = found.mean_standard_error
    return {
        "right": 1 - float(wrong),
        "right_standard_error": float(right_error),
        "lost": float(lost),
        "lost_standard_error": float(lost_error),
    }


def by_weights(key, value, *, scale):
    """The exponential mechanism as it is defined: a uniform number among the added up weights."""
    import jax
    import jax.numpy as jnp

    reached = jnp.cumsum(jax.nn.softmax(value / scale, axis=-1), axis=-1)
    place = jax.random.uniform(key, (*value.shape[:-1], 1)) * reached[..., -1:]
    return (place >= reached).sum(axis=-1)


def wrong_and_lost(answer, value):
    """0 if the choice is the highest and 1 if not, and how far it lies below."""
    import jax.numpy as jnp

    from dpjax.mechanisms.selection import score_lost

    lost = score_lost(answer, value)
    return jnp.stack([(lost > 0).astype(lost.dtype), lost], axis=-1)


def report(table: Table) -> str:
    """Chance and loss at some epsilons."""
    counts = scores()
    best = int(np.argmax(counts))
    shown = [e for e in (0.01, 0.03162, 0.1, 0.3162, 1.0) if e in table["epsilon"]]
    lines = [
        f"The most common age of {counts.sum():.0f} patients: {DECADES[best]} to"
        f" {DECADES[best + 1]} years, {counts[best]:.0f} patients,"
        f" {counts[best] - np.sort(counts)[-2]:.0f} more than the next; chance right and patients"
        " lost",
        f"{'mechanism':23}" + "".join(f"{f'epsilon {e:.2g}':>17}" for e in shown),
    ]
    for mechanism in LAWS:
        rows = [table.where(mechanism=mechanism, epsilon=e) for e in shown]
        cells = (f"{row['right'][0]:9.4f} {row['lost'][0]:7.3f}" for row in rows)
        lines.append(f"{mechanism:23}" + "".join(cells))
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    rows = table.where(epsilon=0.1)
    right = {m: rows.where(mechanism=m)["right_theory"][0] for m in LAWS}
    lost = {m: rows.where(mechanism=m)["lost_theory"][0] for m in LAWS}
    return (
        "At epsilon 0.1 permute-and-flip names the most common decade with probability"
        f" {right['permute_and_flip']:.2f}, noisy max with Laplace noise with"
        f" {right['report_noisy_max']:.2f} and the exponential mechanism with"
        f" {right['exponential_mechanism']:.2f}. At the same guarantee choose by permute-and-flip:"
        f" its choice has {lost['permute_and_flip']:.1f} patients fewer than the best on average,"
        f" that of the exponential mechanism {lost['exponential_mechanism']:.1f}."
    )


LOOK = {  # name, colour, marker, line
    "report_noisy_max": ("noisy max, Laplace", style.LAPLACE, "o", "-"),
    "exponential_mechanism": (
        "exponential mechanism\n= noisy max, Gumbel",
        style.CUSTOMARY,
        "s",
        "-",
    ),
    "exponential_by_weights": (None, style.CUSTOMARY, "x", "-"),
    "permute_and_flip": (
        "permute-and-flip\n= noisy max, exponential",
        style.GAUSSIAN,
        "^",
        "-",
    ),
}


def draw(table: Table) -> Figure:
    """Chance of the right answer, and score lost, against epsilon."""
    figure, axes = style.figure(9.2, 4.2, [["right", "lost"]])
    for what, ax in axes.items():
        for mechanism, (name, colour, marker, line) in LOOK.items():
            rows = table.where(mechanism=mechanism)
            if name:
                label = name if what == "right" else None
                ax.plot(rows["epsilon"], rows[f"{what}_theory"], color=colour, ls=line, label=label)
            ax.errorbar(
                rows["epsilon"],
                rows[what],
                rows[f"{what}_standard_error"],
                **style.points(colour, marker, size=4.2),
            )
        style.log_axis(ax, "x", (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3))
        ax.set(xlim=(0.0027, 3.7), xlabel="ε of the choice")
    right, lost = axes["right"], axes["lost"]
    right.axhline(1 / (len(DECADES) - 1), color=style.MUTED, lw=0.8, ls=(0, (2, 2)))
    right.text(0.45, 1 / (len(DECADES) - 1) - 0.02, "a guess among ten", **style.SMALL)
    right.set(ylim=(0, 1.02), ylabel="Chance of the most common decade")
    right.set_title("How often the choice is right")
    right.legend(loc="upper left", fontsize=8)
    lost.set_ylabel("Mean score lost (patients)")
    lost.set_ylim(bottom=0)
    lost.set_title("What a wrong choice costs")
    trials = style.power(table["trials"][0])
    style.note(
        lost,
        f"lines: theory; points: simulated, {trials} trials each\n×: exponential mechanism by"
        " its weights",
    )
    return figure
