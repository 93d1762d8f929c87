"""`dpjax account`: what a composition of equal releases leaks, by every accountant."""

from typing import Any

import click
import numpy as np

from dpjax.accounting import exact, rdp
from dpjax.accounting.loss import PrivacyLoss
from dpjax.cli import options
from dpjax.cli.output import ImpossibleWish, emit, number, paragraph, risk_lines, table, up
from dpjax.cli.releases import family
from dpjax.plan.advice import risk_at
from dpjax.plan.designs import ACCOUNTANTS


@click.command(cls=options.Command)
@options.mechanism
@click.option(
    "--noise-multiplier",
    type=options.NUMBER,
    help="Scale of the noise over the sensitivity (of training, over the clipping norm).",
)
@click.option(
    "--scale",
    type=options.NUMBER,
    help="Scale of the noise in the answer's units: b of Laplace, sigma of Gaussian noise.",
)
@click.option(
    "--count",
    type=options.WHOLE,
    default=1,
    show_default=True,
    help="How many such releases, up to 9.2e18.",
)
@options.delta
@options.output
def command(
    mechanism: str,
    sensitivity: float,
    sampling_probability: float | None,
    noise_multiplier: float | None,
    scale: float | None,
    count: int,
    delta: float,
    form: str | None,
) -> None:
    """Say what epsilon a number of equal releases costs, by every accountant.

    Each epsilon is safe to claim. The exact one comes with a proven bracket around the truth.

    \b
    A hundred Gaussian counts, and DP-SGD:
      dpjax account --mechanism gaussian --scale 20 --count 100 --delta 1e-5
      dpjax account --mechanism gaussian --noise-multiplier 1.1 \\
          --sampling-probability 0.0043 --count 3510 --delta 1e-5
    """
    release = family(mechanism, sensitivity, sampling_probability)
    if (noise_multiplier is None) == (scale is None):
        raise click.UsageError("give either --noise-multiplier or --scale")
    if scale is not None:
        noise_multiplier = scale / sensitivity
    assert noise_multiplier is not None
    leak = count * release(np.asarray(noise_multiplier))
    bracket = exact.epsilon_bracket(leak, delta)
    rows = _accountants(leak, delta, float(bracket.upper))
    result = {
        "mechanism": mechanism,
        "sensitivity": sensitivity,
        "noise_multiplier": noise_multiplier,
        "scale": noise_multiplier * sensitivity if scale is None else scale,
        "sampling_probability": sampling_probability,
        "count": count,
        "delta": delta,
        "accountants": rows,
        "exact": {name: float(end) for name, end in bracket._asdict().items()},
        "risk": risk_at(float(bracket.upper), delta, leak)._asdict(),
    }
    if np.isinf(bracket.upper):
        wish = "a delta above 0" if delta == 0 and noise_multiplier > 0 else "a larger multiplier"
        raise ImpossibleWish(
            f"{mechanism} noise of multiplier {noise_multiplier:g} has no finite epsilon at delta"
            f" {delta:g}; nearest possible: {wish}"
        )
    emit(form, "account", result, rows, _text(result))


def _accountants(leak: PrivacyLoss, delta: float, exactly: float) -> list[dict[str, Any]]:
    """Every accountant's epsilon, with the order that Rényi accounting chose."""
    rows = []
    for name, accountant in ACCOUNTANTS.items():
        row: dict[str, Any] = {"accountant": name, "epsilon": exactly, "order": None}
        if name.startswith("renyi"):
            found = rdp.optimum(leak, delta, conversion=name.removeprefix("renyi_"))
            row |= {"epsilon": float(found.epsilon), "order": float(found.order)}
        elif name != "exact":
            row["epsilon"] = float(accountant(leak, delta))
        rows.append(row)
    return rows


_EXPLAINED = {
    "basic": "epsilons add up",
    "advanced": "the least of basic and advanced composition",
    "optimal": "the most that the guarantees of single releases prove",
    "renyi_classic": "Rényi with the conversion of 2017",
    "renyi_improved": "Rényi with the conversion of 2020",
    "renyi_optimal": "Rényi with the best conversion there is",
    "exact": "nothing lost: the upper end of the bracket",
}


def _text(result: dict[str, Any]) -> list[str]:
    """For people."""
    sampled = result["sampling_probability"]
    of_sample = "" if sampled is None else f" of a Poisson sample of {sampled:g}"
    rows, bracket, risk = result["accountants"], result["exact"], result["risk"]
    return [
        f"{result['count']} x {result['mechanism']} noise of multiplier"
        f" {number(result['noise_multiplier'])}{of_sample}, delta {result['delta']:g}",
        "",
        *table(
            ("accountant", "epsilon", "order", ""),
            [
                (
                    row["accountant"],
                    up(row["epsilon"]),
                    "" if row["order"] is None else number(row["order"]),
                    _EXPLAINED[row["accountant"]],
                )
                for row in rows
            ],
            best=len(rows) - 1,
        ),
        "",
        f"the true epsilon lies between {bracket['lower']!r} and {bracket['upper']!r}",
        *paragraph("What this epsilon means", risk_lines(risk)),
    ]
