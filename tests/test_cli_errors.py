"""What the command line refuses: one line for people, and an exit code for scripts."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from dpjax.cli import _Commands
from tests.command_line import ROOT, run

__all__ = ["run"]

BAD = {
    "plan --epsilon 1 --delta 1e-5": "give --queries, or a file by --workload",
    "plan --delta 1e-5 --queries 3": "give --epsilon, or a tolerable error",
    "plan --epsilon 1 --queries 3": "Missing option '--delta'",
    "plan --epsilon nan --delta 1e-5 --queries 3": "'nan' is not a finite number",
    "plan --epsilon -1 --delta 1e-5 --queries 3": "--epsilon -1.0: expected a finite number",
    "plan --epsilon 1 --delta 2 --queries 3": "'2' is not a number in [0, 1)",
    "plan --epsilon 1 --delta 1e-5 --queries 2.5": "'2.5' is not a whole number",
    "plan --rmse 1 --mae 2 --delta 1e-5 --queries 3": "give one tolerable error",
    "plan --epsilon 1 --delta 0 --queries 3 --confidence 2": "--confidence 2.0: expected",
    "plan --epsilon 1 --delta 0.1 --workload workload.toml --queries 3": "--queries is part of",
    "plan --epsilon 1 --delta 0.1 --workload none.toml": "does not exist",
    "plan --epsilon 1 --delta 0 --queries 3 --plot plan.exe": "ends in .png, .svg or .pdf",
    "account --mechanism laplace --delta 1e-5": "give either --noise-multiplier or --scale",
    "account --mechanism laplace --scale -1 --delta 0": "--noise-multiplier -1.0: expected",
    "account --mechanism cauchy --scale 1 --delta 0": "'cauchy' is not one of",
    "account --mechanism laplace --scale 1 --sensitivity 0 --delta 0": "--sensitivity 0.0:",
    "account --mechanism discrete-laplace --scale 1 --sensitivity 0.5 --delta 0": "below 2^53",
    "calibrate --mechanism laplace --epsilon 0 --delta 0": "--epsilon 0.0: expected",
    "crossover --epsilon 1 --delta 1": "'1' is not a number in [0, 1)",
    "crossover --epsilon 1 --delta 0.1 --confidence 7": "--confidence 7.0: expected",
    "audit dpjax:laplace --value 1 --neighbour [1,2]": "have shapes [] and [2]: expected equal",
    "plan --epsilon 1 --delta 0 --queries 3 --json --csv": "--json and --csv: give one of them",
    "plan --epsilon 1 --delta 0 --queries 3 --epsilon 2": "--epsilon is given twice",
    "plan --epsilon 1 --delta 0 --queries 3 --seed 1": "--seed is of --simulate",
    "account --mechanism laplace --scale 1 --sensitivity 1e-300 --delta 0": "from 1e-100 to 1e100",
    "plan --epsilon 1 --delta 0 --workload unnamed.toml": "two queries are called 'query'",
    "audit no_such.py:f --value 0 --neighbour 1": "'no_such'; write no_such:f",
    "audit ./no/such:f --value 0 --neighbour 1": "; write no.such:f",
    "plan --rmse 0 --delta 0 --queries 3": "--rmse 0.0: expected a finite number above 0",
    "plan --epsilon 1 --delta 0 --queries 3 --measure quantile --confidence 1e-300": "least 1e-100",
    "plan --epsilon 1 --delta 0 --queries 3 --simulate 1": "from 2 to 1e+14",
    "crossover --epsilon 1,x --delta 1e-5": "'x' is not a finite number",
    "sweep --epsilon 1 --trials 10": "gaussian noise needs --delta",
    "sweep --epsilon 1 --processes 2": "expected all three or none",
    "sweep --epsilon 1 --processes 2 --process 2 --coordinator x:1": "below --processes 2",
    "sweep --delta 1e-5": "give --epsilon, or a file with it by --grid",
    "sweep --epsilon 1,1 --delta 1e-5": "epsilon: expected one or more values, each once",
    "sweep --grid workload.toml": "is unknown; expected",
    "audit dpjax --value 0 --neighbour 1": "expected MODULE:FUNCTION",
    "audit dpjax:nothing --value 0 --neighbour 1": "dpjax has no function nothing",
    "audit no_such_module:f --value 0 --neighbour 1": "No module named 'no_such_module'",
    "audit dpjax:laplace --value x --neighbour 1": "--value 'x': expected a finite number",
    "audit dpjax:laplace --value 0 --neighbour 1 --set scale": "expected NAME=JSON",
    "audit dpjax:laplace --value 0 --neighbour 1 --set a=1 --set a=2": "--set a is given twice",
    "audit dpjax:laplace --value 0 --neighbour 1 --set a=tru": 'true, false or "text"',
    "audit dpjax:laplace --value 1e200 --neighbour 1": "expected numbers of at most 3.4e38",
    "audit dpjax:laplace --value [1,2] --neighbour [1.0,2]": "--value and --neighbour are both",
    "audit dpjax:laplace --set scale=1.0 --value 1e9 --neighbour 1000000001": "same in float32",
    "audit dpjax:laplace --set scale=1.0 --value [16777216,5] --neighbour [16777217,5]": "float32",
    "audit dpjax:discrete_laplace --set scale=1.0 --value 4294967297 --neighbour 2": "as int32",
    "sweep --epsilon 1 --mechanism laplace --sensitivity 1e38": "expected from 1e-30 to 1e+30 to",
    "sweep --epsilon 1 --mechanism laplace --checkpoint none/x": "there is no folder none",
    "calibrate --mechanism laplace --epsilon 1 --delta 0 --count 1e19": "to 9223372036854775807",
    "plan --epsilon 1 --delta 0 --queries 2e9": "from 1 to 1e+09",
    "plan --within 1 --measure mae --delta 0 --queries 2": "--within is of measure quantile",
    "plan --epsilon 1 --delta 0 --workload bad.toml": "bad.toml: [[query]] 2 (income): sensitivity",
    "swep": "No such command 'swep'",
}


@pytest.mark.parametrize("line", BAD)
def test_wrong_arguments_exit_with_2_and_one_line(run, line):
    result = run(line, code=2)
    assert BAD[line] in result.stderr.replace("\n", " ")
    assert result.stdout == ""


IMPOSSIBLE = {
    "plan --epsilon 1 --rmse 5 --delta 0 --queries 50": "3 queries at both, or epsilon 14.1422",
    "plan --epsilon 1e6 --delta 1e-5 --queries 5": "nearest possible: epsilon 300",
    "plan --rmse 1e-9 --delta 0 --queries 1": "takes epsilon 1.41421e+09, and it protects nobody",
    "plan --rmse 1e-20 --delta 0 --queries 1": "nearest possible: 1e-12",
    "account --mechanism gaussian --scale 1 --delta 0": "no finite epsilon at delta 0",
    "calibrate --mechanism gaussian --epsilon 1 --delta 0": "a delta above 0",
    "calibrate --mechanism laplace --epsilon 1 --delta 0 --noise-multiplier 0.5": "epsilon is 2",
    "calibrate --mechanism gaussian --epsilon 1 --delta 0.1 --noise-multiplier 0": "than 0",
    "crossover --epsilon 1 --delta 0": "a delta above 0",
    "sweep --epsilon 1e6 --mechanism laplace": "nearest possible: epsilon 300",
    "sweep --epsilon 1 --delta 0 --mechanism gaussian": "laplace noise, or a delta above 0",
}


@pytest.mark.parametrize("line", IMPOSSIBLE)
def test_impossible_wishes_exit_with_1_and_the_nearest_possible(run, line):
    result = run(line, code=1)
    assert result.stderr.startswith("Impossible: ")
    assert "nearest possible" in result.stderr
    assert IMPOSSIBLE[line] in result.stderr


UNFIT = {
    "of_numpy": (2, "cannot be traced by JAX (TracerArrayConversionError): expected jax.numpy"),
    "numpy_noise": (2, "the same answers to two keys: expected noise from the key"),
    "no_number": (2, "answers NaN in every trial"),
    "noisy_count --set scale=1.0": (2, "--per-trial, dpjax.per_trial, if it answers a single"),
    "interrupted": (130, "Interrupted"),
    "broken": (2, "mine_to_audit:broken raised NameError"),
}


@pytest.mark.parametrize("function", UNFIT)
def test_what_cannot_be_audited_is_told_in_a_line(run, function):
    code, message = UNFIT[function]
    result = run(f"audit mine_to_audit:{function} --value 1 --neighbour 2 --trials 100", code)
    assert message in result.stderr.replace("\n", " ")
    assert result.stdout == ""


REMARKS = {
    "mine_to_audit:constant --value 1 --neighbour 2": "every answer is the same, on both",
    "mine_to_audit:frozen --value 1 --neighbour 2": "expected noise from the key, by jax.random",
    "dpjax:laplace --set scale=1.0 --value [1e9,5] --neighbour [1000000001,6]": "1 of the numbers",
}


@pytest.mark.parametrize("line", REMARKS)
def test_what_is_odd_about_an_audit_is_remarked(run, line):
    assert REMARKS[line] in run(f"audit {line} --trials 100").stdout


def test_a_closed_output_is_told(monkeypatch):
    class Closed(_Commands):
        def make_context(self, *args, **extra):
            with monkeypatch.context() as patch:
                patch.setattr("sys.stdout", None)
                return super().make_context(*args, **extra)

    result = CliRunner().invoke(Closed(), ["account"])
    assert (result.exit_code, result.stderr) == (3, "Error: standard output: closed\n")


def test_exit_codes_of_what_the_machine_fails_at(run, monkeypatch):
    line = "account --mechanism laplace --scale 1 --delta 0"
    for error, code, message in (
        (OSError(28, "No space left on device"), 3, "standard output: No space left on device"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (MemoryError(), 3, "not enough memory"),
        (KeyboardInterrupt(), 130, "Interrupted"),
    ):

        def fail(*_, error=error):
            raise error

        monkeypatch.setattr("dpjax.cli.account.emit", fail)
        result = run(line, code)
        assert message in result.stderr
        assert bool(message) == bool(result.stderr)


@pytest.mark.parametrize("line", ["--help", "account --mechanism laplace --scale 1 --delta 0"])
def test_a_reader_that_goes_is_no_error(line):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        command = [sys.executable, "-m", "dpjax", *line.split()]
        done = subprocess.run(command, cwd=ROOT, stdout=gone, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (141, "")
