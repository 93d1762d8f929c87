"""Command lines in process: a fixture that runs them in a folder of files, and their JSON."""

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from dpjax import cli

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((Path(cli.__file__).parent / "schema.json").read_text(encoding="utf-8"))
WORKLOAD = """
people = 10000
[[query]]
kind = "count"
count = 20
[[query]]
name = "income"
sensitivity = 50.0
weight = 0.01
"""
GRID = """
mechanism = ["laplace", "gaussian"]
epsilon = [1.0]
queries = [1, 10]
delta = 1e-5
trials = 70000
"""
MECHANISM = """
import random

import jax
import numpy as np


def noisy_count(key, value, scale):
    return value + scale * jax.random.laplace(key)


def broken(key, value):
    return value / undefined


def of_numpy(key, value):
    return np.asarray(value) + np.random.laplace(size=value.shape)


def numpy_noise(key, value):
    return value + np.random.laplace(size=value.shape)


def interrupted(key, value):
    raise KeyboardInterrupt


def no_number(key, value):
    return value * np.nan


def constant(key, value):
    return value * np.inf


def frozen(key, value):
    return value + random.random()


def talking(key, value, loud, kind):
    print(kind if loud else "nothing")
    return value + jax.random.laplace(key, value.shape)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command line in a folder of its own, with the files that the help speaks of."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workload.toml").write_text(WORKLOAD)
    (tmp_path / "bad.toml").write_text(WORKLOAD.replace("50.0", "-1"))
    (tmp_path / "unnamed.toml").write_text("[[query]]\nsensitivity = 1\n" * 2)
    (tmp_path / "grid.toml").write_text(GRID)
    (tmp_path / "mine_to_audit.py").write_text(MECHANISM)
    monkeypatch.syspath_prepend(str(tmp_path))

    def call(line, code=0):
        arguments = line.split() if isinstance(line, str) else line
        result = CliRunner().invoke(cli.main, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return call


def as_json(run, line):
    """What --json prints, once it is valid."""
    printed = json.loads(run(f"{line} --json").stdout)
    jsonschema.validate(printed, SCHEMA)
    return printed
