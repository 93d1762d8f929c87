"""The figures' tables against theory, their files byte for byte, and the command line's errors."""

import hashlib
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import jax
import numpy as np
import pytest

from experiments import NAMES, article, page, simulation, table
from experiments.__main__ import main

ROOT = Path(__file__).parent.parent
COMMITTED = ROOT / "figures"
TRIALS = 20_000
SUFFIXES = ("csv", "png", "svg")
# An experiment whose trials are more than one release says with TRIALS how many it has by default,
# and with SMALL how many are enough here.
SMALL = {name: getattr(import_module(f"experiments.{name}"), "SMALL", TRIALS) for name in NAMES}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """All experiments at a small size, in one folder, by one process."""
    folder = tmp_path_factory.mktemp("figures")
    code = f"""
from experiments.__main__ import main
for arguments in {list(small_runs())!r}:
    assert main([*arguments, "--out", {str(folder)!r}]) == 0
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    return folder


def small_runs():
    """The arguments that make all figures at a small size: a run for each number of trials."""
    for trials in sorted(set(SMALL.values())):
        yield [*(name for name in NAMES if SMALL[name] == trials), "--trials", str(trials)]


@pytest.fixture(params=[pytest.param("small", marks=pytest.mark.slow), "committed"])
def folder(request):
    """A folder of figures: made now at a small size, and the one in the repository."""
    return request.getfixturevalue("small") if request.param == "small" else COMMITTED


def load(folder, name):
    return table.read(folder / f"{name}.csv", import_module(f"experiments.{name}").COLUMNS)


def digests(folder):
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.suffix[1:] in SUFFIXES
    }


# Tables


@pytest.mark.parametrize("error", ["rmse", "mae", "relative_rmse"])
def test_simulated_error_is_within_four_standard_errors_of_theory(folder, error):
    # Seed 42 is fixed, so this cannot fail by luck from one run to the next; for another seed one
    # of the 225 comparisons would with probability 1.4 %.
    rows = load(folder, "error_versus_epsilon")
    off = (rows[error] - rows[f"{error}_theory"]) / rows[f"{error}_standard_error"]
    assert np.max(np.abs(off)) < 4
    assert np.std(off) == pytest.approx(1, abs=0.3)  # and the standard errors are no excuse


def test_relative_errors_of_the_grid_are_independent(folder):
    # One key shared by all epsilons would make every deviation of a design the same.
    rows = load(folder, "error_versus_epsilon")
    off = (rows["rmse"] - rows["rmse_theory"]) / rows["rmse_standard_error"]
    designs = np.stack([off[rows["design"] == design] for design in np.unique(rows["design"])])
    assert np.all(np.std(designs, axis=1) > 0.4)
    assert np.max(np.abs(np.corrcoef(designs) - np.eye(3))) < 0.8  # 4 / sqrt(25)


def test_the_article_s_table(folder):
    rows = load(folder, "error_versus_epsilon")
    assert article.true_count() == 319
    for design, mechanism in (("laplace", "laplace"), ("gaussian_customary", "gaussian")):
        for epsilon, printed in zip(article.EPSILONS, article.PRINTED_RMSE[mechanism], strict=True):
            row = rows.where(design=design, epsilon=epsilon)
            unit = 10.0 ** -len(printed.partition(".")[2])
            # Half a unit of the last digit and a little: the article's 48.5 is one draw of 48.448.
            assert row["rmse_theory"][0] == pytest.approx(float(printed), abs=0.55 * unit)
            assert row["relative_rmse_theory"][0] * 319 == pytest.approx(row["rmse_theory"][0])


def test_the_customary_formula_is_marked_where_it_is_unsafe(folder):
    rows = load(folder, "error_versus_epsilon").where(design="gaussian_customary")
    unsafe = rows["true_delta"] > rows["delta"]
    np.testing.assert_array_equal(unsafe, rows["epsilon"] > 8.41977)
    ten = rows.where(epsilon=10.0)
    assert ten["true_delta"][0] == pytest.approx(2.27e-5, abs=5e-8)


def test_histograms_fit_the_laws(folder):
    rows = load(folder, "distributions")
    for mechanism in ("laplace", "gaussian"):
        for epsilon in article.EPSILONS:
            bins = rows.where(mechanism=mechanism, epsilon=epsilon)
            assert np.sum(bins["fraction_theory"]) == pytest.approx(1, abs=2e-6)
            assert np.sum(bins["fraction"]) <= 1 + 1e-12
            expected = bins["trials"] * bins["fraction_theory"]
            off = (bins["fraction"] - bins["fraction_theory"]) / bins["fraction_standard_error"]
            # Pearson's chi-squared over bins of 25 trials or more, 5 standard deviations allowed
            off = off[expected >= 25]
            assert abs(np.sum(off**2) - len(off)) < 5 * np.sqrt(2 * len(off))


def test_budget_is_ordered_and_meets_known_values(folder):
    rows = load(folder, "budget")
    assert np.all(rows["delta"] == 1e-5)
    for mechanism in ("laplace", "gaussian"):
        exact, improved, classic, advanced, basic = (
            rows.where(mechanism=mechanism, accountant=accountant)["epsilon"]
            for accountant in ("exact", "renyi_improved", "renyi_classic", "advanced", "basic")
        )
        slack = 1 + 1e-8  # the CSV has nine digits
        assert np.all(exact <= improved * slack)
        assert np.all(improved <= classic * slack)
        assert np.all(exact <= np.minimum(basic, advanced) * slack)
        for curve in (exact, improved, classic, advanced, basic):
            assert np.all(np.diff(curve) > 0)
    # k-fold Laplace of epsilon 0.1 at delta 1e-5, from published composition theorems and, for
    # the exact value, a float64 FFT of the privacy loss
    for k, accountant, epsilon in (
        (10, "basic", 1.0),
        (10, "renyi_improved", 0.990190),
        (100, "renyi_classic", 5.070521),
        (100, "renyi_improved", 4.532683),
        (100, "exact", 4.220347),
        (1000, "renyi_improved", 18.575632),
        (1000, "exact", 17.423652),
    ):
        row = rows.where(mechanism="laplace", accountant=accountant, num_queries=k)
        assert row["epsilon"][0] == pytest.approx(epsilon, abs=1e-6), (k, accountant)


def test_crossings(folder):
    rows = load(folder, "crossover").where(part="crossing", incumbent="laplace_basic")
    log = np.log(1e5)
    for design, k_star, first, tolerance in (
        ("gaussian_renyi_classic", (np.sqrt(log + 1) + np.sqrt(log)) ** 2 / 4, 13, 1e-6),
        ("gaussian_renyi_improved", 8.18, 9, 5e-3),
        ("gaussian_exact", 3.7306316**2 / 2, 7, 1e-5),
    ):
        row = rows.where(design=design)
        assert row["k_star"][0] == pytest.approx(k_star, abs=tolerance)
        assert row["first_integer"][0] == first


def test_crossings_are_those_of_the_drawn_curves(folder):
    rows = load(folder, "crossover")
    crossings = rows.where(part="crossing")
    for design, incumbent, first in zip(
        crossings["design"], crossings["incumbent"], crossings["first_integer"], strict=True
    ):
        other = rows.where(part="curve", design=incumbent)
        k = other["num_queries"]  # all up to 100, or a few of them
        curve = rows.where(part="curve", design=design)["rmse_theory"][k.astype(int) - 1]
        leads = curve <= other["rmse_theory"]
        assert np.all(leads[k >= first])
        assert not np.any(leads[k == first - 1])  # it may have led before, and fallen behind


def test_simulated_crossover_points_lie_on_their_curves(folder):
    points = load(folder, "crossover").having("rmse")
    off = (points["rmse"] - points["rmse_theory"]) / points["rmse_standard_error"]
    assert len(points) == 72
    assert np.max(np.abs(off)) < 4  # for another seed one of the 72 would be with 0.5 %


def test_the_leader_of_the_map_is_that_of_the_curves_and_borders(folder):
    rows = load(folder, "crossover")
    leader = rows.where(part="leader")
    gaussian_leads = leader["design"] == "gaussian_exact"
    here = leader["epsilon"] == 1
    first = rows.where(part="crossing", incumbent="laplace_exact", design="gaussian_exact")
    np.testing.assert_array_equal(
        gaussian_leads[here], leader["num_queries"][here] >= first["first_integer"][0]
    )
    border = rows.where(part="boundary", design="gaussian_exact")
    basic = dict(zip(border["epsilon"], border["first_integer"], strict=True))
    ahead_of_basic = leader["num_queries"] >= [basic[epsilon] for epsilon in leader["epsilon"]]
    assert np.all(ahead_of_basic[gaussian_leads])  # exact Laplace is no worse than basic
    assert np.mean(ahead_of_basic == gaussian_leads) > 0.97
    classic = rows.where(part="boundary", design="gaussian_renyi_classic")
    assert np.all(classic["k_star"] > border["k_star"])


def test_the_map_goes_through_the_crossing(folder):
    rows = load(folder, "crossover")
    here = rows.where(part="map", epsilon=1.0, delta=1e-5)
    crossing = rows.where(part="crossing", design="gaussian_exact", incumbent="laplace_basic")
    assert here["k_star"][0] == pytest.approx(crossing["k_star"][0], rel=1e-8)
    np.testing.assert_array_equal(here["first_integer"], crossing["first_integer"])
    rows = rows.where(part="map")
    drawn = (rows["rmse_theory"] * rows["epsilon"]) ** 2 / 2  # where the two laws meet
    np.testing.assert_array_equal(np.isnan(rows["k_star"]), drawn <= 1)
    np.testing.assert_allclose(drawn[drawn > 1], rows.having("k_star")["k_star"], rtol=1e-7)
    np.testing.assert_array_equal(rows["first_integer"], np.maximum(np.ceil(drawn), 1))


@pytest.mark.slow
def test_another_seed_changes_every_simulated_number(small, tmp_path):
    arguments = ["error_versus_epsilon", "--seed", "43", "--trials", str(TRIALS)]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    ours, theirs = load(small, "error_versus_epsilon"), load(tmp_path, "error_versus_epsilon")
    for name in ("rmse", "mae"):
        assert np.all(ours[name] != theirs[name])
        np.testing.assert_array_equal(ours[f"{name}_theory"], theirs[f"{name}_theory"])


def test_no_two_points_share_a_key():
    keys = set()
    for name, columns in (
        ("error_versus_epsilon", ("design", "epsilon")),
        ("distributions", ("mechanism", "epsilon")),
        ("crossover", ("design", "num_queries")),
    ):
        rows = load(COMMITTED, name)
        rows = rows.having("rmse") if name == "crossover" else rows
        points = set(zip(*(rows[column].tolist() for column in columns), strict=True))
        for point in points:
            key = simulation.point_key(42, name, dict(zip(columns, point, strict=True)))
            keys.add(jax.random.key_data(key).tobytes())
    assert len(keys) == 75 + 6 + 72


# Files


def test_each_experiment_leaves_a_table_and_two_pictures(folder):
    assert set(digests(folder)) == {f"{name}.{suffix}" for name in NAMES for suffix in SUFFIXES}


def test_the_manifest_tells_what_the_files_are(folder):
    entries = json.loads((folder / "manifest.json").read_text())
    assert list(entries) == sorted(NAMES)
    recorded = {}
    for name, entry in entries.items():
        recorded |= entry["files"]
        assert entry["seed"] == 42
        usual = getattr(import_module(f"experiments.{name}"), "TRIALS", 10_000_000)
        assert entry["trials"] == (usual if folder == COMMITTED else SMALL[name])
        assert entry["dtype"] == "float32"
        assert entry["device"]
        assert {"python", "jax", "jaxlib", "numpy", "scipy"} == set(entry["versions"])
    assert recorded == digests(folder)


@pytest.mark.slow
def test_redraw_gives_the_same_bytes_without_jax(small, tmp_path):
    for name in NAMES:
        (tmp_path / f"{name}.csv").write_bytes((small / f"{name}.csv").read_bytes())
    code = f"""
import sys
from experiments.__main__ import main
assert main(["--redraw", "--out", {str(tmp_path)!r}]) == 0
assert "jax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    assert digests(tmp_path) == digests(small)


@pytest.mark.slow
def test_a_run_in_fresh_processes_gives_the_same_bytes(small, tmp_path):
    for arguments in small_runs():
        whole = [sys.executable, "-m", "experiments", *arguments, "--out", str(tmp_path)]
        subprocess.run(whole, cwd=ROOT, check=True, capture_output=True)
    assert digests(tmp_path) == digests(small)
    assert (tmp_path / "manifest.json").read_bytes() == (small / "manifest.json").read_bytes()
    assert (tmp_path / page.FILE).read_bytes() == (small / page.FILE).read_bytes()


def test_one_experiment_by_itself(tmp_path, capsys):
    assert main(["distributions", "--trials", str(TRIALS), "--out", str(tmp_path)]) == 0
    assert "95 % within" in capsys.readouterr().out
    assert set(digests(tmp_path)) == {f"distributions.{suffix}" for suffix in SUFFIXES}
    test_histograms_fit_the_laws(tmp_path)


def test_pictures_carry_no_date_version_or_path(folder):
    for name in NAMES:
        png = (folder / f"{name}.png").read_bytes()
        assert re.findall(rb"(?:tEXt|iTXt|zTXt|tIME)", png[:4096]) == []
        svg = (folder / f"{name}.svg").read_text()
        assert re.findall(r"dc:date|dc:creator|Matplotlib v|/tmp|\d{4}-\d\d-\d\dT", svg) == []


# Command line


def refuse(capsys, *arguments):
    """The one line of an error, with exit code 2 and nothing printed besides."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_unknown_experiment(capsys, tmp_path):
    line = refuse(capsys, "no_such_figure", "--out", str(tmp_path))
    assert "'no_such_figure'" in line
    assert all(name in line for name in NAMES)


@pytest.mark.parametrize("trials", ["0", "-1", "1.5", "nan", "inf", "many", ""])
def test_bad_trials(capsys, tmp_path, trials):
    line = refuse(capsys, f"--trials={trials}", "--out", str(tmp_path))
    assert f"--trials: got {trials!r}, expected a whole number from 1 to" in line


@pytest.mark.parametrize("seed", ["-1", "4294967296", "0.5", "nan", "x"])
def test_bad_seed(capsys, tmp_path, seed):
    line = refuse(capsys, f"--seed={seed}", "--out", str(tmp_path))
    assert f"--seed: got {seed!r}, expected a whole number from 0 to 4294967295" in line


def test_unwritable_folder(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    line = refuse(capsys, "--out", str(tmp_path / "file" / "below"))
    assert f"--out = {tmp_path / 'file' / 'below'}: expected a folder to write to" in line


def test_full_disk_leaves_the_table_that_was_there(capsys, tmp_path, monkeypatch):
    (tmp_path / "budget.csv").write_text("before")
    budget = import_module("experiments.budget")
    monkeypatch.setattr(budget, "run", lambda *_: [dict.fromkeys(budget.COLUMNS, 1.0)])
    write_bytes = Path.write_bytes

    def full(path, data):
        if data:
            raise OSError(28, "No space left on device")
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    assert "No space left on device" in refuse(capsys, "budget", "--out", str(tmp_path))
    assert (tmp_path / "budget.csv").read_text() == "before"


@pytest.mark.parametrize("content", [None, "", "a,b\n1,2\n", "\x00\xff"])
def test_redraw_without_its_table(capsys, tmp_path, content):
    if content is not None:
        (tmp_path / "budget.csv").write_text(content)
    line = refuse(capsys, "budget", "--redraw", "--out", str(tmp_path))
    assert "budget.csv" in line
    assert "expected" in line


def test_an_unknown_option_and_no_traceback_in_a_process_of_its_own():
    run = subprocess.run(
        [sys.executable, "-m", "experiments", "--no-such-option"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
    assert "--no-such-option" in run.stderr


# The table's own format


def test_a_table_comes_back(tmp_path):
    rows = [{"name": "a", "x": 1 / 3, "k": 2}, {"name": "b", "x": None, "k": 10**6}]
    path = tmp_path / "table.csv"
    path.write_text(table.to_csv(rows, ("name", "x", "k")))
    back = table.read(path, ("name", "x", "k"))
    assert back["name"].tolist() == ["a", "b"]
    np.testing.assert_allclose(back["x"], [1 / 3, np.nan], rtol=1e-8)
    assert back["k"].tolist() == [2, 10**6]
    assert len(back.having("x")) == len(back.where(name="b")) == 1


def test_another_header_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"header 'a,b': expected 'a,c'$"):
        table.read(path, ("a", "c"))
    path.write_text("a,b\n1\n")
    with pytest.raises(ValueError, match=r"expected rows of 2 cells each$"):
        table.read(path, ("a", "b"))
