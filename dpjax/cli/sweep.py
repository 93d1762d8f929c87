"""`dpjax sweep`: simulate the error of mechanisms over a grid of budgets."""

import os
import tomllib
from pathlib import Path
from typing import Any

import click

from dpjax.cli import options
from dpjax.cli.output import emit, number, table

_GRID = ("mechanism", "epsilon", "queries")
_KEYS = {*_GRID, "delta", "sensitivity", "trials", "seed"}
_MOST_POINTS = 100_000
_MOST_WHOLE = 2**31 / 40  # discrete noise beyond 40 scales is rarer than anyone can simulate


@click.command()
@click.option(
    "--mechanism",
    "mechanism",
    multiple=True,
    type=click.Choice(options.MECHANISMS),
    help="May be repeated.  [default: laplace and gaussian]",
)
@click.option("--epsilon", type=options.NUMBERS, help="Total budgets, above 0.")
@click.option("--queries", type=options.WHOLES, help="Numbers of queries.  [default: 1]")
@click.option("--delta", type=options.NUMBER, help="Total delta, for Gaussian noise.")
@click.option("--sensitivity", type=options.NUMBER, help="Of each query.  [default: 1]")
@click.option("--trials", type=options.WHOLE, help="Of each point.  [default: 1e6]")
@click.option("--seed", type=options.SEED, help="Below 2^32.  [default: 42]")
@click.option(
    "--grid",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with any of these by name; flags come before it.",
)
@click.option("--devices", type=options.WHOLE, help="CPU devices.  [default: one for each core]")
@click.option("--processes", type=options.WHOLE, help="How many processes make this same call.")
@click.option("--process", type=options.SEED, help="Which of them this is, from 0.")
@click.option("--coordinator", help="HOST:PORT of process 0.")
@click.option(
    "--checkpoint",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that says how far the run is; the same call goes on from it.",
)
@click.option(
    "--every",
    type=options.NUMBER,
    default=60.0,
    show_default=True,
    help="Seconds from one checkpoint to the next.",
)
@click.option("--quiet", is_flag=True, help="No progress on the error stream.")
@options.output
def command(file: Path | None, form: str | None, **given: Any) -> None:
    """Simulate mechanisms over a grid and set the errors beside the laws.

    Laplace noise is calibrated by basic composition, Gaussian noise exactly. For one version of JAX
    and one kind of device a seed gives the same numbers whatever the devices and processes.

    \b
    Two mechanisms at three budgets, and a run that can be interrupted:
      dpjax sweep --epsilon 0.1,1,10 --delta 1e-5 --trials 1e5
      dpjax sweep --grid grid.toml --checkpoint run.ckpt --csv

    \b
    The file:
      mechanism = ["laplace", "gaussian"]
      epsilon = [0.1, 1.0]
      queries = [1, 10]
      delta = 1e-5
      trials = 100000
    """
    wanted = _wanted(file, given)
    scales = _scales(wanted)
    bar = _start(given)

    import dpjax  # from here on with JAX
    from dpjax.cli.simulation import key_of, points_at

    found = dpjax.sweep(
        key_of(wanted["seed"]),
        points_at(scales),
        wanted["trials"],
        checkpoint=given["checkpoint"],
        interval=given["every"],
        progress=bar,
    ).table()
    cells = zip(*found.values(), strict=True)
    rows = [_row(dict(zip(found, row, strict=True)), scales) for row in cells]
    if given["process"]:  # every process has the result, the first one prints it
        return
    result = {name: wanted[name] for name in ("delta", "sensitivity", "trials", "seed")}
    emit(form, "sweep", result | {"points": rows}, rows, _text(rows))


def _wanted(file: Path | None, given: dict[str, Any]) -> dict[str, Any]:
    """The grid and its numbers: flags before the file before the defaults."""
    fields: dict[str, Any] = {}
    if file is not None:
        try:
            fields = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise click.UsageError(f"{file}: {error}; expected TOML") from error
        for name in fields.keys() - _KEYS:
            raise click.UsageError(
                f"{file}: {name} is unknown; expected {', '.join(sorted(_KEYS))}"
            )
    flags = {name: given[name] for name in _KEYS if given[name] not in (None, ())}
    defaults = {"mechanism": ("laplace", "gaussian"), "queries": (1,), "delta": None}
    defaults |= {"sensitivity": 1.0, "trials": 10**6, "seed": 42}
    wanted = defaults | fields | flags
    if "epsilon" not in wanted:
        raise click.UsageError("give --epsilon, or a file with it by --grid")
    kinds = {"epsilon": options.NUMBERS, "queries": options.WHOLES, "trials": options.WHOLE}
    kinds |= {"seed": options.SEED, "sensitivity": options.NUMBER}
    kinds |= {} if wanted["delta"] is None else {"delta": options.NUMBER}
    for name, kind in kinds.items():
        try:
            wanted[name] = kind.convert(wanted[name], None, None)
        except click.BadParameter as error:
            raise click.UsageError(f"{name}: {error.message}") from error
    names = wanted["mechanism"]
    wanted["mechanism"] = (names,) if isinstance(names, str) else tuple(names)
    for name in wanted["mechanism"]:
        if name not in options.MECHANISMS:
            raise click.UsageError(f"mechanism: {name!r}: expected {', '.join(options.MECHANISMS)}")
    for name in _GRID:
        if not wanted[name] or len(set(wanted[name])) < len(wanted[name]):
            raise click.UsageError(f"{name}: expected some different values")
    size = len(wanted["mechanism"]) * len(wanted["epsilon"]) * len(wanted["queries"])
    if size > _MOST_POINTS:
        raise click.UsageError(f"a grid of {size} points: expected at most {_MOST_POINTS}")
    return wanted


def _scales(wanted: dict[str, Any]) -> dict[tuple[str, float, int], tuple[float, float]]:
    """Scale and expected RMSE of each point of the grid."""
    from dpjax import plan

    found = {}
    for mechanism in wanted["mechanism"]:
        kind = mechanism.replace("-", "_")
        counted = "exact" if "gaussian" in kind else "basic"
        designs = [d for d in plan.DESIGNS if d.name == f"{kind} {counted}"]
        delta = wanted["delta"]
        if counted == "exact" and delta is None:
            raise click.UsageError(f"{mechanism} noise needs --delta")
        for epsilon in wanted["epsilon"]:
            for queries in wanted["queries"]:
                workload = plan.equal(
                    queries, sensitivity=wanted["sensitivity"], whole=kind.startswith("discrete")
                )
                best = plan.at_budget(
                    workload, epsilon=epsilon, delta=delta or 0.0, designs=designs
                ).best
                scale = float(best.scales[0])
                if kind.startswith("discrete") and scale > _MOST_WHOLE:
                    raise click.UsageError(
                        f"{mechanism} noise at epsilon {epsilon:g} and {queries} queries has scale"
                        f" {scale:.3g}: expected at most {_MOST_WHOLE:.3g}, so that 32 bits hold it"
                    )
                found[kind, epsilon, queries] = (scale, best.error)
    return found


def _start(given: dict[str, Any]) -> Any:
    """Devices and processes, which JAX wants to know before all else; then the progress bar."""
    import jax

    devices = given["devices"] or os.cpu_count() or 1
    try:
        jax.config.update("jax_num_cpu_devices", devices)
    except RuntimeError as error:  # JAX has started: as in a notebook
        if given["devices"] is not None and jax.local_device_count() != devices:
            raise click.UsageError(
                f"--devices {devices}: JAX has started with {jax.local_device_count()}"
            ) from error
    joined = (given["coordinator"], given["processes"], given["process"])
    if any(part is not None for part in joined):
        from dpjax.sweep import distributed

        distributed.connect(*joined)
    if given["quiet"]:
        return None
    from dpjax.sweep import progress

    return progress.bar("sweep")


def _row(row: dict[str, Any], scales: dict[tuple[str, float, int], tuple[float, float]]) -> Any:
    """One point with its scale and its law."""
    scale, expected = scales[row["mechanism"], row["epsilon"], row["queries"]]
    return {"scale": scale, "rmse_expected": expected} | row


def _text(rows: list[dict[str, Any]]) -> list[str]:
    """For people."""
    return table(
        ("mechanism", "epsilon", "queries", "scale", "rmse", "standard error", "expected"),
        [
            (
                row["mechanism"],
                row["epsilon"],
                row["queries"],
                row["scale"],
                row["rmse"],
                number(row["rmse_standard_error"]).rjust(14),
                row["rmse_expected"],
            )
            for row in rows
        ],
    )
