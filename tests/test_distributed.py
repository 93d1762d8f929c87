"""The same bits on any number of devices and processes, each run in processes of its own."""

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dpjax.sweep import distributed

ROOT = Path(__file__).parent.parent


def start(devices, *, checkpoint="-", process=(), prefix=()):
    command = [*prefix, sys.executable, "-m", "tests.sweep_process", devices, checkpoint, *process]
    return subprocess.Popen(
        [str(argument) for argument in command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """The last line that it prints, the bits of its result."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.splitlines()[-1]


def together(processes, devices, **options):
    """The results of several processes of one run on the loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    running = [
        start(devices, process=(address, processes, index), **options) for index in range(processes)
    ]
    return [finish(process) for process in running]


@pytest.fixture(scope="module")
def alone():
    """The bits on one device of one process."""
    return finish(start(1))


def test_two_devices(alone):
    assert finish(start(2)) == alone


@pytest.mark.slow
def test_four_devices(alone):
    assert finish(start(4)) == alone


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("taskset") is None, reason="taskset is not installed")
def test_one_core(alone):
    """A process bound to one core has one thread, and its compiler cuts nothing in parts."""
    assert finish(start(1, prefix=["taskset", "--cpu-list", "0"])) == alone


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (3, 1)])
def test_processes(alone, processes, devices):
    assert together(processes, devices) == [alone] * processes


@pytest.mark.slow
def test_killed_three_times(alone, tmp_path):
    path = tmp_path / "run"
    starts, ends = [], []
    for share, devices in ((0.2, 1), (0.5, 2), (0.8, 1)):
        process = start(devices, checkpoint=path)
        assert process.stdout is not None
        reports = []
        for line in process.stdout:
            reports.append([int(number) for number in line.split()])
            if reports[-1][0] > share * reports[-1][1]:
                process.send_signal(signal.SIGKILL)
                break
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        starts.append(reports[0][0])
        ends.append(reports[-1][0])
    last = start(2, checkpoint=path)
    out, err = last.communicate()
    assert last.returncode == 0, err
    lines = out.splitlines()
    assert lines[-1] == alone
    starts.append(int(lines[0].split()[0]))
    for end, resumed in zip(ends, starts[1:], strict=True):
        assert end - resumed <= 2 * 65_536  # at most the chunk of one interval


@pytest.mark.slow
def test_killed_and_resumed_with_two_processes(alone, tmp_path):
    path = tmp_path / "run"
    assert together(2, 1, checkpoint=path) == [alone, alone]
    (tmp_path / "run.1-of-2").unlink()  # as if killed before its first checkpoint
    (tmp_path / "run.1-of-2.before").unlink()
    assert together(2, 2, checkpoint=path) == [alone, alone]


@pytest.mark.parametrize("where", [("127.0.0.1:1", None, None), (None, 2, 0), ("x:1", 2, None)])
def test_half_an_address_is_refused(where):
    with pytest.raises(ValueError, match=r"expected all three or none$"):
        distributed.connect(*where)


def test_nobody_to_find_is_one_line():
    code = "from dpjax.sweep import distributed; distributed.connect()"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    last = run.stderr.splitlines()[-1]
    assert last.startswith("ValueError: address, count, index = None, None, None: ")
    assert run.returncode == 1


def test_one_process_gathers_its_own():
    assert distributed.gather(b"abc") == [b"abc"]
