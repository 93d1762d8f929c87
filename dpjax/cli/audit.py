"""`dpjax audit`: the epsilon that the outputs of your own mechanism prove."""

import contextlib
import functools
import importlib
import json
import os
import sys
from pathlib import PurePath
from typing import Any

import click

from dpjax.cli import options
from dpjax.cli.output import emit, number, one_line


@click.command(cls=options.Command)
@click.argument("mechanism", metavar="MODULE:FUNCTION")
@click.option(
    "--value", required=True, help="True answer on one data set, as JSON: 319 or [1, 2, 3]."
)
@click.option("--neighbour", required=True, help="True answer on a neighbouring data set.")
@click.option(
    "--epsilon",
    type=options.NUMBER,
    help="Of the claim, at least 0.",
)
@click.option(
    "--delta", type=options.DELTA, default=0.0, show_default=True, help="Of the claim, in [0, 1)."
)
@click.option(
    "--trials",
    type=options.TRIALS,
    default=1_000_000,
    show_default=True,
    help="Of each neighbour, from 8 to 1e14; a quarter of them only chooses what to count.",
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
    help="An argument of the function, such as scale=1.0 or fast=true; once for each.",
)
@click.option(
    "--per-trial",
    is_flag=True,
    help="The function answers one value with one key; it is repeated by jax.vmap.",
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

    MODULE:FUNCTION names a function (key, value) -> answer, found from the current folder and
    written with jax.numpy and jax.random. It is given one key and the value repeated along a
    leading axis of trials; with --per-trial, one value. An audit finds faults and proves no
    privacy. What the function prints goes to the error stream.

    \b
    Laplace noise that is half of what a count needs at epsilon 1, and a file of your own:
      dpjax audit dpjax:laplace --set scale=0.5 --value 319 --neighbour 320 --trials 1e5
      dpjax audit mine_to_audit:noisy_count --per-trial --set scale=1.0 \\
          --value 319 --neighbour 320 --epsilon 1 --trials 1e5

    The exit code is 1 if the outputs contradict the claimed epsilon, else 0: also where so few
    trials cannot decide.
    """
    arguments = _arguments(bound)
    one, other = _numbers(value, "value"), _numbers(neighbour, "neighbour")
    if _same(one, other):
        raise click.UsageError(
            f"--value and --neighbour are both {value}: expected the answers on two data sets"
            " that differ in one person"
        )
    if _shape(one) != _shape(other):
        raise click.UsageError(
            f"--value and --neighbour have shapes {_shape(one)} and {_shape(other)}: expected equal"
        )
    if epsilon is not None and epsilon < 0:
        raise click.UsageError(f"--epsilon {epsilon:g}: expected a number of at least 0")
    with contextlib.redirect_stdout(sys.stderr):  # whatever the user's code prints
        function = functools.partial(_found(mechanism), **arguments)

        import dpjax
        from dpjax.audit import audit
        from dpjax.audit.driver import check_differ
        from dpjax.cli.simulation import key_of, tried

        asked: Any = dpjax.per_trial(function) if per_trial else function
        arrays, missing, remarks = tried(mechanism, asked, (one, other), seed)
        merged, dtype = check_differ(arrays, (one, other))
        found = audit(key_of(seed), asked, *arrays, trials, delta=delta, confidence=confidence)
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
        "nan_share": missing,
        "seed": seed,
    }
    lines = [
        f"{mechanism} is ({number(found.epsilon)}, {found.delta:g})-DP at best, at confidence"
        f" {found.confidence:.15g}: {found.event} came {found.hits} times on one neighbour and"
        f" {found.other_hits} times on the other, of {found.num_trials} trials each",
        f"so many trials can prove at most epsilon {number(found.limit)}",
    ]
    if missing > 0:
        lines.append(
            f"{missing:.1%} of the first answers are NaN, which counts as below any number"
        )
    lines += remarks
    if merged:
        lines.append(f"{merged} of the numbers that differ are the same in {dtype}")
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
        text = f"{module}: {type(error).__name__}: {one_line(error)}{_hint(module, attribute)}"
        raise click.UsageError(text) from error
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise click.UsageError(f"{name}: {module} has no function {attribute}")
    return found


def _hint(module: str, attribute: str) -> str:
    """What to write in place of the path of a file."""
    path = PurePath(module.removesuffix(".py"))
    if str(path) == module and len(path.parts) == 1:
        return ""
    if path.is_absolute() or ".." in path.parts:
        return f"; in its folder, write {path.name}:{attribute}"
    return f"; write {'.'.join(path.parts)}:{attribute}"


def _arguments(texts: tuple[str, ...]) -> dict[str, Any]:
    """All NAME=JSON, each name once."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"--set {text!r}: expected NAME=JSON, such as scale=1.0")
        if name in found:
            raise click.UsageError(f"--set {name} is given twice: expected each name once")
        plain = _parsed(value)
        is_plain = isinstance(plain, bool | str)
        found[name] = plain if is_plain else _numbers(value, f"set {name}", _FOR_ARGUMENTS)
    return found


_FOR_NUMBERS = "a finite number or a list of numbers, as JSON"
_FOR_ARGUMENTS = f'{_FOR_NUMBERS}, or true, false or "text" with its quotes'


def _numbers(text: str, name: str, expected: str = _FOR_NUMBERS) -> Any:
    """A number, or an array of a list of them, that is finite in float32."""
    import numpy as np

    try:
        array = np.asarray(_parsed(text))
    except (ValueError, RecursionError):  # ragged
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)) or array.size == 0:
        raise click.UsageError(f"--{name} {text!r}: expected {expected}")
    if np.any(np.abs(array.astype(float)) > np.finfo(np.float32).max):
        raise click.UsageError(f"--{name} {text!r}: expected numbers of at most 3.4e38, as float32")
    return array.item() if array.ndim == 0 else array


def _parsed(text: str) -> Any:
    """JSON, or None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _shape(answer: Any) -> list[int]:
    """The shape of an answer, [] of a number."""
    return list(getattr(answer, "shape", ()))


def _same(one: Any, other: Any) -> bool:
    """Whether two answers are the same numbers."""
    import numpy as np

    return np.array_equal(one, other)
