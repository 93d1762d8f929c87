"""`dpjax crossover`: from how many queries Gaussian noise has the lower error."""

from typing import Any

import click

from dpjax import _validate, curves
from dpjax.cli import options
from dpjax.cli.output import ImpossibleWish, emit, number, table
from dpjax.crossover import crossover
from dpjax.plan.designs import ACCOUNTANTS

GAUSSIAN = ("renyi_classic", "renyi_improved", "exact")
LAPLACE = ("basic", "renyi_improved")
_MOST_CALIBRATED = 2000  # whole k at which an accountant is asked for Laplace noise


@click.command(cls=options.Command)
@click.option(
    "--epsilon", "epsilons", type=options.NUMBERS, required=True, help="Total budgets, above 0."
)
@click.option(
    "--delta", "deltas", type=options.DELTAS, required=True, help="Total deltas, in (0, 1)."
)
@click.option(
    "--laplace",
    type=options.Name(LAPLACE),
    default="basic",
    show_default=True,
    help="How Laplace noise is counted; with renyi-improved at whole numbers of queries only.",
)
@options.measure
@click.option(
    "--up-to",
    type=options.WHOLE,
    default=1000,
    show_default=True,
    help="Queries compared, to 1e7 (2000 with renyi-improved): beyond, nothing is claimed.",
)
@options.output
def command(
    epsilons: tuple[float, ...],
    deltas: tuple[float, ...],
    laplace: str,
    measure: str | None,
    confidence: float,
    up_to: int,
    form: str | None,
) -> None:
    """Find the number of queries from which Gaussian noise beats Laplace noise.

    All queries share one total epsilon and delta. The errors meet at k*, a real number of
    queries; from a whole number of them on, Gaussian noise has the lower error.

    \b
    At one budget, and over a grid of them:
      dpjax crossover --epsilon 1 --delta 1e-5
      dpjax crossover --epsilon 0.1,1,10 --delta 1e-5,1e-9 --csv
    """
    most = _MOST_CALIBRATED if laplace != "basic" else 10**7
    if up_to > most:
        raise click.UsageError(f"--up-to {up_to}: expected at most {most} with --laplace {laplace}")
    measure = measure or "rmse"
    _validate.open_probability(confidence=confidence)
    level = options.level_of(measure, confidence)
    named = measure if level is None else f"{measure} {level}"
    asked = {"measure": measure, "level": level}
    rows: list[dict[str, Any]] = []
    for epsilon in epsilons:
        for delta in deltas:
            for name in GAUSSIAN:
                try:
                    incumbent = (
                        curves.laplace_basic(epsilon, **asked)
                        if laplace == "basic"
                        else curves.calibrated(
                            "laplace", epsilon, delta, accountant=ACCOUNTANTS[laplace], **asked
                        )
                    )
                    challenger = curves.gaussian(
                        epsilon, delta, accountant=ACCOUNTANTS[name], **asked
                    )
                except ValueError as error:
                    if "some noise meets" not in str(error):
                        raise
                    raise ImpossibleWish(
                        f"no Gaussian noise meets epsilon {epsilon:g} with delta {delta:g}; nearest"
                        " possible: a delta above 0"
                    ) from error
                found = crossover(incumbent, challenger, up_to=up_to)
                rows.append(
                    {
                        "epsilon": epsilon,
                        "delta": delta,
                        "laplace": laplace,
                        "gaussian": name,
                        "k_star": found.k_star,
                        "first_integer": found.first_integer,
                    }
                )
    result = {"measure": measure, "level": level, "up_to": up_to, "crossings": rows}
    lines = table(
        ("epsilon", "delta", "laplace", "gaussian", "k*", "Gaussian leads from"),
        [[*list(row.values())[:4], *_where(row, up_to)] for row in rows],
    )
    emit(
        form,
        "crossover",
        result,
        rows,
        [f"{named} of each answer, up to {up_to} queries", "", *lines],
    )


def _where(row: dict[str, Any], up_to: int) -> tuple[str, str]:
    """Both columns in words, where there is no number."""
    k_star, first = row["k_star"], row["first_integer"]
    if first is None:
        return f"above {up_to}", "not up to there"
    if k_star is None:
        return (f"{first - 1} to {first}" if first > 1 else "below 1"), number(first)
    return number(k_star), number(first)
