"""The command line: examples of its help, forms of its output, exit codes, and what it loads."""

import csv
import io
import json
import re
import subprocess
import sys

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from dpjax import cli, curves, plan
from dpjax.accounting import calibrate, exact, loss, rdp
from dpjax.crossover import crossover
from dpjax.plan import advice
from tests.command_line import ROOT, SCHEMA, WORKLOAD, as_json, run

__all__ = ["run"]

SLOW = pytest.mark.slow


def examples():
    """Every command line of every --help."""
    for name in ("", *cli.COMMANDS):
        text = CliRunner().invoke(cli.main, [*name.split(), "--help"]).output
        for line in re.findall(r"^ +dpjax (.*(?:(?<=\\)\n.*)*)$", text, re.MULTILINE):
            yield re.sub(r"\\\s+", "", line)


HEAVY = ("plan", "sweep", "audit", "--csv", "sampling")
EXAMPLES = [
    pytest.param(line, marks=SLOW if any(word in line for word in HEAVY) else ())
    for line in dict.fromkeys(examples())
]


def test_the_help_has_examples_for_every_command():
    named = {line.split()[0] for line in examples()}
    assert named == set(cli.COMMANDS)


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_of_the_help_runs(run, line):
    arguments = line.split(" >> ")[0]
    assert run(arguments).stdout


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.slow
def test_plan_prints_what_the_library_has(run):
    printed = as_json(run, "plan --epsilon 1 --delta 1e-5 --queries 7")
    found = plan.at_budget(plan.equal(7), epsilon=1.0, delta=1e-5)
    assert printed["best"] == found.best.design.name == "gaussian exact"
    for row, option in zip(printed["designs"], found.options, strict=True):
        assert f"{row['mechanism']} {row['accounting']}" == option.design.name
        assert row["error"] == option.error  # to the last digit
        assert row["epsilon"] == option.epsilon
        assert row["scales"] == option.scales.tolist()
    assert printed["crossover"] == advice.lead_of(found)._asdict()
    assert printed["risk"] == advice.risk_of(found)._asdict()
    assert printed["queries"][0]["half_width"] == found.best.half_widths(0.95)[0]


@SLOW
def test_plan_for_a_tolerable_error_and_a_file(run):
    printed = as_json(
        run, "plan --within 30 --confidence 0.9 --delta 1e-6 --workload workload.toml"
    )
    workload = plan.from_toml(WORKLOAD)
    wish = {"error": 30.0, "delta": 1e-6, "measure": "quantile", "level": 0.9}
    assert printed["epsilon"] == plan.at_error(workload, **wish).epsilon
    assert printed["num_queries"] == 21
    assert printed["people"] == 10000


def test_account_prints_what_the_library_has(run):
    line = "account --mechanism laplace --scale 20 --sensitivity 2 --count 100 --delta 1e-5"
    printed = as_json(run, line)
    leak = 100 * loss.laplace(10.0)
    found = {row["accountant"]: row for row in printed["accountants"]}
    bound = rdp.optimum(leak, 1e-5)
    assert found["renyi_improved"]["epsilon"] == float(bound.epsilon)
    assert found["renyi_improved"]["order"] == float(bound.order)
    assert found["exact"]["epsilon"] == float(exact.epsilon(leak, 1e-5))
    assert printed["exact"]["lower"] <= printed["exact"]["estimate"] <= printed["exact"]["upper"]
    assert round(printed["exact"]["upper"], 6) == 4.220347


@SLOW
def test_account_of_a_sample_with_whole_number_noise(run):
    line = "account --mechanism discrete-laplace --scale 4 --sensitivity 2 --delta 1e-5"
    printed = as_json(run, line + " --sampling-probability 0.1")
    leak = loss.sampled(0.1, loss.discrete_laplace(4.0, 2))
    assert printed["exact"]["upper"] == float(exact.epsilon(leak, 1e-5))


def test_account_of_dp_sgd(run):
    line = (
        "account --mechanism gaussian --noise-multiplier 1.1 --sampling-probability 0.0043"
        " --count 3510 --delta 1e-5"
    )
    printed = as_json(run, line)
    leak = 3510 * loss.sampled_gaussian(0.0043, 1.1)
    assert printed["exact"]["upper"] == float(exact.epsilon(leak, 1e-5))
    epsilons = [row["epsilon"] for row in printed["accountants"]]
    assert min(epsilons) == printed["exact"]["upper"]


def test_calibrate_prints_what_the_library_has(run):
    line = "calibrate --mechanism gaussian --epsilon 1 --delta 1e-5 --count 12 --sensitivity 3"
    printed = as_json(run, line)["designs"]
    for row, accountant in zip(printed, (rdp.epsilon, exact.epsilon), strict=True):
        noise = calibrate.noise_multiplier(
            lambda m: 12 * loss.gaussian(m), 1.0, 1e-5, accountant=accountant
        )
        assert row["noise_multiplier"] == float(noise)
        assert row["scale"] == 3 * float(noise)
        assert row["epsilon"] <= 1.0
    line = "calibrate --mechanism gaussian --epsilon 1 --delta 1e-5 --noise-multiplier 20"
    assert [row["count"] for row in as_json(run, line)["designs"]] == [24, 28]
    line = "calibrate --mechanism laplace --epsilon 1 --delta 0 --noise-multiplier 1e18"
    capped = as_json(run, f"{line} --accountant basic")["designs"]
    assert [(row["count"], row["is_capped"]) for row in capped] == [(10**15, True)]
    assert "more than 1e+15 releases are not tried" in run(line).stdout


def test_crossover_prints_what_the_library_has(run):
    printed = as_json(run, "crossover --epsilon 1,10 --delta 1e-5 --measure mae")["crossings"]
    assert len(printed) == 6
    row = printed[-1]
    found = crossover(
        curves.laplace_basic(10.0, measure="mae"),
        curves.gaussian(10.0, 1e-5, accountant=exact.epsilon, measure="mae"),
        up_to=1000,
    )
    assert (row["k_star"], row["first_integer"]) == found
    never = as_json(run, "crossover --epsilon 1 --delta 1e-5 --up-to 5")["crossings"]
    assert {(row["k_star"], row["first_integer"]) for row in never} == {(None, None)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("crossover --epsilon 0.1,1 --delta 1e-5", "crossings"),
        ("calibrate --mechanism laplace --epsilon 1 --delta 1e-5 --count 2", "designs"),
        ("account --mechanism gaussian --scale 3 --delta 1e-5", "accountants"),
    ],
)
def test_csv_has_the_numbers_of_json(run, line, rows):
    table = list(csv.DictReader(io.StringIO(run(f"{line} --csv").stdout)))
    for printed, row in zip(as_json(run, line)[rows], table, strict=True):
        for name, value in printed.items():
            cell = row[name]
            assert value is None if cell == "" else cell == str(value)


def test_colours_only_where_somebody_looks(run, monkeypatch):
    line = ["crossover", "--epsilon", "1", "--delta", "1e-5"]
    assert "\x1b" not in run(line).stdout
    assert "\x1b" in CliRunner().invoke(cli.main, line, color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in CliRunner().invoke(cli.main, line, color=True).stdout


def test_completion_knows_commands_and_options(monkeypatch):
    def completed(words, index):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(index))
        environment = {"_DPJAX_COMPLETE": "bash_complete"}
        return CliRunner().invoke(cli.main, prog_name="dpjax", env=environment).output

    assert completed("dpjax cal", 1).split() == ["plain,calibrate"]
    assert "plain,--sampling-probability" in completed("dpjax account --sam", 2)


def test_what_needs_no_jax_loads_none():
    lines = [
        "--help",
        "plan --epsilon 1 --delta 0 --queries 3",
        "account --mechanism laplace --scale 1 --delta 1e-5",
        "calibrate --mechanism laplace --epsilon 1 --delta 1e-5",
        "crossover --epsilon 1 --delta 1e-5",
        "sweep --help",
        "audit --help",
    ]
    code = (
        "import sys; from click.testing import CliRunner; from dpjax.cli import main\n"
        f"for line in {lines}:\n"
        "    assert CliRunner().invoke(main, line.split()).exit_code == 0, line\n"
        "print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert {"dpjax.plan", "dpjax.accounting.exact"} <= loaded
    assert not loaded & {"jax", "jaxlib", "scipy.stats", "matplotlib", "pandas"}


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "dpjax", "--version"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith("dpjax ")


def test_plot_draws_the_designs_and_the_same_bytes_twice(run, tmp_path):
    for name in ("one.svg", "two.svg"):
        run(f"plan --epsilon 1 --delta 0 --queries 3 --plot {name}")
    drawn = (tmp_path / "one.svg").read_bytes()
    assert drawn == (tmp_path / "two.svg").read_bytes()
    run("plan --epsilon 1 --delta 0 --queries 3 --plot none/plan.png", code=2)


@SLOW
def test_a_sweep_agrees_with_its_laws_and_goes_on_from_a_checkpoint(run, tmp_path):
    line = "sweep --grid grid.toml --seed 7 --quiet"
    straight = as_json(run, line)
    assert straight["trials"] == 70000
    for row in straight["points"]:
        off = abs(row["rmse"] - row["rmse_expected"]) / row["rmse_standard_error"]
        assert off < 5
    run(f"{line} --checkpoint run.ckpt --trials 30000")
    assert (tmp_path / "run.ckpt").exists()
    assert as_json(run, f"{line} --checkpoint run.ckpt")["points"] == straight["points"]
    assert as_json(run, "sweep --grid grid.toml --seed 8 --quiet")["points"] != straight["points"]
    assert "0.0 %" in run("sweep --grid grid.toml").stderr  # progress, on the error stream alone


@SLOW
def test_a_sweep_of_whole_numbers(run):
    printed = as_json(run, "sweep --mechanism discrete-laplace --epsilon 1 --trials 1e5 --quiet")
    (row,) = printed["points"]
    assert row["mean"] * 1e5 == round(row["mean"] * 1e5)
    np.testing.assert_allclose(row["rmse"], row["rmse_expected"], rtol=0.02)


def test_processes_must_be_told_apart(run):
    result = run("sweep --epsilon 1 --mechanism laplace --trials 10 --processes 2 --quiet", code=2)
    assert "expected all three or none" in result.stderr


@SLOW
def test_an_audit_contradicts_a_false_claim_and_not_a_true_one(run):
    mine = "audit mine_to_audit:noisy_count --per-trial --value 319 --neighbour 320 --trials 1e5"
    false = run(f"{mine} --set scale=0.5 --epsilon 1 --json", code=1)
    printed = json.loads(false.stdout)
    jsonschema.validate(printed, SCHEMA)
    assert printed["contradicted"]
    assert 1.0 < printed["epsilon"] <= 2.0
    true = as_json(run, f"{mine} --set scale=1.0 --epsilon 1")
    assert not true["contradicted"]
    assert "contradicted" in run(f"{mine} --set scale=1.0 --epsilon 1").stdout


@SLOW
def test_a_mechanism_may_print_and_take_words(run):
    line = ["audit", "mine_to_audit:talking", "--value", "1", "--neighbour", "2", "--json"]
    result = run([*line, "--trials", "1e4", "--set", "loud=true", "--set", 'kind="aloud"'])
    jsonschema.validate(json.loads(result.stdout), SCHEMA)
    assert "aloud" in result.stderr


@SLOW
def test_a_whole_mechanism_is_audited_at_whole_numbers(run):
    line = "audit dpjax:discrete_laplace --set scale=1.0 --value 3 --neighbour 4 --trials 1e5"
    assert 0.9 < as_json(run, line)["epsilon"] <= 1.0
