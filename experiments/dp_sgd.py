"""Private training on handwritten digits: what accuracy costs, and what the accountant buys.

A linear classifier of scikit-learn's digits is trained by DP-SGD at several epsilons, with noise
calibrated by three accountants; canaries then audit the same program. All models of a part are
trained in one compiled program. Its settings were tried out on these very digits, as is the custom,
and the epsilons do not count that.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpjax.accounting import basic, calibrate, exact, loss, rdp
from dpjax.audit import one_run
from experiments import style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "Private training, and what the accountant buys"
SETTING = (
    "A linear classifier learns handwritten digits by DP-SGD at several claimed epsilons and delta"
    " 1e-5. Three accountants calibrate the noise of the same training, and canaries audit it."
)
COLUMNS = (
    "part",  # accuracy or audit
    "accountant",  # that calibrated the noise; none without privacy
    "canary",
    "clipped",  # each gradient, or the mean of a sample (a mistake)
    "epsilon",  # claimed
    "delta",
    "noise_multiplier",
    "learning_rate",
    "runs",
    "accuracy",  # on the test digits, mean of the runs
    "accuracy_standard_error",  # of the runs; the test digits are the same for all
    "accuracy_10",  # a tenth of the runs is below
    "accuracy_90",
    "guesses",
    "correct",
    "epsilon_proven",
    "epsilon_limit",  # that as many guesses would prove, were all correct
)
TRIALS = 50  # models of each point
SMALL = 3  # of them, where a test runs all experiments
EPSILONS = (0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
DELTA = 1e-5
SAMPLING_PROBABILITY, NUM_STEPS = 0.25, 60
CLIP_NORM = 1.0
PLAIN_LEARNING_RATE = 8.0  # without clipping and noise
CONFIDENCE = 0.95
ACCOUNTANTS = {"basic": basic.epsilon, "renyi": rdp.epsilon, "exact": exact.epsilon}
AUDITS = (  # canary, clipped
    ("own_pixels", "each"),
    ("noise_images", "each"),
    ("mislabelled", "each"),
    ("own_pixels", "mean"),
)


def noise_multipliers(accountant: str) -> np.ndarray:
    """The least noise at each epsilon that the accountant finds private enough."""

    def all_steps(noise_multiplier: np.ndarray) -> loss.PrivacyLoss:
        return NUM_STEPS * loss.sampled_gaussian(SAMPLING_PROBABILITY, noise_multiplier)

    return calibrate.noise_multiplier(
        all_steps, np.array(EPSILONS), DELTA, accountant=ACCOUNTANTS[accountant]
    )


def learning_rate(noise_multiplier: float) -> float:
    """Smaller where there is more noise, so that what is left of it in the weights is bounded."""
    return 20 / max(noise_multiplier, 1.0)


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each accountant and epsilon, one without privacy, and one for each audit.

    Args:
        trials: models of each row, at least 2.
        seed: of everything but the split of the digits.
        progress: called after each part.
    """
    from experiments import canaries, training  # here, so that a redraw needs no JAX

    if trials < 2:
        raise ValueError(f"--trials = {trials}: expected at least 2 models for each point")
    training.use_every_core()
    train, test = training.digits()
    noise = {accountant: noise_multipliers(accountant) for accountant in ACCOUNTANTS}
    private = [
        _row("accuracy", accountant, epsilon, enough, trials)
        for accountant in ACCOUNTANTS
        for epsilon, enough in zip(EPSILONS, noise[accountant], strict=True)
    ]
    plain = _row("accuracy", "none", np.inf, 0.0, trials) | {"learning_rate": PLAIN_LEARNING_RATE}
    rows = [*private, plain]
    found = training.accuracies(
        _keys(seed, rows, ("accountant", "epsilon")),
        train,
        test,
        _each_run(rows, "noise_multiplier"),
        np.repeat([CLIP_NORM] * len(private) + [np.inf], trials).astype(np.float32),
        _each_run(rows, "learning_rate"),
        sampling_probability=SAMPLING_PROBABILITY,
        num_steps=NUM_STEPS,
    )
    for row, of_runs in zip(rows, np.reshape(found, (-1, trials)), strict=True):
        row |= _spread(of_runs)
    progress(1, 1 + len(AUDITS))
    sums = {"each": training.clipped_sum, "mean": training.sum_clipped_as_one}
    for done, (canary, clipped) in enumerate(AUDITS, 2):
        claims = [
            _row("audit", "exact", epsilon, enough, trials) | {"canary": canary, "clipped": clipped}
            for epsilon, enough in zip(EPSILONS, noise["exact"], strict=True)
        ]
        outcomes = canaries.runs(
            _keys(seed, claims, ("canary", "clipped", "epsilon")),
            getattr(canaries, canary)(np.random.default_rng(seed), train),
            _each_run(claims, "noise_multiplier"),
            _each_run(claims, "learning_rate"),
            clip_norm=CLIP_NORM,
            sampling_probability=SAMPLING_PROBABILITY,
            num_steps=NUM_STEPS,
            gradient_sum=sums[clipped],
        )
        scores, coins = (np.reshape(part, (len(claims), trials, -1)) for part in outcomes)
        for i, row in enumerate(claims):
            rows.append(row | _proven(*canaries.guessed(scores[i], coins[i]), coins[i].size))
        progress(done, 1 + len(AUDITS))
    return rows


def _row(part: str, accountant: str, epsilon: float, noise: float, runs: int) -> dict[str, Any]:
    """A row's settings, its results still empty."""
    return dict.fromkeys(COLUMNS) | {
        "part": part,
        "accountant": accountant,
        "clipped": "each" if np.isfinite(epsilon) else "none",
        "epsilon": epsilon,
        "delta": DELTA if np.isfinite(epsilon) else None,
        "noise_multiplier": float(noise),
        "learning_rate": learning_rate(float(noise)),
        "runs": runs,
    }


def _keys(seed: int, rows: list[dict[str, Any]], axes: tuple[str, ...]) -> Any:
    """A key for each run of each row, from what the row is called on these axes."""
    from experiments import training

    places = [{axis: row[axis] for axis in axes} for row in rows]
    return training.keys(seed, f"dp_sgd {rows[0]['part']}", places, rows[0]["runs"])


def _each_run(rows: list[dict[str, Any]], column: str) -> np.ndarray:
    """A column's value for each run of each row."""
    return np.repeat([row[column] for row in rows], rows[0]["runs"]).astype(np.float32)


def _spread(accuracies: np.ndarray) -> dict[str, float]:
    """Mean and spread of the accuracies of a row's runs."""
    low, high = np.quantile(accuracies, [0.1, 0.9])
    return {
        "accuracy": float(np.mean(accuracies, dtype=float)),
        "accuracy_standard_error": float(np.std(accuracies, ddof=1) / len(accuracies) ** 0.5),
        "accuracy_10": float(low),
        "accuracy_90": float(high),
    }


def _proven(correct: int, guesses: int, num_canaries: int) -> dict[str, float]:
    """What the guesses of a row's runs prove."""
    bound = one_run.epsilon_lower_bound(
        correct, guesses, num_canaries, delta=DELTA, confidence=CONFIDENCE
    )
    return {
        "correct": correct,
        "guesses": guesses,
        "epsilon_proven": bound,
        "epsilon_limit": one_run.limit(guesses, confidence=CONFIDENCE),
    }


NAMES = {"basic": "basic", "renyi": "Rényi", "exact": "exact"}


def report(table: Table) -> str:
    """Accuracy, noise and audit at each epsilon."""
    columns = "".join(f"{f'eps {epsilon:g}':>9}" for epsilon in EPSILONS)
    accuracy, audit = table.where(part="accuracy"), table.where(part="audit")
    plain = accuracy.where(accountant="none")
    lines = [
        f"Accuracy on the test digits, mean of {plain['runs'][0]:.0f} models, at delta {DELTA:g};"
        f" without privacy {plain['accuracy'][0]:.1%}",
        f"{'accountant':32}{columns}",
    ]
    for accountant, name in NAMES.items():
        values = accuracy.where(accountant=accountant)["accuracy"]
        lines.append(f"{name:32}" + "".join(f"{value:9.1%}" for value in values))
    lines.append(
        f"Noise multiplier ({NUM_STEPS} steps, sampling probability {SAMPLING_PROBABILITY})"
    )
    for accountant, name in NAMES.items():
        values = accuracy.where(accountant=accountant)["noise_multiplier"]
        lines.append(f"{name:32}" + "".join(f"{value:9.2f}" for value in values))
    lines.append(f"Epsilon that the canaries prove ({CONFIDENCE:.0%} confidence)")
    for canary, clipped in AUDITS:
        values = audit.where(canary=canary, clipped=clipped)["epsilon_proven"]
        name = LOOK[canary, clipped][0].replace("\n", " ")
        lines.append(f"{name:32}" + "".join(f"{value:9.2f}" for value in values))
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    accuracy, audit = table.where(part="accuracy"), table.where(part="audit")

    def percent(accountant: str, epsilon: float) -> str:
        row = accuracy.where(accountant=accountant, epsilon=epsilon)
        return f"{row['accuracy'][0]:.1%}"

    best = audit.where(canary="own_pixels", clipped="each", epsilon=8.0)["epsilon_proven"][0]
    wrong = audit.where(canary="own_pixels", clipped="mean", epsilon=1.0)["epsilon_proven"][0]
    return (
        f"With exact accounting the classifier gets {percent('exact', 1.0)} of the test digits"
        f" right at epsilon 1, {percent('exact', 3.0)} at 3 and {percent('exact', 8.0)} at 8,"
        f" against {percent('none', np.inf)} without privacy; with basic composition, which asks"
        f" for far more noise, {percent('basic', 1.0)}, {percent('basic', 3.0)} and"
        f" {percent('basic', 8.0)}. Canaries prove at most {best:.1f} of a claimed 8 where all is"
        f" right, but {wrong:.1f} of a claimed 1 where the mean gradient is clipped instead of each"
        " record's. Use a tight accountant, and audit the training."
    )


LINE = {
    "basic": (style.CUSTOMARY, (0, (1, 1.2)), "^"),
    "renyi": (style.MIDDLE, (0, (2.5, 1)), "v"),
    "exact": (style.GAUSSIAN, "-", "s"),
}
WRONG = "#b3312c"
LOOK = {  # of the audits: name, colour, marker
    ("own_pixels", "each"): ("pixels of their own", style.GAUSSIAN, "s"),
    ("noise_images", "each"): ("images of noise", style.MIDDLE, "v"),
    ("mislabelled", "each"): ("mislabelled digits", style.CUSTOMARY, "^"),
    ("own_pixels", "mean"): ("mean gradient clipped\n(a mistake)", WRONG, "X"),
}


def draw(table: Table) -> Figure:
    """Accuracy and noise against epsilon, and the audit's bounds against the claims."""
    figure, axes = style.figure(
        9.6, 5.2, [["accuracy", "audit"], ["noise", "audit"]], height_ratios=[2.4, 1]
    )
    accuracy = table.where(part="accuracy")
    _draw_accuracy(axes["accuracy"], accuracy)
    _draw_noise(axes["noise"], accuracy)
    _draw_audit(axes["audit"], table.where(part="audit"))
    return figure


def _draw_accuracy(ax: Axes, rows: Table) -> None:
    """Means with their standard errors in the band of the runs."""
    for accountant, (colour, line, marker) in LINE.items():
        of = rows.where(accountant=accountant)
        x, low, high = (of[name] for name in ("epsilon", "accuracy_10", "accuracy_90"))
        ax.fill_between(x, 100 * low, 100 * high, color=style.shade(colour, 0.18), lw=0)
        ax.plot(x, 100 * of["accuracy"], color=colour, ls=line)
        error = 100 * of["accuracy_standard_error"]
        ax.errorbar(x, 100 * of["accuracy"], error, **style.points(colour, marker, size=3.8))
    plain = rows.where(accountant="none")["accuracy"][0]
    ax.axhline(100 * plain, color=style.MUTED, lw=1)
    style.name(ax, f"without privacy {plain:.1%}", (0.3, 97), style.MUTED, fontsize=8)
    for epsilon in (1.0, 3.0, 8.0):
        of = rows.where(accountant="exact", epsilon=epsilon)["accuracy"][0]
        ax.annotate(
            f"{of:.1%}",
            (epsilon, 100 * of),
            (4, -5),
            textcoords="offset points",
            va="top",
            ha="right" if epsilon == EPSILONS[-1] else "left",
            fontsize=8,
            color=style.GAUSSIAN,
        )
    style.name(ax, "exact", (0.5, 90), style.GAUSSIAN)
    style.name(ax, "Rényi", (0.57, 78), style.MIDDLE)
    style.name(ax, "basic", (2.6, 60), style.CUSTOMARY)
    style.log_axis(ax, "x", EPSILONS)
    # The share of errors on a logarithmic scale: from 90 to 95 % is as far as from 80 to 90 %.
    ax.set_yscale("function", functions=(_halvings, _after_halvings))
    ax.set(ylim=(0, 97.7), xlim=(0.27, 9.5), yticks=(0, 20, 40, 60, 70, 80, 85, 90, 95))
    ax.set_ylabel("Accuracy on the test digits (%)")
    ax.set_title(TITLE)
    runs = f"{rows['runs'][0]:.0f} models each; bands: 80 % of them"
    options: dict[str, Any] = style.SMALL | {"ha": "right", "va": "bottom"}
    ax.text(0.99, 0.03, runs, transform=ax.transAxes, **options)


def _halvings(accuracy: np.ndarray) -> np.ndarray:
    """How often the errors were halved to get from 0 % to this accuracy."""
    return -np.log2(np.maximum(1 - np.asarray(accuracy) / 100, 1e-3))


def _after_halvings(number: np.ndarray) -> np.ndarray:
    """The accuracy after so many halvings of the errors."""
    return 100 * (1 - 0.5 ** np.asarray(number))


def _draw_noise(ax: Axes, rows: Table) -> None:
    """The noise that each accountant asks for."""
    for accountant, (colour, line, marker) in LINE.items():
        of = rows.where(accountant=accountant)
        ax.plot(of["epsilon"], of["noise_multiplier"], color=colour, ls=line, marker=marker, ms=3.5)
    style.log_axis(ax, "x", EPSILONS)
    style.log_axis(ax, "y", (1, 10, 100))
    ax.set(xlim=(0.27, 9.5), ylim=(0.9, 350))
    ax.set_xlabel("Claimed ε, at δ = $10^{-5}$")
    ax.set_ylabel("Noise\nmultiplier")


def _draw_audit(ax: Axes, rows: Table) -> None:
    """What the canaries prove; above the diagonal, that the claim is false."""
    end = 8.6
    ax.fill_between([0, end], [0, end], end, color=style.shade(WRONG, 0.07), lw=0)
    ax.plot([0, end], [0, end], color=style.INK, lw=0.9)
    for (canary, clipped), (name, colour, marker) in LOOK.items():
        of = rows.where(canary=canary, clipped=clipped)
        proven = of["epsilon_proven"]
        ax.plot(of["epsilon"], proven, color=colour, marker=marker, ms=5, mec="white", mew=0.6)
        if clipped == "mean":
            style.name(ax, name, (0.15, 4.05), colour, fontsize=8)
        else:
            style.name(ax, name, (8.25, proven[-1] + 0.22), colour, ha="right", fontsize=8)
    limit = rows["epsilon_limit"][0]
    ax.axhline(limit, color=style.MUTED, lw=0.9, ls=(0, (1, 2)))
    guesses = rows["guesses"][0]
    text = f"most that {guesses:,.0f} guesses can prove"
    ax.text(0.1, limit + 0.12, text, fontsize=8, color=style.MUTED)
    ax.text(0.1, end - 0.4, "claim contradicted", color=WRONG, fontsize=8.5, va="top")
    ax.set(xlim=(0, end), ylim=(-0.15, end), xlabel="Claimed ε, at δ = $10^{-5}$")
    ax.set_ylabel(f"ε that canaries prove, {CONFIDENCE:.0%} confidence")
    ax.set_title("What canaries prove about it")
