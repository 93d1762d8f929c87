"""What each figure was made from: seed, trials, versions, device, and the SHA-256 of its files."""

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

FILE = "manifest.json"


def simulated(seed: int, trials: int) -> dict[str, Any]:
    """The circumstances of a run that a redraw does not change."""
    import jax  # here, so that a redraw needs no JAX

    return {
        "seed": seed,
        "trials": trials,
        "dtype": "float32",
        "device": jax.devices()[0].device_kind,  # of any number: the bytes are the same
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("jax", "jaxlib", "numpy", "scipy")},
        },
    }


def record(folder: Path, name: str, files: Mapping[str, bytes], run: dict[str, Any] | None) -> str:
    """The manifest's text with one experiment's entry renewed; without `run`, a redraw's."""
    entries = _read(folder)
    entry = run if run is not None else {**entries.get(name, {})}
    entry["drawn_with"] = {"matplotlib": version("matplotlib")}
    entry["files"] = {file: hashlib.sha256(data).hexdigest() for file, data in files.items()}
    entries[name] = entry
    return json.dumps(dict(sorted(entries.items())), indent=2) + "\n"


def _read(folder: Path) -> dict[str, Any]:
    """The entries so far; none if there is no manifest."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON ({error})") from error
    if not isinstance(entries, dict):
        raise ValueError(f"{path}: expected a JSON object with an entry for each figure")
    return entries
