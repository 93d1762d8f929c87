"""Fuzzed command lines: no traceback, no NaN, and no success on nonsense."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpjax import cli

SCHEMA = json.loads((Path(cli.__file__).parent / "schema.json").read_text(encoding="utf-8"))

NONSENSE = (
    "nan",
    "-nan",
    "inf",
    "-inf",
    "",
    "x",
    "1e",
    "--",
    "0x10",
    "1,",
    "-3",
    "1e999",
    "½",
    "\x00",
)
COUNTS = ("1", "2", "7", "1e3", "1_000", "0", "1.5", "9223372036854775807", "1e300")
MECHANISMS = ("laplace", "gaussian", "discrete-laplace", "discrete-gaussian")
FLAGS = {
    "plan": (
        "--epsilon",
        "--rmse",
        "--mae",
        "--within",
        "--delta",
        "--sensitivity",
        "--confidence",
    ),
    "account": (
        *("--noise-multiplier", "--scale", "--sensitivity", "--sampling-probability", "--delta"),
    ),
    "calibrate": (
        *("--epsilon", "--delta", "--noise-multiplier", "--sensitivity", "--sampling-probability"),
    ),
    "crossover": ("--epsilon", "--delta", "--confidence"),
    "sweep": ("--epsilon", "--delta", "--sensitivity", "--every"),
    "audit": ("--epsilon", "--delta", "--confidence", "--value", "--neighbour"),
}
WHOLE = {
    "plan": ("--queries", "--people"),
    "account": ("--count",),
    "calibrate": ("--count",),
    "crossover": (),
    "sweep": ("--queries", "--devices", "--processes"),
    "audit": ("--seed",),
}


@st.composite
def lines(draw, commands, values):
    """A command with most of its options, each with a value that may fit."""
    command = draw(st.sampled_from(commands))
    line = [command]
    for flag in FLAGS[command]:
        if draw(st.integers(0, 9)) < 7:
            line += [flag, draw(st.sampled_from(values))]
    for flag in WHOLE[command]:
        if draw(st.integers(0, 9)) < 8:
            line += [flag, draw(st.sampled_from(COUNTS + values[:3]))]
    if command in ("account", "calibrate"):
        line += ["--mechanism", draw(st.sampled_from((*MECHANISMS, "cauchy")))]
    if command in ("crossover", "plan"):
        line += ["--measure", draw(st.sampled_from(("rmse", "mae", "quantile", "mse")))]
    if command == "crossover":
        line += ["--up-to", draw(st.sampled_from(("1", "30", "0", "x")))]
    if command == "audit":
        line += ["dpjax:laplace", "--set", f"scale={draw(st.sampled_from(values))}"]
    form = draw(st.sampled_from(("--json", "--csv", "", "--jsn")))
    return line + [form] * bool(form)


DELTAS = ("0", "1e-300", "1e-9", "1e-5", "0.1", "0.999", "1")
EXTREME = ("1e-300", "0.1", "1", "2.5", "7", "1e3", "1e300")


@st.composite
def sound_lines(draw):
    """A command whose options belong together, with values of any size."""
    command = draw(st.sampled_from(("account", "calibrate", "crossover", "plan")))
    line = [command, "--delta", draw(st.sampled_from(DELTAS))]

    def add(flag, values):
        line.extend((flag, draw(st.sampled_from(values))))

    if command == "account":
        add(draw(st.sampled_from(("--noise-multiplier", "--scale"))), ("0", *EXTREME))
    else:
        wishes = (
            ("--epsilon", "--rmse", "--mae", "--within") if command == "plan" else ("--epsilon",)
        )
        add(draw(st.sampled_from(wishes)), EXTREME)
    if command in ("account", "calibrate"):
        add("--mechanism", MECHANISMS)
        add("--count", ("1", "3", "1e4", "1e15"))
        if draw(st.booleans()):
            add("--sampling-probability", ("0", "0.01", "1"))
    if command == "plan":
        add("--queries", ("1", "3", "40", "1e6"))
        add("--confidence", ("1e-9", "0.95", "0.999999999999"))
        line.extend(["--whole"] * draw(st.booleans()))
    if draw(st.booleans()) and command != "crossover":
        add("--sensitivity", ("1e-9", "1", "3", "1e9"))
    line.append(draw(st.sampled_from(("--json", "--csv"))))
    return line


ENORMOUS = ("1e-40", "1e-29", "1", "1e20", "1e29", "1e37", "1e38", "1e300")
ANSWERS = ("0 1", "1 3e38", "3e38 -3e38", "1e20 -2", "1 1e200", "[0,1] [3e38,0]", "7 7")


@st.composite
def simulated_lines(draw):
    """Simulations whose noise or answers may be beyond what 32 bits hold."""
    command = draw(st.sampled_from(("sweep", "audit", "plan")))
    mechanism = draw(st.sampled_from(MECHANISMS))
    line = [command]

    def add(flag, values):
        line.extend((flag, draw(st.sampled_from(values))))

    add("--delta", DELTAS[1:-1])
    if command == "audit":
        scale = draw(st.sampled_from(ENORMOUS))
        line += [f"dpjax:{mechanism.replace('-', '_')}", "--set", f"scale={scale}"]
        value, neighbour = draw(st.sampled_from(ANSWERS)).split()
        line += ["--value", value, "--neighbour", neighbour]
        add("--epsilon", ("0", *EXTREME))
    else:
        add("--epsilon", ("1e-6", "1", "7", "300"))
        add("--queries", ("1", "40", "1e6"))
        add("--sensitivity", ENORMOUS)
    if command == "sweep":
        line += ["--mechanism", mechanism, "--quiet"]
    add(
        "--simulate" if command == "plan" else "--trials",
        ("8", "1e3") if command == "audit" else ("2", "1e3"),
    )
    line.extend(draw(st.sampled_from(([], [], ["--json"]))))
    return line


def outcome(line):
    """Exit code and output, after the promises that hold for any line."""
    result = CliRunner().invoke(cli.main, line)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(line) from result.exception
    assert result.exit_code in (0, 1, 2), line
    assert "Traceback" not in result.output
    assert not re.search(r"\bnan\b", result.stdout.lower()), line
    assert len(result.stderr) < 1500, line
    if result.exit_code == 2 or not result.stdout:  # the answer "no" of an audit has a result
        assert not result.stdout, line
        assert result.stderr.strip(), line
    elif "--json" in line:
        jsonschema.validate(json.loads(result.stdout), SCHEMA)
    return result


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(lines(tuple(FLAGS), NONSENSE))
def test_nonsense_never_succeeds(line):
    assert outcome(line).exit_code == 2, line


@pytest.mark.slow
@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(lines(tuple(FLAGS), NONSENSE))
def test_much_nonsense_never_succeeds(line):
    assert outcome(line).exit_code == 2, line


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(sound_lines())
def test_numbers_of_any_size_are_answered_or_refused(line):
    outcome(line)


@pytest.mark.slow
@settings(max_examples=16, suppress_health_check=[HealthCheck.too_slow])
@given(simulated_lines())
def test_simulations_of_any_size_are_answered_or_refused(line):
    outcome(line)


@settings(max_examples=100)
@given(st.lists(st.text(max_size=12), max_size=5))
def test_any_words_are_refused(words):
    result = outcome(words)
    assert result.exit_code == 2 or not words or {"-h", "--help", "--version"} & set(words)
