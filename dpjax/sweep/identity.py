"""Which run a checkpoint belongs to."""

import hashlib
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from dpjax.simulate import mechanism_name, run_blocks
from dpjax.sweep.division import CHUNK, Job, Share


def identity(key: Array, name: str, jobs: Sequence[Job], share: Share) -> dict[str, Any]:
    """What must be the same for a run to go on from a checkpoint, in words that an error can use.

    The programs themselves are part of it: a mechanism whose code has changed is another one.
    """
    programs: dict[Any, str] = {}
    return {
        "version": f"dpjax {_version()}, jax {jax.__version__}, chunks of {CHUNK}",
        "device": f"{jax.local_devices()[0].device_kind}, {np.dtype(jax.numpy.asarray(0.0).dtype)}",
        "process": f"{share.index} of {share.count}",
        "seed": f"{np.asarray(jax.random.key_data(key)).tolist()} {name}".rstrip(),
        "grid": [job.point.name for job in jobs],
        "mechanism": [
            f"{mechanism_name(job.numbers[1])} at {job.point.name}, "
            + _digest(_program(job, programs), *map(_bytes, jax.tree.leaves(job.numbers[1:])))
            for job in jobs
        ],
    }


def _program(job: Job, known: dict[Any, str]) -> str:
    """The compiler's input for a job, without its numbers; made once for each mechanism."""
    seed, mechanism, value, unit, edges = job.numbers
    leaves, structure = jax.tree.flatten((mechanism, value, unit, edges))
    kind = (structure, tuple((leaf.shape, leaf.dtype) for leaf in map(np.asarray, leaves)))
    kind = (job.point.measure, *kind)
    if kind not in known:
        zero = np.int32(0)
        lowered = run_blocks.lower(
            *(seed, mechanism, value, zero, zero, zero, unit),
            measure=job.point.measure,
            edges=edges,
        )
        known[kind] = lowered.as_text()
    return known[kind]


def _bytes(number: Any) -> bytes:
    """A number or an array with its shape."""
    array = np.asarray(number)
    return f"{array.dtype}{array.shape}".encode() + array.tobytes()


def _digest(text: str, *numbers: bytes) -> str:
    """A short SHA-256."""
    digest = hashlib.sha256(text.encode())
    for number in numbers:
        digest.update(number)
    return digest.hexdigest()[:16]


def _version() -> str:
    """The installed version of dpjax."""
    try:
        return version("dpjax")
    except PackageNotFoundError:
        return "from source"
