"""A sweep in a process of its own, for the tests: prints its progress and the bits of its result.

python -m tests.sweep_process DEVICES CHECKPOINT [ADDRESS COUNT INDEX], with - for no checkpoint
"""

import functools
import hashlib
import json
import sys

import jax

import dpjax
from dpjax.simulate import BLOCK
from dpjax.sweep import distributed, division, total


def main(devices: int, checkpoint: str, process: list[str]) -> None:
    """Run and print."""
    jax.config.update("jax_num_cpu_devices", devices)
    if process:
        distributed.connect(process[0], int(process[1]), int(process[2]))
    assert jax.local_device_count() == devices
    division.CHUNK = 2  # so that a small run has many
    result = dpjax.sweep(
        jax.random.key(0),
        dpjax.grid(
            lambda epsilon: functools.partial(dpjax.laplace, scale=1 / epsilon), epsilon=[0.5, 1, 2]
        ),
        41 * BLOCK + 5,
        checkpoint=None if checkpoint == "-" else checkpoint,
        interval=0,
        progress=lambda done, trials: print(done, trials, flush=True),  # noqa: T201
    )
    numbers = json.dumps([total.to_json(total.total(moments)) for moments in result.moments])
    print(hashlib.sha256(numbers.encode()).hexdigest())  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
