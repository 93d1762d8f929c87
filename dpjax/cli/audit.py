"""`dpjax audit`: the epsilon that the outputs of your own mechanism prove."""

import functools
import importlib
import json
import os
import sys
from typing import Any

import click

from dpjax.cli import options
from dpjax.cli.output import emit, number


@click.command()
@click.argument("mechanism", metavar="MODULE:FUNCTION")
@click.option("--value", required=True, help="True answer on one data set, as JSON: 319 or [1, 2].")
@click.option("--neighbour", required=True, help="The same on a neighbouring data set.")
@click.option(
    "--epsilon", type=options.NUMBER, help="Claimed; if contradicted, the exit code is 1."
)
@click.option(
    "--delta", type=options.NUMBER, default=0.0, show_default=True, help="Of the claim, in [0, 1]."
)
@click.option(
    "--trials", type=options.WHOLE, default=1_000_000, show_default=True, help="Of each neighbour."
)
@click.option(
    "--confidence", type=options.NUMBER, default=0.95, show_default=True, help="In (0, 1)."
)
@click.option("--seed", type=options.SEED, default=0, show_default=True, help="Below 2^32.")
@click.option(
    "--set",
    "bound",
    multiple=True,
    metavar="NAME=JSON",
    help="An argument of the function, such as scale=1.0; may be repeated.",
)
@click.option(
    "--per-trial", is_flag=True, help="The function answers one value for one key: vmap it."
)
@options.output
@click.pass_context
def command(
    ctx: click.Context,
    mechanism: str,
    value: str,
    neighbour: str,
    epsilon: float | None,
    delta: float,
    trials: int,
    confidence: float,
    seed: int,
    bound: tuple[str, ...],
    per_trial: bool,
    form: str | None,
) -> None:
    """Prove a lower bound on epsilon from a mechanism's outputs on two neighbours.

    MODULE:FUNCTION names a function (key, value) -> answer, found from the current folder. It is
    given one key and the value repeated along a leading axis of trials; with --per-trial, one
    value. An audit finds faults and proves no privacy.

    \b
    Laplace noise that is half of what a count needs at epsilon 1:
      dpjax audit dpjax:laplace --set scale=0.5 --value 319 --neighbour 320 --trials 1e5

    Exit codes: 0 not contradicted or undecided; 1 the claim is contradicted; 2 wrong arguments.
    """
    arguments = dict(_argument(text) for text in bound)
    one, other = (_json(text, name) for text, name in ((value, "value"), (neighbour, "neighbour")))
    if epsilon is not None and epsilon < 0:
        raise click.UsageError(f"--epsilon {epsilon:g}: expected a number of at least 0")
    function = functools.partial(_found(mechanism), **arguments)

    import dpjax
    from dpjax.audit import audit
    from dpjax.cli.simulation import key_of

    asked: Any = dpjax.per_trial(function) if per_trial else function
    key = key_of(seed)
    try:
        found = audit(key, asked, one, other, trials, delta=delta, confidence=confidence)
    except (ValueError, TypeError):
        raise
    except (Exception, SystemExit) as error:  # whatever the user's function raises
        text = " ".join(str(error).split())
        raise click.UsageError(f"{mechanism} raised {type(error).__name__}: {text}") from error
    contradicted = None if epsilon is None else found.contradicts(epsilon)
    row = {
        "mechanism": mechanism,
        "epsilon": found.epsilon,
        "limit": found.limit,
        "claimed": epsilon,
        "contradicted": contradicted,
        "delta": found.delta,
        "confidence": found.confidence,
        "event": str(found.event),
        "hits": int(found.hits),
        "other_hits": int(found.other_hits),
        "num_trials": int(found.num_trials),
        "seed": seed,
    }
    lines = [
        f"{mechanism} is ({number(found.epsilon)}, {found.delta:g})-DP at best, at confidence"
        f" {found.confidence:g}: {found.event} came {found.hits} times on one neighbour and"
        f" {found.other_hits} times on the other, of {found.num_trials} trials each",
        f"so many trials can prove at most epsilon {number(found.limit)}",
    ]
    if epsilon is not None:
        lines.append(found.verdict(epsilon))
    emit(form, "audit", row, [row], lines)
    if contradicted:
        ctx.exit(1)


def _found(name: str) -> Any:
    """The function of MODULE:FUNCTION, looked for in the current folder too."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise click.UsageError(f"{name!r}: expected MODULE:FUNCTION, such as dpjax:laplace")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a module may fail in any way, or be a script
        text = " ".join(str(error).split())
        raise click.UsageError(f"{module}: {type(error).__name__}: {text}") from error
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise click.UsageError(f"{name}: {module} has no function of that name")
    return found


def _argument(text: str) -> tuple[str, Any]:
    """A pair from NAME=JSON."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise click.UsageError(f"--set {text!r}: expected NAME=JSON, such as scale=1.0")
    return name, _json(value, f"set {name}")


def _json(text: str, name: str) -> Any:
    """Numbers, or lists of them."""
    import numpy as np

    try:
        array = np.asarray(json.loads(text))
    except (ValueError, RecursionError):  # no JSON, or ragged
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)):
        raise click.UsageError(f"--{name} {text!r}: expected a finite number or a list of numbers")
    return array.item() if array.ndim == 0 else array
