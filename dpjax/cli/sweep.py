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
_KINDS = {
    "epsilon": options.NUMBERS,
    "queries": options.WHOLES,
    "delta": options.DELTA,
    "sensitivity": options.NUMBER,
    "trials": options.TRIALS,
    "seed": options.SEED,
}


@click.command(cls=options.Command)
@click.option(
    "--mechanism",
    "mechanism",
    multiple=True,
    type=options.MECHANISM,
    help="What adds the noise; may be repeated.  [default: laplace and gaussian]",
)
@click.option("--epsilon", type=options.NUMBERS, help="Total budgets, from 1e-6 to 300.")
@click.option("--queries", type=options.WHOLES, help="Numbers of queries, to 1e9.  [default: 1]")
@click.option("--delta", type=options.DELTA, help="Total delta, in (0, 1), for Gaussian noise.")
@click.option(
    "--sensitivity", type=options.NUMBER, help="Largest change of each answer.  [default: 1]"
)
@click.option(
    "--trials", type=options.TRIALS, help="Of each point of the grid, to 1e14.  [default: 1e6]"
)
@click.option("--seed", type=options.SEED, help="Below 2^32.  [default: 42]")
@click.option(
    "--grid",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with any of the above by name; flags override it.",
)
@click.option("--devices", type=options.DEVICES, help="CPU devices.  [default: one for each core]")
@click.option("--processes", type=options.DEVICES, help="How many processes make this same call.")
@click.option("--process", type=options.PLACE, help="Which of them this is, from 0.")
@click.option("--coordinator", metavar="HOST:PORT", help="Where process 0 listens.")
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
    options.check_writable("checkpoint", given["checkpoint"])
    joined = [given[name] is not None for name in ("coordinator", "processes", "process")]
    if any(joined) and not all(joined):
        raise click.UsageError(
            "--coordinator, --processes and --process: expected all three or none"
        )
    if all(joined) and given["process"] >= given["processes"]:
        raise click.UsageError(
            f"--process {given['process']}: expected a number below --processes"
            f" {given['processes']}"
        )
    wanted = _wanted(file, given)
    scales = _scales(wanted)
    bar = _start(given)

    import dpjax  # from here on with JAX
    from dpjax.cli.simulation import key_of, points_at

    try:
        found = dpjax.sweep(
            key_of(wanted["seed"]),
            points_at(scales),
            wanted["trials"],
            checkpoint=given["checkpoint"],
            interval=given["every"],
            progress=bar,
        ).table()
    except KeyboardInterrupt:
        if given["checkpoint"] is not None:
            click.echo(f"\nThe same call goes on from {given['checkpoint']}", err=True)
        raise
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
            fields = tomllib.loads(options.text_of(file))
        except ValueError as error:
            raise click.UsageError(f"{file}: {error}") from error
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
    for name, kind in _KINDS.items():
        wanted[name] = (
            wanted[name] if wanted[name] is None else _converted(kind, wanted[name], name)
        )
    names = wanted["mechanism"]
    names = names if isinstance(names, list | tuple) else (names,)
    wanted["mechanism"] = tuple(_converted(options.MECHANISM, n, "mechanism") for n in names)
    for name in _GRID:
        if not wanted[name] or len(set(wanted[name])) < len(wanted[name]):
            raise click.UsageError(f"{name}: expected one or more values, each once")
    size = len(wanted["mechanism"]) * len(wanted["epsilon"]) * len(wanted["queries"])
    if size > _MOST_POINTS:
        raise click.UsageError(f"a grid of {size} points: expected at most {_MOST_POINTS}")
    return wanted


def _converted(kind: click.ParamType, value: Any, name: str) -> Any:
    """A value of the grid, wherever it comes from."""
    try:
        return kind.convert(value, None, None)
    except click.BadParameter as error:
        raise click.UsageError(f"{name}: {error.message}") from error


def _scales(wanted: dict[str, Any]) -> dict[tuple[str, float, int], tuple[float, float]]:
    """Scale and expected RMSE of each point of the grid."""
    from dpjax import plan
    from dpjax.plan.designs import check_simulated

    found = {}
    for mechanism in wanted["mechanism"]:
        counted = "exact" if "gaussian" in mechanism else "basic"
        designs = [d for d in plan.DESIGNS if d.name == f"{mechanism} {counted}"]
        delta = wanted["delta"]
        if counted == "exact" and delta is None:
            raise click.UsageError(f"{mechanism} noise needs --delta")
        for epsilon in wanted["epsilon"]:
            for queries in wanted["queries"]:
                workload = plan.equal(
                    queries,
                    sensitivity=wanted["sensitivity"],
                    whole=mechanism.startswith("discrete"),
                )
                best = plan.at_budget(
                    workload, epsilon=epsilon, delta=delta or 0.0, designs=designs
                ).best
                scale = check_simulated(mechanism, float(best.scales[0]))
                found[mechanism, epsilon, queries] = (scale, best.error)
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
