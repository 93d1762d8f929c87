"""The benchmark's contestants are right, and its rows say what was measured."""

import importlib.util
from collections import Counter

import jax
import numpy as np
import pytest

from dpjax import prng
from experiments import contestants, table, throughput
from experiments.__main__ import main
from experiments.contestants import Entry
from experiments.worker import Worker

INSTALLED = [
    name
    for name in contestants.MAKERS
    if name not in ("diffprivlib", "opendp") or importlib.util.find_spec(name)
]
TRIALS = 20_000


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", [name for name in INSTALLED if name != "words"])
def test_every_contestant_gives_the_rmse(name, mechanism):
    if name in ("jax_blocked", "dpjax_simulate") and mechanism == "gaussian":
        pytest.skip("compiled once is enough: jax_whole and dpjax_sweep have both mechanisms")
    entry = Entry(name, mechanism)
    rmse = contestants.MAKERS[name](entry)(TRIALS)
    throughput._check(entry, TRIALS, rmse)


@pytest.mark.parametrize("rmse", [1.3, 1.55, float("nan")])
def test_a_contestant_that_is_wrong_is_refused(rmse):
    with pytest.raises(ValueError, match=r"numpy_pcg64 = .*: expected an RMSE near 1.41"):
        throughput._check(Entry("numpy_pcg64", "laplace"), TRIALS, rmse)


def test_rows_of_interleaved_workers(tmp_path):
    names = ["numpy_pcg64", "numpy_sfc64", *(["diffprivlib"] * ("diffprivlib" not in INSTALLED))]
    rows = throughput.rates([Entry(name, "laplace") for name in names], TRIALS, repeats=3)
    path = tmp_path / "table.csv"
    path.write_text(table.to_csv(rows, throughput.COLUMNS))
    back = table.read(path, throughput.COLUMNS)
    assert back["contestant"].tolist() == names
    pcg = back.where(contestant="numpy_pcg64")
    assert pcg["over_numpy"] == 1
    assert pcg["trials"] == TRIALS
    assert pcg["repeats"] == 3
    assert pcg["trials_per_second"] == pytest.approx(pcg["trials"] / pcg["seconds"])
    assert 10 < pcg["peak_mb"] < 500
    for row in rows[2:]:
        assert str(row["note"]).startswith("absent: ")
        assert row["trials_per_second"] is None


def test_a_worker_that_fails_is_an_error():
    with pytest.raises(OSError, match=r"a worker ended early: .*no_such_contestant"):
        Worker(Entry("no_such_contestant", "laplace"))


def test_operations_of_a_word():
    word = jax.ShapeDtypeStruct((), np.uint32)
    key = jax.ShapeDtypeStruct((2,), np.uint32)
    program = jax.make_jaxpr(prng.threefry2x32)(key, word, word)
    count = Counter(equation.primitive.name for equation in program.eqns)
    rotations = count["shift_left"]
    key_schedule = 2 + 5  # two exclusive ors and five additions of constants, once for a key
    operations = count["add"] + count["xor"] + rotations - key_schedule
    assert operations == 2 * contestants.OPERATIONS_PER_WORD


@pytest.mark.slow
def test_the_whole_benchmark_at_a_small_size(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(throughput, "REPEATS", 1)
    monkeypatch.setattr(throughput, "SECONDS", 0.01)
    assert main(["throughput", "--trials", "2e6", "--out", str(tmp_path)]) == 0
    rows = table.read(tmp_path / "throughput.csv", throughput.COLUMNS)
    rates = rows.where(part="rate", device="cpu")
    assert set(rates["contestant"]) == set(contestants.MAKERS)
    measured = rates.having("trials")
    assert np.all(measured["over_numpy"] > 0)
    assert np.all(measured["share_of_words"].astype(float)[measured["contestant"] == "words"] == 1)
    assert rows.where(part="scaling")["trials"].tolist() == [10**6, 10**6]
    assert rows.where(part="memory")["trials"].tolist() == [10**6, 2 * 10**6]
    assert {path.name for path in tmp_path.iterdir()} == {
        f"throughput.{suffix}" for suffix in ("csv", "png", "svg")
    } | {"manifest.json"}
    assert "dpjax_sweep" in capsys.readouterr().out
