"""Run the experiments: python -m experiments [NAME ...]."""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from experiments import BENCHMARKS, NAMES, manifest, page, table
from experiments.progress import reporter

DEFAULT_TRIALS = 10_000_000
DEFAULT_SEED = 42


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or redraw the named experiments; 2 and one line on the error stream if that fails."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        unknown = [name for name in options.names if name not in (*NAMES, *BENCHMARKS)]
        if unknown:
            expected = ", ".join((*NAMES, *BENCHMARKS))
            raise ValueError(f"unknown experiment {unknown[0]!r}: expected some of {expected}")
        names = dict.fromkeys(options.names or NAMES)
        folders = {name: _folder(name, options) for name in names}
        for folder in dict.fromkeys(folders.values()):
            _make_writable(folder)
        for name, folder in folders.items():
            text = _redraw(name, folder) if options.redraw else _run(name, folder, options)
            print(text, flush=True)
        for folder in dict.fromkeys(folders[name] for name in names if name in NAMES):
            page.write(folder, NAMES)
    except (ValueError, OSError) as error:
        parser.error(" ".join(str(error).split()))
    except KeyboardInterrupt:
        return 130
    return 0


def _folder(name: str, options: argparse.Namespace) -> Path:
    """Where an experiment's files go; what varies with the machine stays apart."""
    return options.out or Path("benchmarks" if name in BENCHMARKS else "figures")


def _run(name: str, folder: Path, options: argparse.Namespace) -> str:
    """Simulate, then draw; the report."""
    experiment = importlib.import_module(f"experiments.{name}")
    trials = options.trials or getattr(experiment, "TRIALS", DEFAULT_TRIALS)
    rows = experiment.run(trials, options.seed, reporter(name))
    csv = table.to_csv(rows, experiment.COLUMNS).encode()
    _write(folder, {f"{name}.csv": csv})
    return _draw(name, folder, manifest.simulated(options.seed, trials))


def _redraw(name: str, folder: Path) -> str:
    """Draw the table that is there; the report."""
    if not (folder / f"{name}.csv").exists():
        raise ValueError(f"{folder / f'{name}.csv'} is missing: expected a table to redraw")
    return _draw(name, folder, None)


def _draw(name: str, folder: Path, run: dict | None) -> str:
    """Draw from the CSV and renew the manifest; the report."""
    from experiments import style  # here, so that bad arguments are told before a slow import

    experiment = importlib.import_module(f"experiments.{name}")
    path = folder / f"{name}.csv"
    data = table.read(path, experiment.COLUMNS)
    try:
        drawn, text = style.files(experiment.draw(data), name), experiment.report(data)
    except (ValueError, IndexError) as error:
        raise ValueError(f"{path}: expected a whole table, as a run writes it ({error})") from error
    hashed = {path.name: path.read_bytes(), **drawn}
    _write(folder, {**drawn, manifest.FILE: manifest.record(folder, name, hashed, run).encode()})
    return text


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """Write each file whole or not at all."""
    for name, data in files.items():
        part = folder / f".{name}.part"
        part.write_bytes(data)
        os.replace(part, folder / name)


def _make_writable(folder: Path) -> None:
    """Make the folder and try it, before the work and not after."""
    trial = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.write_bytes(b"")
        trial.unlink()
    except OSError as error:
        problem = error.strerror or str(error)
        raise ValueError(f"--out = {folder}: expected a folder to write to ({problem})") from error


def _parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = Parser(
        prog="python -m experiments",
        description="Make the figures and their tables: NAME.csv, NAME.png, NAME.svg each, and"
        " manifest.json; and index.html, a page of all figures in the folder.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"some of {', '.join(NAMES)}, all of these if none is named; or the benchmark"
        f" {', '.join(BENCHMARKS)}",
    )
    parser.add_argument(
        "--trials",
        type=_whole(1, 10**12),
        metavar="N",
        help="simulated releases for each point (default 10,000,000; throughput 10^9)",
    )
    parser.add_argument(
        "--seed",
        type=_whole(0, 2**32 - 1),  # JAX drops the bits above
        default=DEFAULT_SEED,
        help="0 to 2^32 - 1 (default 42)",
    )
    parser.add_argument(
        "--out",
        type=_named_folder,
        metavar="FOLDER",
        help="default: figures; throughput: benchmarks",
    )
    parser.add_argument(
        "--redraw", action="store_true", help="draw from the tables in the folder, simulate nothing"
    )
    return parser


def _whole(low: int, high: int) -> Callable[[str], int]:
    """A reader of whole numbers within bounds; 1e7 and 10_000_000 are whole numbers too."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = _from_float(text)
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"got {text!r}, expected a whole number from {low} to {high}"
            )
        return value

    return read


def _named_folder(text: str) -> Path:
    """A folder that is named; an empty name would be the current one."""
    if not text:
        raise argparse.ArgumentTypeError("got '', expected a folder")
    return Path(text)


def _from_float(text: str) -> int | None:
    """A whole number written as a float, such as 1e7."""
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else None


if __name__ == "__main__":
    sys.exit(main())
