"""Checkpoints survive whatever happens while they are written, and refuse another run."""

import os
from pathlib import Path

import pytest

from dpjax.sweep import checkpoint

RUN = {"version": "1", "seed": "[0, 1]", "grid": ["a", "b"], "mechanism": ["f of a", "f of b"]}


class Crash(Exception):
    """Stands for the process's end."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.json"


def save(path, number):
    checkpoint.save(path, RUN, {"number": number})


def load(path):
    state = checkpoint.load(path, RUN)
    return None if state is None else state["number"]


def crash_at(monkeypatch, step):
    def crash(reached):
        if reached == step:
            raise Crash

    monkeypatch.setattr(checkpoint, "_step", crash)


def test_the_state_comes_back(path):
    assert load(path) is None
    save(path, 2**100)
    assert load(path) == 2**100
    save(path, 2)
    assert load(path) == 2
    assert load(checkpoint.before(path)) == 2**100


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("before write", 2),
        ("half-way", 2),
        ("before rename", 2),
        ("between renames", 2),
        ("after", 3),
    ],
)
def test_a_crash_leaves_the_last_good_one(path, monkeypatch, step, left):
    save(path, 1)
    save(path, 2)
    with monkeypatch.context() as patch:
        crash_at(patch, step)
        with pytest.raises(Crash):
            save(path, 3)
    assert load(path) == left
    save(path, 4)
    assert load(path) == 4


def test_a_crash_in_the_first_one_leaves_none(path, monkeypatch):
    with monkeypatch.context() as patch:
        crash_at(patch, "half-way")
        with pytest.raises(Crash):
            save(path, 1)
    assert load(path) is None


def truncate(data):
    return data[: len(data) // 2]


def flip(data):
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


@pytest.mark.parametrize("damage", [truncate, flip, lambda data: b"", lambda data: b"x" * 999])
def test_a_damaged_one_is_reported_and_the_one_before_used(path, damage):
    save(path, 1)
    save(path, 2)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match=r"run\.json: damaged \(.*set aside as.*before it is used"):
        assert load(path) == 1
    assert (path.parent / "run.json.damaged").exists()
    save(path, 3)
    assert load(path) == 3
    assert load(checkpoint.before(path)) == 1  # a damaged one never takes the place of a good one


def test_damaged_with_none_before_is_an_error(path):
    save(path, 1)
    path.write_bytes(truncate(path.read_bytes()))
    checkpoint.before(path).write_text("nor this")
    for _ in range(2):  # and does not start anew the second time
        with pytest.raises(ValueError, match=r"damaged \(.*expected a good one before it, or no"):
            load(path)


@pytest.mark.parametrize(
    ("name", "other", "message"),
    [
        ("version", "2", r"of another version \(1\), expected 2$"),
        ("seed", "[0, 2]", r"of another seed \(\[0, 1\]\), expected \[0, 2\]$"),
        ("grid", ["a", "c"], r"of another grid \(b\), expected c$"),
        ("grid", ["a"], r"of another grid \(2 points\), expected 1 points$"),
        ("mechanism", ["f of a", "g of b"], r"of another mechanism \(f of b\), expected g of b$"),
    ],
)
def test_another_run_is_refused_by_name(path, name, other, message):
    save(path, 1)
    with pytest.raises(ValueError, match=message):
        checkpoint.load(path, RUN | {name: other})
    assert load(path) == 1


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_is_told_and_the_last_good_one_stays(path, monkeypatch, call):
    save(path, 1)

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(
            OSError, match=r"not written \(No space left on device\); the last"
        ) as e:
            save(path, 2)
    assert "\n" not in str(e.value)
    assert load(path) == 1


def test_an_unwritable_path(path):
    path.write_text("")
    below = path / "below"
    assert load(below) is None
    with pytest.raises(OSError, match=r"below: not written \(Not a directory\)"):
        save(below, 1)
    with pytest.raises(OSError, match=r"x: not written \(No such file or directory\)"):
        save(path.parent / "no" / "x", 1)


def test_each_process_has_its_own(path):
    assert checkpoint.path_of(path, 0, 1) == path
    assert checkpoint.path_of(path, 1, 3) == Path(f"{path}.1-of-3")


def test_other_processes_are_refused(path):
    save(checkpoint.path_of(path, 1, 2), 1)
    checkpoint.path_of(path, 0, 2)
    with pytest.raises(ValueError, match=r"1-of-2: of 2 processes, expected 1$"):
        checkpoint.path_of(path, 0, 1)
    alone = path.with_name("alone")
    save(alone, 1)
    with pytest.raises(ValueError, match=r"alone: of 1 processes, expected 2$"):
        checkpoint.path_of(alone, 0, 2)
