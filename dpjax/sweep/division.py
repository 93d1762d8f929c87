"""How a sweep is divided: points into chunks of fixed size, and chunks among processes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array

from dpjax.simulate import (
    as_edges,
    as_pytree,
    block_trials,
    check_noise,
    mechanism_name,
    whole_blocks,
    with_unit,
)
from dpjax.sweep.grid import Point, point_hash

CHUNK = 256
"""Blocks in a chunk: 2^24 numbers, some hundredths of a second on one core."""


@dataclass(frozen=True)
class Job:
    """A point ready to run: the arguments of `run_blocks`, and how many blocks.

    Attributes:
        point: what was asked for.
        numbers: seed, mechanism, value, unit and edges, as `run_blocks` takes them.
        per_block: trials in a block.
        blocks: whole blocks.
        tail: trials of the block after them.
    """

    point: Point
    numbers: tuple[np.ndarray, Partial, Array, Array, Array | None]
    per_block: int
    blocks: int
    tail: int

    @property
    def chunks(self) -> int:
        """All chunks, the last one whole or not."""
        return -(-(self.blocks + (self.tail > 0)) // CHUNK)

    def is_whole(self, chunk: int) -> bool:
        """Whether a longer run has the same chunk."""
        return (chunk + 1) * CHUNK <= self.blocks

    def part(self, chunk: int) -> tuple[int, int, int]:
        """First block, block after the last whole one, and tail of a chunk."""
        start, stop = chunk * CHUNK, min((chunk + 1) * CHUNK, self.blocks)
        return start, stop, 0 if self.is_whole(chunk) else self.tail

    def trials(self, chunk: int) -> int:
        """Trials in a chunk."""
        start, stop, tail = self.part(chunk)
        return (stop - start) * self.per_block + tail


class Chunk(NamedTuple):
    """A piece of work: which point, and which of its chunks."""

    point: int
    number: int


@dataclass(frozen=True)
class Share:
    """Which process this is, of how many."""

    index: int
    count: int

    def chunks(self, jobs: Sequence[Job]) -> Iterator[Chunk]:
        """This process's chunks: of all points the first ones, then the second ones, and so on.

        Chunk c of point p belongs to process (c + p) mod count, so that each process has a share of
        every point, and of many points with one chunk each.
        """
        for number in range(max(job.chunks for job in jobs)):
            for point, job in enumerate(jobs):
                if number < job.chunks and (number + point) % self.count == self.index:
                    yield Chunk(point, number)

    def place(self, number: int) -> int:
        """How many chunks of the same point this process has before this one."""
        return number // self.count


def jobs(key: Array, points: Sequence[Point], num_trials: int, name: str) -> list[Job]:
    """All points ready to run.

    Args:
        key: of the whole sweep.
        points: what to run.
        num_trials: of each point.
        name: of the sweep.

    Raises:
        ValueError: too many trials, bad edges, or noise that is NaN or the same in all trials.
    """
    hashes = np.array([point_hash(point.coordinates, name) for point in points])
    seeds = np.asarray(_seeds(key, hashes))  # of all points at once: each call takes its time
    made = [_job(seed, point, num_trials) for seed, point in zip(seeds, points, strict=True)]
    for job in made:  # now that all are on their way
        check_noise(job.numbers[3], f"{mechanism_name(job.numbers[1])} at {job.point.name}")
    return made


@jax.jit
def _seeds(key: Array, hashes: Array) -> Array:
    """What `as_seed(point_key(...))` gives for each hash."""
    return jax.vmap(lambda each: jax.random.key_data(jax.random.fold_in(key, each)))(hashes)


def _job(seed: np.ndarray, point: Point, num_trials: int) -> Job:
    """One point ready to run, its unit still being computed."""
    mechanism, edges = as_pytree(point.mechanism), as_edges(point.edges)
    value, unit = with_unit(seed, mechanism, point.value, measure=point.measure)
    blocks, tail = whole_blocks(value, num_trials)
    return Job(point, (seed, mechanism, value, unit, edges), block_trials(value), blocks, tail)
