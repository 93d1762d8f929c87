"""Benchmark workers: a process for each contestant, told over pipes how many trials to run.

Each has its own number of devices and its own peak of memory, and while others run it sleeps.
"""

import json
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments.contestants import MAKERS, Entry, integer_bound


class Worker:
    """The process or processes of one entry.

    Attributes:
        absent: why the contestant cannot run here, or None.
        device: what it runs on.
        bound: words per second that the device's integer units allow, if it is a GPU.
    """

    def __init__(self, entry: Entry) -> None:
        environment = os.environ | {
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # others use the accelerator too
            **({"JAX_PLATFORMS": "cpu"} if entry.devices else {}),
        }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self._log = tempfile.TemporaryFile("w+")
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "experiments.worker", json.dumps(entry), address, str(i)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                env=environment,
            )
            for i in range(entry.processes)
        ]
        try:
            first = self._answers()[0]
        except OSError:
            self.close()
            raise
        self.absent: str | None = first["absent"]
        self.device: str = first["device"]
        self.bound: float | None = first["bound"]

    def run(self, trials: int) -> dict[str, Any]:
        """Seconds, RMSE and peak memory in MB (over processes: longest and together)."""
        for process in self._processes:
            assert process.stdin is not None
            print(trials, file=process.stdin, flush=True)
        answers = self._answers()
        return {
            "seconds": max(answer["seconds"] for answer in answers),
            "rmse": answers[0]["rmse"],
            "peak_mb": sum(answer["peak_mb"] for answer in answers),
        }

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:  # all, before waiting for one: they end together
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            with process:  # closes its pipe and waits
                pass
        self._log.close()

    def _answers(self) -> list[dict[str, Any]]:
        """One line of JSON from each process."""
        answers = []
        for process in self._processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                self._log.seek(0)
                raise OSError(f"a worker ended early: {' '.join(self._log.read().split())[-400:]}")
            answers.append(json.loads(line))
        return answers


def main(entry: Entry, address: str, index: int) -> None:
    """The worker's side."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere

    def say(**fields: Any) -> None:
        print(json.dumps(fields), file=answer, flush=True)

    if entry.processes > 1:
        _take_cores(index, entry.processes)
    device, bound = "cpu", None
    if entry.contestant.startswith(("jax", "dpjax", "words")):
        import jax

        if entry.devices:
            jax.config.update("jax_num_cpu_devices", entry.devices)
        if entry.processes > 1:
            from dpjax.sweep import distributed

            distributed.connect(address, entry.processes, index)
        device = jax.local_devices()[0].device_kind
        bound = None if entry.devices else integer_bound()
    try:
        run = MAKERS[entry.contestant](entry)
    except ImportError as error:
        say(absent=" ".join(str(error).split()), device=device, bound=bound)
        return
    say(absent=None, device=device, bound=bound)
    for line in sys.stdin:
        start = time.perf_counter()
        rmse = run(int(line))
        seconds = time.perf_counter() - start
        say(seconds=seconds, rmse=rmse, peak_mb=_peak_mb())


def _take_cores(index: int, count: int) -> None:
    """Bind this process to its share of the cores, as Slurm and mpirun do; not so but on Linux.

    JAX has a thread for each core that a process may use. Left to all cores, two processes would
    cut each small step of their work in two and wait for the halves.
    """
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, set(cores[index % len(cores) :: count]))


def _peak_mb() -> float:
    """The most memory that this process has had; `ru_maxrss` may be what its parent had."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(Entry(*json.loads(sys.argv[1])), sys.argv[2], int(sys.argv[3]))
