"""Numbers as people read them: noise and epsilon are rounded up, so that a claim stays true."""

import math
import re

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dpjax import cli
from dpjax.accounting import exact, loss
from dpjax.cli.output import number, up


@given(st.floats(0, 1e300, allow_subnormal=False))
def test_rounded_up_is_no_smaller_and_hardly_larger(value):
    shown = up(value)
    assert shown >= value
    assert shown <= value * (1 + 1.0001e-5)
    assert float(number(shown)) == shown


def test_ends():
    assert up(0.0) == 0
    assert up(math.inf) == math.inf
    assert up(0.9999995) == 1


@pytest.mark.parametrize(
    "queries", [20, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 33))]
)
def test_the_noise_that_a_plan_prints_keeps_the_budget(queries):
    line = f"plan --epsilon 1 --delta 1e-6 --queries {queries}"
    text = CliRunner().invoke(cli.main, line.split()).output
    found = re.search(r"use (\w+).*noise of scale ([\d.]+);", text, re.DOTALL)
    assert found is not None
    mechanism, scale = found[1], float(found[2])
    assert f"dpjax.{mechanism}(key, value, scale=...)" in text
    spent = exact.epsilon(queries * getattr(loss, mechanism)(scale), 1e-6)
    assert 0.9999 < spent <= 1


def test_the_epsilon_that_an_account_prints_is_safe_to_claim():
    line = "account --mechanism gaussian --scale 20 --count 100 --delta 1e-5"
    text = CliRunner().invoke(cli.main, line.split()).output
    (printed,) = re.findall(r"^exact +([\d.]+)", text, re.MULTILINE)
    (upper,) = re.findall(r"lies between \S+ and (\S+)", text)
    assert 0 <= float(printed) - float(upper) < 1e-5
