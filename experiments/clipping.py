"""A bounded mean of real records: a low bound biases it, a high one costs noise.

The mean of 442 patients' disease progression, each value clipped into [0, bound], with Laplace
noise at the sensitivity bound / 442 (the number of patients is public: replace_one).
"""

from functools import partial

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import optimize

from dpjax import queries, theory
from experiments import patients, style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "A clipped mean: bias against noise"
SETTING = (
    "The mean disease progression of the 442 patients is released with Laplace noise; their number"
    " is public. Each value is first clipped to a bound: a low bound shifts the mean (bias), a high"
    " one takes more noise."
)
COLUMNS = (
    "part",  # curve, simulated or best
    "epsilon",
    "bound",
    "bias",  # of the clipped mean
    "noise_theory",  # RMSE of the noise alone
    "rmse_theory",  # of both together
    "trials",
    "rmse",
    "rmse_standard_error",
)
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
BOUNDS = np.arange(20.0, 501.0, 5.0)
SIMULATED = np.array([50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0, 450.0])


def bias(records: np.ndarray, bound: float) -> float:
    """How far clipping moves the mean."""
    mean = queries.bounded_mean(0, bound, num_records=len(records))
    return float(mean(records) - np.mean(records))


def scale(people: int, bound: float, epsilon: float) -> float:
    """Of the Laplace noise on the mean."""
    mean = queries.bounded_mean(0, bound, num_records=people)
    return mean.sensitivity("replace_one", norm=1) / epsilon


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """The law against the bound, its least error, and simulated points, at each epsilon."""
    import dpjax  # here, so that a redraw needs no JAX
    from experiments import simulation

    records = patients.progression()

    def row(part: str, epsilon: float, bound: float, **cells: Cell) -> dict[str, Cell]:
        noise = float(theory.Laplace(scale(len(records), bound, epsilon)).rmse)
        moved = bias(records, bound)
        return dict.fromkeys(COLUMNS) | {
            "part": part,
            "epsilon": epsilon,
            "bound": float(bound),
            "bias": moved,
            "noise_theory": noise,
            "rmse_theory": float(np.hypot(moved, noise)),
            **cells,
        }

    rows = [row("curve", epsilon, bound) for epsilon in EPSILONS for bound in BOUNDS]
    for epsilon in EPSILONS:
        rows.append(row("best", epsilon, _best(records, epsilon)))
        for bound in SIMULATED:
            key = simulation.point_key(seed, "clipping", {"epsilon": epsilon, "bound": bound})
            release = partial(dpjax.laplace, scale=np.float32(scale(len(records), bound, epsilon)))
            # the clipped mean as seen from the true one, so that the answer itself is the error
            found = dpjax.simulate(
                key, release, np.float32(bias(records, bound)), trials, measure=whole_error
            )
            rows.append(
                row("simulated", epsilon, bound)
                | {
                    "trials": trials,
                    "rmse": float(found.rmse),
                    "rmse_standard_error": float(found.rmse_standard_error),
                }
            )
            progress(
                sum(row["part"] == "simulated" for row in rows), len(EPSILONS) * len(SIMULATED)
            )
    return rows


def whole_error(answer, value):
    """Bias and noise together."""
    return answer


def _best(records: np.ndarray, epsilon: float) -> float:
    """The bound of least error: the squared error is convex between records."""

    def square(bound: float) -> float:
        noise = theory.Laplace(scale(len(records), bound, epsilon)).rmse
        return float(bias(records, bound) ** 2 + noise**2)

    nearest = min(BOUNDS, key=square)
    step = BOUNDS[1] - BOUNDS[0]
    ends = (max(nearest - step, 1.0), nearest + step)
    return float(optimize.minimize_scalar(square, bounds=ends, method="bounded").x)  # pyright: ignore


def report(table: Table) -> str:
    """The best bound and what it costs, beside the bound that clips nobody."""
    records = patients.progression()
    lines = [
        f"Mean progression of {len(records)} patients, {np.mean(records):.2f}; bounds [0, bound],"
        " Laplace noise, RMSE in points",
        f"{'epsilon':>7} {'best bound':>10} {'bias':>8} {'noise':>8} {'RMSE':>8}"
        f" {'RMSE at 350':>11}",
    ]
    for epsilon in EPSILONS:
        best = table.where(part="best", epsilon=epsilon)
        wide = table.where(part="curve", epsilon=epsilon, bound=350)
        lines.append(
            f"{epsilon:7g} {best['bound'][0]:10.1f} {best['bias'][0]:8.3f}"
            f" {best['noise_theory'][0]:8.3f} {best['rmse_theory'][0]:8.3f}"
            f" {wide['rmse_theory'][0]:11.3f}"
        )
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    strict, loose = (table.where(part="best", epsilon=e) for e in (EPSILONS[0], EPSILONS[-1]))
    nobody = table.where(part="curve", epsilon=EPSILONS[0], bound=350)["rmse_theory"][0]
    return (
        f"The smaller the budget, the lower the best bound: {loose['bound'][0]:.0f} points at"
        f" epsilon {EPSILONS[-1]:g}, and {strict['bound'][0]:.0f} at epsilon {EPSILONS[0]:g}. There"
        f" clipping shifts the mean by {-strict['bias'][0]:.0f} points and noise adds an error of"
        f" {strict['noise_theory'][0]:.0f}, but a bound that clips nobody would cost {nobody:.0f}."
        " Choose the bound for your epsilon, from what was known before the data: looking at them"
        " spends budget too."
    )


def draw(table: Table) -> Figure:
    """Error against the bound at each epsilon, the minima marked; the bias that all share."""
    figure, axes = style.figure(7.2, 5.0, [["error"]])
    ax = axes["error"]
    curve = table.where(part="curve", epsilon=EPSILONS[0])
    ax.plot(curve["bound"], -curve["bias"], color=style.LAPLACE, lw=1.4, ls=(0, (4, 1.5)))
    for i, epsilon in enumerate(EPSILONS):
        colour = to_hex(style.shade(style.GAUSSIAN, 0.4 + 0.6 * i / (len(EPSILONS) - 1)))
        curve = table.where(part="curve", epsilon=epsilon)
        ax.plot(curve["bound"], curve["rmse_theory"], color=colour)
        points = table.where(part="simulated", epsilon=epsilon)
        ax.errorbar(
            points["bound"],
            points["rmse"],
            points["rmse_standard_error"],
            **style.points(colour, "o", size=3.6),
        )
        best = table.where(part="best", epsilon=epsilon)
        at = (best["bound"][0], best["rmse_theory"][0])
        ax.plot(*at, "o", ms=8, mfc=colour, mec="white", mew=1.2, zorder=4)
        ax.annotate(
            f"{at[0]:.0f}",
            at,
            (0, -13),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=style.legible(colour),
        )
        style.name(ax, f"ε = {epsilon:g}", (506, curve["rmse_theory"][-1]), colour, va="center")
    style.log_axis(ax, "y", (0.1, 1, 10, 100))
    ax.set(
        xlim=(20, 500),
        ylim=(0.15, 420),
        xlabel="Bound that values are clipped to (points of progression)",
    )
    ax.set_ylabel("RMSE of the mean, Laplace noise (points)")
    ax.set_title("The smaller ε, the lower the best bound (mean of 442 patients)")
    style.name(ax, "bias alone", (326, 0.3), style.LAPLACE, fontsize=8.5)
    trials = style.power(table.where(part="simulated")["trials"][0])
    style.note(
        ax, f"lines: theory; points: simulated, {trials} trials each\nfilled: the best bound"
    )
    return figure
