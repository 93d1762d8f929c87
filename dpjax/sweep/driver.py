"""Sweeps: many points with many trials, over devices and processes, stopped and resumed at will.

The blocks of each point are divided into chunks of fixed size. What a chunk gives depends on its
point and its number alone, and chunks add up exactly (see `total`). So the result has the same
bits whatever the number of devices or processes, with or without an interruption, and a longer
run goes on where a shorter one ended.
"""

import functools
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from os import PathLike
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from dpjax import _validate, prng
from dpjax.simulate import run_compiled
from dpjax.statistics import Moments
from dpjax.sweep import distributed, total
from dpjax.sweep.checkpoint import load, path_of, save
from dpjax.sweep.division import Chunk, Job, Share, jobs
from dpjax.sweep.grid import Point, check
from dpjax.sweep.identity import identity
from dpjax.sweep.progress import Progress
from dpjax.sweep.record import Record
from dpjax.sweep.result import SweepResult

_IN_FLIGHT = 2  # chunks on each device: while one runs, the next one waits
_KEPT = 8  # chunks for each device that may be done before an earlier one


def sweep(
    key: Array,
    points: Sequence[Point],
    num_trials: int,
    *,
    name: str = "",
    checkpoint: str | PathLike[str] | None = None,
    interval: float = 60.0,
    progress: Progress | None = None,
) -> SweepResult:
    """Simulate each point of a grid with so many trials, each with a key of its own.

    Uses every device of every process. On a CPU have one device for each core:
    `jax.config.update("jax_num_cpu_devices", cores)` before anything else of JAX. Several
    processes join by `distributed.connect`, make the same call, and all get the whole result.

    Each point has the statistics that `simulate` gives with `point_key(key, coordinates, name)`,
    but for the rounding of sums (a relative difference below 1e-10). For one version of JAX and one
    kind of device they are the same bits on any number of devices and processes.

    Args:
        key: one typed threefry2x32 key; several sweeps of one key need different names.
        points: from `grid`, or a list of one's own. Points of one mechanism that differ only in
            numbers bound by `functools.partial` share one trace.
        num_trials: of each point, at least 1, fewer than 2^31 blocks.
        name: part of each point's key: another name, other random numbers.
        checkpoint: a file that says how far the run is. If it is there, this run goes on from it;
            it may have more trials than the one before, not fewer. Each of several processes has
            its own, such as PATH.0-of-2.
        interval: seconds from one checkpoint to the next, the most that a crash can lose beside
            the chunk at work (2^24 numbers).
        progress: called as `progress(done, total)` with trials of this process; for one see
            `progress.bar`.

    Raises:
        TypeError: `key` is no typed key; a coordinate that is neither text nor a number.
        ValueError: what `simulate` refuses, at any point; two points with one name or one key; a
            checkpoint of another run, or a damaged one with no good one before it.
        OSError: the checkpoint could not be written; the last good one stays.

    >>> import dpjax, functools, jax
    >>> points = dpjax.grid(
    ...     lambda epsilon: functools.partial(dpjax.laplace, scale=1 / epsilon), epsilon=[0.1, 1.0]
    ... )
    >>> result = sweep(jax.random.key(0), points, 100_000)
    >>> [round(float(moments.rmse)) for moments in result.moments]
    [14, 1]
    """
    prng.unroll(key)  # to check it
    check(points, name)
    num_trials = _validate.positive_count(num_trials=num_trials)
    interval = float(_validate.non_negative(interval=interval))
    share = Share(jax.process_index(), jax.process_count())
    record = Record(jobs(key, points, num_trials, name), share, num_trials)
    keep = None
    if checkpoint is not None:
        path = path_of(checkpoint, share.index, share.count)
        run = identity(key, name, record.jobs, share)
        record.restore(load(path, run))
        keep = lambda: save(path, run, record.to_json())  # noqa: E731
    _run(record, keep, interval, progress)
    return SweepResult(tuple(points), _gather(record))


def _run(
    record: Record, keep: Callable[[], None] | None, interval: float, progress: Progress | None
) -> None:
    """Do what is left of this process's share, and keep it now and then."""
    if keep:
        keep()  # before the work, so that a path that cannot be written is told at once
    trials, done = record.trials()
    if progress:
        progress(done, trials)
    kept = time.monotonic()
    left = (chunk for chunk in record.share.chunks(record.jobs) if not record.has(chunk))
    for chunk, part in _simulated(record.jobs, left):
        record.add(chunk, part)
        done += record.jobs[chunk.point].trials(chunk.number)
        if keep and time.monotonic() - kept >= interval:
            keep()
            kept = time.monotonic()
        if progress:
            progress(done, trials)
    if keep:
        keep()


def _simulated(jobs: Sequence[Job], chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Moments]]:
    """What each chunk gives, in order; each chunk runs on the device that has least to do."""
    devices = jax.local_devices()
    flying: deque[tuple[Chunk, Any, Future[Moments]]] = deque()

    @functools.cache  # small, and most runs have many chunks of a point
    def numbers(point: int, device: Any) -> tuple[Any, ...]:
        return jax.device_put(jobs[point].numbers, device)

    def load(device: Any) -> int:
        return sum(here is device and not part.done() for _, here, part in flying)

    # Threads that only wait: JAX's settings of this thread hold for what this thread starts.
    with ThreadPoolExecutor(_IN_FLIGHT * len(devices)) as waiting:
        for chunk in chunks:
            while True:
                device = min(devices, key=load)
                if load(device) < _IN_FLIGHT and len(flying) < _KEPT * len(devices):
                    break
                if flying[0][2].done():
                    yield flying[0][0], flying.popleft()[2].result()
                else:
                    wait([p for _, _, p in flying if not p.done()], return_when=FIRST_COMPLETED)
            seed, mechanism, value, unit, edges = numbers(chunk.point, device)
            start, stop, tail = map(np.int32, jobs[chunk.point].part(chunk.number))
            measure = jobs[chunk.point].point.measure
            part = run_compiled(
                seed, mechanism, value, start, stop, tail, unit, measure=measure, edges=edges
            )
            flying.append((chunk, device, waiting.submit(jax.device_get, part)))
        while flying:
            yield flying[0][0], flying.popleft()[2].result()


def _gather(record: Record) -> tuple[Moments, ...]:
    """The moments of each point, of all processes together."""
    mine = json.dumps([total.to_json(done.all) for done in record.done]).encode()
    parts = [
        [total.from_json(fields) for fields in json.loads(theirs)]
        for theirs in distributed.gather(mine)
    ]
    points = zip(*parts, strict=True)
    return tuple(total.moments(functools.reduce(total.add, point)) for point in points)
