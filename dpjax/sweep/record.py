"""What a process of a sweep has done so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpjax.statistics import Moments
from dpjax.sweep import total
from dpjax.sweep.division import Chunk, Job, Share
from dpjax.sweep.total import Total


@dataclass
class Done:
    """What one process has done of one point.

    Attributes:
        chunks: how many of its whole chunks, in order.
        whole: their total.
        rest: the point's last chunk, where that is not whole and belongs to this process.
    """

    chunks: int = 0
    whole: Total | None = None
    rest: Total | None = None

    @property
    def all(self) -> Total | None:
        """Everything so far."""
        return total.add(self.whole, self.rest)


class Record:
    """What this process has done of each point.

    Attributes:
        done: one entry for each point.
    """

    def __init__(self, jobs: Sequence[Job], share: Share, num_trials: int) -> None:
        self.jobs, self.share, self.num_trials = jobs, share, num_trials
        self.done = [Done() for _ in jobs]

    def has(self, chunk: Chunk) -> bool:
        """Whether a chunk is done."""
        done = self.done[chunk.point]
        if self.jobs[chunk.point].is_whole(chunk.number):
            return self.share.place(chunk.number) < done.chunks
        return done.rest is not None

    def trials(self) -> tuple[int, int]:
        """Trials of this process altogether, and those that are done."""
        everything = done = 0
        for chunk in self.share.chunks(self.jobs):
            trials = self.jobs[chunk.point].trials(chunk.number)
            everything += trials
            done += trials if self.has(chunk) else 0
        return everything, done

    def add(self, chunk: Chunk, part: Moments) -> None:
        """Add what a chunk gave; the chunks of a point come in order."""
        done, found = self.done[chunk.point], total.total(part)
        if self.jobs[chunk.point].is_whole(chunk.number):
            done.chunks, done.whole = done.chunks + 1, total.add(done.whole, found)
        else:
            done.rest = found

    def to_json(self) -> dict[str, Any]:
        """The state of a checkpoint."""
        points = [
            {
                "chunks": done.chunks,
                "whole": total.to_json(done.whole),
                "rest": total.to_json(done.rest),
            }
            for done in self.done
        ]
        return {"num_trials": self.num_trials, "points": points}

    def restore(self, state: dict[str, Any] | None) -> None:
        """Go on from a checkpoint, if there is one; of fewer trials, from its whole chunks.

        Raises:
            ValueError: the checkpoint's run had more trials.
        """
        if state is None:
            return
        if state["num_trials"] > self.num_trials:
            raise ValueError(
                f"num_trials = {self.num_trials}: expected at least the {state['num_trials']} of"
                " the checkpoint"
            )
        same = state["num_trials"] == self.num_trials
        self.done = [
            Done(
                point["chunks"],
                total.from_json(point["whole"]),
                total.from_json(point["rest"]) if same else None,
            )
            for point in state["points"]
        ]
