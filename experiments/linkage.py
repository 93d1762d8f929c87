"""Who is alone? Patients that a few columns single out, in bands, and in a noisy histogram.

Scikit-learn's 442 diabetes patients carry no names. Whoever knows a patient's age, sex, BMI and
blood pressure finds the row if it is the only one with these values. A histogram over all values
that could occur, with noise in every cell, shows a one where someone is alone, and where nobody is.
"""

import functools
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpjax import theory
from dpjax.accounting import risk
from experiments import style
from experiments.progress import Progress
from experiments.table import Cell, Table

TITLE = "Who is alone? 442 patients and four columns"
SETTING = (
    "The table of the 442 patients is published without names. Whoever knows some of a patient's"
    " columns looks whether one row only has these values; then the same is tried on a histogram"
    " with noise in every cell."
)
COLUMNS = (
    "part",  # unique or histogram
    "detail",
    "columns",
    "patients",
    "cells",  # that there could be
    "occupied",
    "unique",  # patients alone in their cell, hence cells of one
    "largest",  # patients in the fullest cell
    "epsilon",
    "trials",
    "found_theory",  # cells of one that the noisy histogram shows as one
    "found",
    "found_standard_error",
    "false_theory",  # other cells that it shows as one
    "false",
    "false_standard_error",
    "right",  # share of the ones shown that are
    "right_bound",  # the most that epsilon allows
    "rmse",  # of each cell, in patients
)
EPSILON = 1.0
NAMES = ("age", "sex", "BMI", "blood pressure")
# The ranges are fixed beforehand and not those of the patients, which would give some away.
LOW = np.array([10.0, 1.0, 15.0, 60.0])  # years, 1 or 2, kg/m^2, mmHg
HIGH = np.array([90.0, 3.0, 45.0, 140.0])


class Detail(NamedTuple):
    """How finely the columns are told apart, and its look."""

    name: str
    widths: tuple[float, float, float, float]  # of a band, in the units of LOW
    colour: str
    marker: str


DETAILS = {
    "recorded": Detail("as recorded", (1, 1, 0.1, 1 / 3), style.GAUSSIAN, "s"),
    "fine": Detail("5 years, 2 kg/m², 5 mmHg", (5, 1, 2, 5), style.MIDDLE, "v"),
    "bands": Detail("10 years, 5 kg/m², 10 mmHg", (10, 1, 5, 10), style.CUSTOMARY, "^"),
    "wide": Detail("20 years, 10 kg/m², 20 mmHg", (20, 1, 10, 20), style.LAPLACE, "o"),
}


def patients() -> np.ndarray:
    """(442, 4): age, sex, BMI and blood pressure, in their own units."""
    from sklearn.datasets import load_diabetes  # here: it is slow to import

    features, _ = load_diabetes(scaled=False, return_X_y=True)
    return np.asarray(features)[:, : len(NAMES)]


def cells(people: np.ndarray, detail: str) -> np.ndarray:
    """(patients, columns): the number of each patient's band, from 0."""
    # Recorded values are rounded decimals such as 93.67, a hair beside the edge of their band.
    return np.floor((people - LOW) / DETAILS[detail].widths + 0.02).astype(int)


def bands(detail: str) -> np.ndarray:
    """How many bands each column has."""
    return np.rint((HIGH - LOW) / DETAILS[detail].widths).astype(int)


def counts(people: np.ndarray, detail: str, num_columns: int) -> np.ndarray:
    """Patients in each cell of the first columns that has any."""
    return np.unique(cells(people, detail)[:, :num_columns], axis=0, return_counts=True)[1]


def run(trials: int, seed: int, progress: Progress) -> list[dict[str, Cell]]:
    """One row for each detail and number of columns, and one for each detail's noisy histogram.

    Args:
        trials: noisy cells whose noise is simulated.
        seed: of the noise.
        progress: called after each detail.
    """
    people, rows = patients(), []
    found_in = {detail: counts(people, detail, len(NAMES)) for detail in DETAILS}
    most = max(int(found.max()) for found in found_in.values())
    shares = _shares_shown_as_one(most, trials, seed)
    for done, detail in enumerate(DETAILS, 1):
        tallies = [
            _tally(detail, num_columns, counts(people, detail, num_columns))
            for num_columns in range(1, len(NAMES) + 1)
        ]
        rows += [tally | {"part": "unique"} for tally in tallies]
        number = np.bincount(found_in[detail], minlength=most + 1)
        number[0] = np.prod(bands(detail)) - number.sum()
        shown = _shown(number, shares, trials)
        noisy = {"part": "histogram", "epsilon": EPSILON, "trials": trials}
        rows.append(tallies[-1] | noisy | shown)
        progress(done, len(DETAILS))
    return rows


def _tally(detail: str, num_columns: int, there: np.ndarray) -> dict[str, Cell]:
    """How many patients a detail of the first columns singles out."""
    return dict.fromkeys(COLUMNS) | {
        "detail": detail,
        "columns": num_columns,
        "patients": int(there.sum()),
        "cells": int(np.prod(bands(detail)[:num_columns])),
        "occupied": len(there),
        "unique": int(np.sum(there == 1)),
        "largest": int(there.max()),
    }


def _shares_shown_as_one(most: int, trials: int, seed: int) -> np.ndarray:
    """Simulated shares of cells of 0, 1, ..., `most` patients that show a one.

    The noise does not depend on the count, so one run serves all: a cell of c shows a one where
    its noise is 1 - c.
    """
    import dpjax  # here, as is JAX behind it, so that a redraw needs none
    from experiments import simulation

    key = simulation.point_key(seed, "linkage", {"epsilon": EPSILON})
    mechanism = functools.partial(dpjax.discrete_laplace, scale=np.float32(1 / EPSILON))
    edges = np.arange(1 - most, 3) - np.float32(0.5)
    counted = dpjax.simulate(key, mechanism, np.int32(0), trials, edges=edges).histogram
    assert counted is not None  # there are edges
    return counted.counts[1:-1][::-1] / trials


def _shown(number: np.ndarray, shares: np.ndarray, trials: int) -> dict[str, float]:
    """Expected cells that show a one, from how many cells there are of 0, 1, 2, ... patients."""
    others = np.where(np.arange(len(number)) == 1, 0, number)
    law = theory.DiscreteLaplace(1 / EPSILON)
    true_shares = np.asarray(law.probability(1.0 - np.arange(len(number))))
    found, wrong = number[1] * shares[1], others @ shares
    return {
        "found_theory": float(number[1] * true_shares[1]),
        "found": float(found),
        "found_standard_error": float(number[1] * np.sqrt(shares[1] * (1 - shares[1]) / trials)),
        "false_theory": float(others @ true_shares),
        "false": float(wrong),
        # each simulated noise adds `others` of the cells that it would turn into a one
        "false_standard_error": float(np.sqrt((others**2 @ shares - wrong**2) / trials)),
        "right": float(found / (found + wrong)),
        # of a cell of one against an empty one; other cells that show a one only lower the share
        "right_bound": float(risk.posterior(number[1] / number[:2].sum(), epsilon=EPSILON)),
        "rmse": float(law.rmse),
    }


def report(table: Table) -> str:
    """Unique patients by columns, and what the noisy histogram shows of them."""
    lines = [
        "Patients that are alone, of 442, as columns are added",
        f"{'detail':28}" + "".join(f"{name:>16}" for name in NAMES),
    ]
    for detail, look in DETAILS.items():
        rows = table.where(part="unique", detail=detail)
        lines.append(f"{look.name:28}" + "".join(f"{unique:16.0f}" for unique in rows["unique"]))
    lines += [
        f"Cells that a noisy histogram of all four shows as one, at epsilon {EPSILON:g}",
        f"{'detail':28}{'cells':>12}{'of one':>8}{'found':>9}{'false':>12}{'right':>10}"
        f"{'bound':>10}",
    ]
    for detail, look in DETAILS.items():
        row = table.where(part="histogram", detail=detail)
        lines.append(
            f"{look.name:28}{row['cells'][0]:12,.0f}{row['unique'][0]:8.0f}{row['found'][0]:9.2f}"
            f"{row['false'][0]:12,.1f}{row['right'][0]:10.3%}{row['right_bound'][0]:10.3%}"
        )
    return "\n".join(lines)


def reading(table: Table) -> str:
    """What the figure shows and what to do about it, in a few sentences."""
    three = table.where(part="unique", columns=3.0, detail="recorded")["unique"][0]
    wide = table.where(part="unique", columns=4.0, detail="wide")["unique"][0]
    coarse = table.where(part="histogram", detail="wide")
    return (
        f"Age, sex and BMI single out {three:.0f} of the 442 patients, and even bands of 20 years,"
        f" 10 kg/m² and 20 mmHg leave {wide:.0f} of them alone: to leave out names protects nobody."
        f" In a noisy histogram of these bands, at epsilon {EPSILON:g}, each count is off by"
        f" {coarse['rmse'][0]:.1f} patients (RMSE), and of the cells that show exactly one patient"
        f" {coarse['right'][0]:.0%} are right. Publish noisy counts of wide cells, and not rows."
    )


def draw(table: Table) -> Figure:
    """Patients alone as columns are added, and the ones that a noisy histogram shows."""
    figure, axes = style.figure(10.8, 4.3, [["unique", "histogram"]], width_ratios=[1.35, 1])
    _draw_unique(axes["unique"], table.where(part="unique"))
    _draw_histogram(axes["histogram"], table.where(part="histogram"))
    return figure


def _draw_unique(ax: Axes, rows: Table) -> None:
    """A line for each detail."""
    for detail, look in DETAILS.items():
        of = rows.where(detail=detail)
        x, share = of["columns"], 100 * of["unique"] / of["patients"]
        ax.plot(x, share, color=look.colour, marker=look.marker, ms=5, mec="white", mew=0.6)
        for i, number in enumerate(of["unique"][:3]):
            if number > 3:
                ax.annotate(
                    f"{number:.0f}",
                    (x[i], share[i]),
                    (-3, 4),
                    textcoords="offset points",
                    ha="right",
                    fontsize=8,
                    color=style.legible(look.colour),
                )
        text = f"{of['unique'][3]:.0f}  {look.name}"
        style.name(ax, text, (4.12, share[3]), look.colour, va="center", fontsize=8)
    ax.set_xticks(range(1, 5), [NAMES[0], *(f"+ {name}" for name in NAMES[1:])])
    ax.set(xlim=(0.75, 6.55), ylim=(-3, 106), ylabel="Patients alone (%)")
    ax.set_title("Who is alone, as columns are added")


def _draw_histogram(ax: Axes, rows: Table) -> None:
    """Two bars for each detail: cells that are and cells that are not what they show."""
    for i, (detail, look) in enumerate(DETAILS.items()):
        row = rows.where(detail=detail)
        for offset, kind, shade in ((-0.19, "found", 1.0), (0.19, "false", 0.35)):
            number = row[kind][0]
            y = i + offset
            ax.barh(y, number, 0.36, left=0.1, color=style.shade(look.colour, shade))
            what = f"{number:,.0f} wrong"
            if kind == "found":
                what = f"{number:,.0f} right, {100 * row['right'][0]:.2g} % of those shown"
            ax.annotate(
                what, (number, y), (3, 0), textcoords="offset points", va="center", fontsize=8
            )
    names = [look.name.replace(", ", "\n", 1) for look in DETAILS.values()]
    ax.set_yticks(range(len(DETAILS)), names)
    ax.set(xscale="log", xlim=(0.8, 2e8), ylim=(len(DETAILS) - 0.5, -0.5))
    ax.set_xlabel("Cells that show exactly one patient")
    ax.grid(axis="y", visible=False)
    ax.set_title(f"Who seems alone in a noisy histogram, ε = {EPSILON:g}")
