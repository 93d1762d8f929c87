"""Several processes as one run: joining it, and gathering what each has at the end."""

import jax
import numpy as np
from jax.experimental import multihost_utils


def connect(address: str | None = None, count: int | None = None, index: int | None = None) -> None:
    """Join the processes of a run; call it before anything else of JAX, in each of them.

    Under Slurm, Open MPI and Kubernetes JAX finds out by itself; elsewhere give all three.
    Processes on one machine want cores of their own, which those see to; elsewhere start them
    with `taskset` or the like. JAX has a thread for each core that a process may use, and sharing
    cores costs a third of the rate.

    Args:
        address: HOST:PORT of process 0, which all can reach.
        count: how many processes.
        index: which this one is, from 0.

    Raises:
        ValueError: the processes could not be found, or some of the arguments are missing.
    """
    given = [argument is not None for argument in (address, count, index)]
    if any(given) and not all(given):
        raise ValueError(
            f"address, count, index = {address}, {count}, {index}: expected all three or none"
        )
    try:
        jax.distributed.initialize(address, count, index)
    except (ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"address, count, index = {address}, {count}, {index}: {reason}"
        ) from error


def gather(mine: bytes) -> list[bytes]:
    """The bytes of every process, in order, in each of them; the only time that they talk."""
    if jax.process_count() == 1:
        return [mine]
    lengths = multihost_utils.process_allgather(np.array([len(mine)], np.int32)).ravel()
    padded = np.zeros(int(np.max(lengths)), np.uint8)
    padded[: len(mine)] = np.frombuffer(mine, np.uint8)
    rows = np.asarray(multihost_utils.process_allgather(padded))
    return [row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)]
