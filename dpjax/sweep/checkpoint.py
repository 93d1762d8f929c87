"""Checkpoints: one file, replaced whole or not at all, and the one before it kept.

A checkpoint is a line with the SHA-256 of what follows, and JSON: what run it belongs to (its
identity) and how far that is (its state). It is written beside its place, forced to the disk and
renamed, so whatever happens on the way, the last good one is there.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

_MAGIC = "dpjax checkpoint, sha256 "


def save(path: Path, identity: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Replace the checkpoint; the one that was there becomes the one before.

    Raises:
        OSError: it could not be written; the last good one stays.
    """
    body = json.dumps({"identity": identity, "state": state}).encode()
    data = _MAGIC.encode() + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    part = path.with_name(path.name + ".part")
    try:
        _step("before write")
        with part.open("wb") as file:
            file.write(data[: len(data) // 2])
            _step("half-way")
            file.write(data[len(data) // 2 :])
            file.flush()
            os.fsync(file.fileno())
        _step("before rename")
        if path.exists():
            os.replace(path, before(path))
        _step("between renames")
        os.replace(part, path)
        _sync_folder(path.parent)
        _step("after")
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(
            f"checkpoint = {path}: not written ({reason}); the last good one stays"
        ) from error


def load(path: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """The state of the last good checkpoint of this run, or None if there is none.

    A damaged one is reported by a warning and set aside as PATH.damaged, and the one
    before it is used.

    Raises:
        ValueError: the checkpoint is of another run, or damaged with no good one before it.
    """
    try:
        found, source = _read(path), path
    except ValueError as damage:
        found, source = _one_before(path, damage), before(path)
    if found is None:  # none yet, or the process ended between the two renames
        found, source = _read(before(path)), before(path)
    if found is None:
        return None
    _refuse_another(source, found["identity"], identity)
    return found["state"]


def _one_before(path: Path, damage: ValueError) -> dict[str, Any]:
    """The checkpoint before a damaged one, which is set aside so that it cannot replace it."""
    try:
        found = _read(before(path))
    except ValueError:
        found = None
    if found is None:
        raise ValueError(
            f"checkpoint = {path}: damaged ({damage}); expected a good one before it, or no file"
            " to start anew"
        ) from damage
    aside = path.with_name(path.name + ".damaged")
    os.replace(path, aside)
    warnings.warn(
        f"checkpoint = {path}: damaged ({damage}), set aside as {aside.name}; the one before it is"
        " used",
        stacklevel=4,
    )
    return found


def path_of(path: str | PathLike[str], index: int, count: int) -> Path:
    """Where a process keeps its checkpoint.

    Raises:
        ValueError: a checkpoint there was left by another number of processes.
    """
    whole = Path(path)
    for other in [whole, *whole.parent.glob(f"{whole.name}.*-of-*")]:
        left_by = 1 if other == whole else int(other.name.rpartition("-of-")[2].partition(".")[0])
        if left_by != count and other.exists():
            raise ValueError(f"checkpoint = {other}: of {left_by} processes, expected {count}")
    return whole if count == 1 else Path(f"{path}.{index}-of-{count}")


def before(path: Path) -> Path:
    """Where the checkpoint before this one is kept."""
    return path.with_name(path.name + ".before")


def _step(name: str) -> None:
    """Does nothing: a place where a test lets a run crash."""


def _read(path: Path) -> dict[str, Any] | None:
    """Identity and state, None if there is no file; ValueError says what is wrong with it."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):  # of a path under a file, `save` tells
        return None
    head, newline, body = data.partition(b"\n")
    if not head.startswith(_MAGIC.encode()) or not newline:
        raise ValueError("not a checkpoint of dpjax")
    if hashlib.sha256(body).hexdigest() != head.decode("latin-1").removeprefix(_MAGIC):
        raise ValueError(f"{len(body)} bytes that do not have their SHA-256")
    return json.loads(body)


def _refuse_another(path: Path, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Name the first thing in which the checkpoint's run is another."""
    for name, now in json.loads(json.dumps(expected)).items():
        then = found.get(name)
        if then == now:
            continue
        if isinstance(then, list) and isinstance(now, list):
            then, now = _first_difference(then, now)
        raise ValueError(f"checkpoint = {path}: of another {name} ({then}), expected {now}")


def _first_difference(then: list[Any], now: list[Any]) -> tuple[Any, Any]:
    """The first entries that differ, or the lengths."""
    for one, other in zip(then, now, strict=False):
        if one != other:
            return one, other
    return f"{len(then)} points", f"{len(now)} points"


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power failure, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
