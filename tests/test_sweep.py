"""Sweeps give what simulate gives, the same bits however they are run, and survive a crash."""

import csv
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.simulate import BLOCK, per_trial
from dpjax.sweep import checkpoint, division, identity, total
from dpjax.sweep.grid import point_key
from dpjax.sweep.result import STATISTICS


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of two blocks, so that small runs have many."""
    monkeypatch.setattr(division, "CHUNK", 2)


def laplace(*epsilons):
    return dpjax.grid(
        lambda epsilon: functools.partial(dpjax.laplace, scale=1 / epsilon), epsilon=epsilons
    )


def bits(result):
    """All numbers of a result, to the last bit."""
    return json.dumps([total.to_json(total.total(moments)) for moments in result.moments])


# What it computes


@pytest.mark.slow
def test_each_point_is_what_simulate_gives(key):
    points = laplace(0.1, 1.0)
    num_trials = 5 * BLOCK + 17
    result = dpjax.sweep(key, points, num_trials)
    for point in points:
        here = point_key(key, point.coordinates)
        expected = dpjax.simulate(here, point.mechanism, 0.0, num_trials)
        found = result.at(**point.coordinates)
        assert found.count == num_trials
        for name in STATISTICS:
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=1e-10, err_msg=name
            )


def test_points_are_independent_and_keep_their_numbers_in_another_grid(key):
    num_trials = 3 * BLOCK
    three = dpjax.sweep(key, laplace(0.5, 1.0, 2.0), num_trials)
    one = dpjax.sweep(key, laplace(1.0), num_trials)
    assert three.at(epsilon=1.0).rmse == one.moments[0].rmse
    relative = [m.rmse * e for m, e in zip(three.moments, (0.5, 1.0, 2.0), strict=True)]
    assert len(set(relative)) == 3
    named = dpjax.sweep(key, laplace(1.0), num_trials, name="another")
    assert named.moments[0].rmse != one.moments[0].rmse


def test_another_seed_changes_every_number():
    points = laplace(0.5, 1.0, 2.0)
    one, other = (dpjax.sweep(jax.random.key(seed), points, 3 * BLOCK) for seed in (0, 1))
    for a, b in zip(one.moments, other.moments, strict=True):
        assert all(getattr(a, name) != getattr(b, name) for name in STATISTICS)


@pytest.mark.slow
def test_x64_of_the_calling_thread_holds_for_all_of_it():
    with jax.enable_x64(True):
        found = dpjax.sweep(jax.random.key(0), laplace(1.0), 1000).moments[0]
        here = point_key(jax.random.key(0), {"epsilon": 1.0})
        expected = dpjax.simulate(here, laplace(1.0)[0].mechanism, 0.0, 1000)
    assert expected.sums.dtype == np.float64
    for name in STATISTICS:  # 1e-10 is what float32 statistics reach
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-13)


def user_noise(key, value, *, scale):
    """A mechanism as a user writes it."""
    return value + scale * jax.random.uniform(key, value.shape, minval=-1.0)


def scalar_noise(key, value):
    """One of a single value."""
    return value + jax.random.uniform(key)


def integer_noise(key, value):
    """One of whole numbers only."""
    if not jnp.issubdtype(value.dtype, jnp.integer):
        raise TypeError(f"value = {value.dtype}: expected integers")
    return value + jax.random.randint(key, value.shape, -3, 4)


def distance(answer, value):
    """A measure that makes one number of a vector."""
    return jnp.max(jnp.abs(answer - value), axis=-1)


@pytest.mark.slow
def test_mechanisms_measures_values_and_edges_of_one_s_own(key):
    vector = np.arange(3, dtype=np.float32)
    edges = np.array([0.0, 0.5, 1.0])
    noise = functools.partial(user_noise, scale=2.0)
    points = [
        dpjax.Point({"case": "vector"}, noise, vector),
        dpjax.Point({"case": "distance"}, noise, vector, distance),
        dpjax.Point({"case": "scalar"}, per_trial(scalar_noise), edges=edges),
        dpjax.Point({"case": "integer"}, integer_noise, 5),
    ]
    num_trials = 3 * BLOCK + 5
    result = dpjax.sweep(key, points, num_trials)
    for point, found in zip(points, result.moments, strict=True):
        expected = dpjax.simulate(
            point_key(key, point.coordinates),
            point.mechanism,
            point.value,
            num_trials,
            measure=point.measure,
            edges=point.edges,
        )
        np.testing.assert_allclose(found.rmse, expected.rmse, rtol=1e-10)
        np.testing.assert_array_equal(found.count, expected.count)
        if point.edges is not None:
            assert found.histogram is not None
            assert expected.histogram is not None
            np.testing.assert_array_equal(found.histogram.counts, expected.histogram.counts)
    assert [np.shape(moments.rmse) for moments in result.moments] == [(3,), (), (), ()]


def test_one_trace_whatever_the_values(key):
    traces = []

    def counted(key, value, *, scale):
        traces.append(1)
        return dpjax.laplace(key, value, scale=scale)

    def run(*scales):
        points = dpjax.grid(lambda scale: functools.partial(counted, scale=scale), scale=scales)
        dpjax.sweep(key, points, 5 * BLOCK + 3)

    run(1.0)
    first = len(traces)
    assert first <= 2  # the pilot's block and the run's
    run(*np.linspace(0.1, 3.0, 20).tolist())
    assert len(traces) == first


def test_the_first_report_comes_before_the_work_and_the_last_after(key):
    reports = []
    dpjax.sweep(key, laplace(1.0, 2.0), 5 * BLOCK, progress=lambda *at: reports.append(at))
    assert reports[0] == (0, 10 * BLOCK)
    assert reports[-1] == (10 * BLOCK, 10 * BLOCK)
    assert len(reports) == 1 + 2 * 3
    assert reports == sorted(reports)


# What it refuses


@pytest.mark.parametrize(
    ("points", "error", "message"),
    [
        ([], ValueError, r"points = \[\]: expected at least one"),
        (laplace(1.0, 1.0), ValueError, r"points\[1\] = epsilon=1.0: expected other coordinates"),
        (
            [*laplace(1.0), dpjax.Point({"scale": 1}, dpjax.laplace)],
            ValueError,
            r"points\[1\] = scale=1: expected coordinates epsilon",
        ),
        (
            [dpjax.Point({"scale": [1]}, dpjax.laplace)],
            TypeError,
            r"points\[0\] = scale=list: expected text or a number",
        ),
        (
            [dpjax.Point({"case": "a"}, lambda key, value: value + jax.random.normal(key))],
            ValueError,
            r"<lambda> at case=a: expected independent noise",
        ),
    ],
)
def test_points_that_are_no_sweep(key, points, error, message):
    with pytest.raises(error, match=message) as caught:
        dpjax.sweep(key, points, 10)
    assert "\n" not in str(caught.value)


def test_two_points_with_one_hash(key, monkeypatch):
    monkeypatch.setattr("zlib.crc32", lambda data: 1)
    with pytest.raises(ValueError, match=r"epsilon=1.0 and epsilon=2.0 have the same hash"):
        dpjax.sweep(key, laplace(1.0, 2.0), 10)


@pytest.mark.parametrize("num_trials", [0, -1, 2**62])
def test_bad_num_trials(key, num_trials):
    with pytest.raises(ValueError, match=r"num_trials = .*: expected (a whole|fewer)"):
        dpjax.sweep(key, laplace(1.0), num_trials)


def test_keys_of_another_kind():
    with pytest.raises(TypeError, match=r"key = .*: expected one typed key"):
        dpjax.sweep(jnp.zeros(2, np.uint32), laplace(1.0), 10)
    with pytest.raises(ValueError, match=r"key = a rbg key: expected threefry2x32"):
        dpjax.sweep(jax.random.key(0, impl="rbg"), laplace(1.0), 10)


# Stopped, resumed and extended

POINTS = laplace(0.5, 1.0)
TRIALS = 9 * BLOCK + 100  # of each point: four whole chunks and one of a block and 100 trials


class Crash(Exception):
    """Stands for the process's end."""


def run(path, num_trials=TRIALS, points=POINTS, seed=0, reports=None, **options):
    """A sweep that keeps a checkpoint after every chunk."""
    report = (lambda *at: None) if reports is None else lambda *at: reports.append(at)
    return dpjax.sweep(
        jax.random.key(seed),
        points,
        num_trials,
        checkpoint=path,
        interval=0,
        progress=report,
        **options,
    )


@pytest.fixture(scope="module")
def straight():
    """The bits of an uninterrupted run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "CHUNK", 2)
        return bits(dpjax.sweep(jax.random.key(0), POINTS, TRIALS))


STEPS = ("before write", "half-way", "before rename", "between renames", "after")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("at", [1, 2, 6, 11, 12])  # of 12: the first, 10 chunks and the last
def test_crashed_and_resumed_gives_the_same_bits(tmp_path, monkeypatch, straight, step, at):
    path, calls, before = tmp_path / "run", [], []

    def crash(reached):
        calls.extend([reached] if reached == step else [])
        if len(calls) == at:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_step", crash)
        with pytest.raises(Crash):
            run(path, reports=before)
    after = []
    assert bits(run(path, reports=after)) == straight
    lost = (before[-1][0] if before else 0) - after[0][0]
    assert lost <= 2 * BLOCK  # one chunk, which is one interval here


def test_interrupted_between_checkpoints(tmp_path, straight):
    def stop(done, trials):
        if done > trials / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dpjax.sweep(jax.random.key(0), POINTS, TRIALS, checkpoint=tmp_path / "run", progress=stop)
    assert bits(run(tmp_path / "run")) == straight


@pytest.mark.parametrize("first", [1, BLOCK, 4 * BLOCK, 5 * BLOCK + 1, TRIALS - 1])
def test_a_run_extended_is_a_longer_run(tmp_path, straight, first):
    run(tmp_path / "run", first)
    reports = []
    assert bits(run(tmp_path / "run", reports=reports)) == straight
    assert reports[0][0] == 2 * (first // (2 * BLOCK)) * 2 * BLOCK  # two points, whole chunks


def test_a_finished_run_is_only_read(tmp_path, straight):
    run(tmp_path / "run")
    reports = []
    assert bits(run(tmp_path / "run", reports=reports)) == straight
    assert reports == [(2 * TRIALS, 2 * TRIALS)]


def test_a_shorter_run_is_refused(tmp_path):
    run(tmp_path / "run")
    with pytest.raises(ValueError, match=rf"num_trials = 10: expected at least the {TRIALS} of"):
        run(tmp_path / "run", 10)


def version_of_a_mechanism(factor):
    """The same function of the same name, before and after an edit."""

    def edited(key, value, *, scale):
        return value + factor * scale * jax.random.laplace(key, value.shape)

    return edited


original = version_of_a_mechanism(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 1}, r"of another seed \(\[0, 0\]\), expected \[0, 1\]$"),
        ({"name": "x"}, r"of another seed \(\[0, 0\]\), expected \[0, 0\] x$"),
        ({"points": POINTS[:1]}, r"of another grid \(2 points\), expected 1 points$"),
        ({"points": laplace(0.5, 3.0)}, r"of another grid \(epsilon=1.0\), expected epsilon=3.0$"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused_by_name(tmp_path, options, message):
    run(tmp_path / "run", 10)
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "run", 10, **options)


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        (functools.partial(dpjax.gaussian, scale=1.0), "gaussian at case=a"),
        (functools.partial(original, scale=2.0), "edited at case=a"),  # another number
        (
            functools.partial(version_of_a_mechanism(2), scale=1.0),
            "edited at case=a",
        ),  # another program
    ],
)
def test_the_checkpoint_of_another_mechanism_is_refused_by_name(tmp_path, mechanism, expected):
    points = [dpjax.Point({"case": "a"}, functools.partial(original, scale=1.0))]
    run(tmp_path / "run", 10, points)
    with pytest.raises(
        ValueError, match=rf"mechanism \(.*edited at case=a, .*, expected .*{expected}"
    ):
        run(tmp_path / "run", 10, [dpjax.Point({"case": "a"}, mechanism)])


def test_the_checkpoint_of_another_version_is_refused_by_name(tmp_path, monkeypatch):
    run(tmp_path / "run", 10)
    monkeypatch.setattr(identity, "_version", lambda: "99")
    with pytest.raises(ValueError, match=r"another version \(dpjax .*, expected dpjax 99, jax"):
        run(tmp_path / "run", 10)


def test_a_damaged_checkpoint_costs_one_interval(tmp_path, straight):
    path = tmp_path / "run"
    run(path, 5 * BLOCK)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="damaged"):
        assert bits(run(path)) == straight


def test_a_full_disk_stops_the_run(tmp_path, monkeypatch, straight):
    path = tmp_path / "run"
    run(path, 5 * BLOCK)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match=r"not written \(No space left on device\)"):
            run(path)
    assert bits(run(path)) == straight


def test_an_unwritable_path_is_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    reports = []
    with pytest.raises(OSError, match=r"checkpoint = .*below: not written \(Not a directory\)"):
        run(tmp_path / "file" / "below", reports=reports)
    assert reports == []


# The table


@pytest.fixture(scope="module")
def labelled():
    points = dpjax.grid(
        lambda query, epsilon: functools.partial(dpjax.laplace, scale=query / epsilon),
        query=[1, 3],
        epsilon=np.array([0.5, 1.0]),
    )
    return dpjax.sweep(jax.random.key(0), points, 1000)


def test_table_has_a_row_for_each_point(labelled):
    table = labelled.table()
    assert list(table) == ["query", "epsilon", "num_trials", *STATISTICS]
    assert table["query"] == [1, 1, 3, 3]
    assert table["epsilon"] == [0.5, 1.0, 0.5, 1.0]
    assert table["num_trials"] == [1000] * 4
    assert table["rmse"] == [float(moments.rmse) for moments in labelled.moments]
    assert {type(cell) for column in table.values() for cell in column} == {float, int}


def test_table_of_longer_answers_and_of_histograms(key):
    noise = functools.partial(dpjax.laplace, scale=1.0)
    points = [
        dpjax.Point({"case": "pair"}, noise, np.zeros(2, np.float32)),
        dpjax.Point({"case": "one"}, noise, edges=np.array([-1.0, 1.0])),
    ]
    result = dpjax.sweep(key, points, 1000)
    table = result.table()
    assert table["case"] == ["pair", "pair", "one"]
    assert table["index_0"] == [0, 1, None]
    assert table["rmse"] == [*result.at(case="pair").rmse, result.at(case="one").rmse]
    bins = result.histogram_table()
    assert bins["left"] == [-np.inf, -1.0, 1.0]
    assert bins["right"] == [-1.0, 1.0, np.inf]
    assert sum(bins["num_trials"]) == 1000


def test_no_histogram(labelled):
    with pytest.raises(ValueError, match="expected edges of a histogram"):
        labelled.histogram_table()


@pytest.mark.parametrize("coordinates", [{"epsilon": 3.0}, {"epsilon": 1.0}, {"scale": 1.0}])
def test_at_finds_one_point_or_none(labelled, coordinates):
    assert labelled.at(epsilon=1.0, query=1) is labelled.moments[1]
    with pytest.raises(KeyError, match="expected one point, found"):
        labelled.at(**coordinates)


def test_csv_keeps_all_digits(labelled, tmp_path):
    labelled.to_csv(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    table = labelled.table()
    assert header == list(table)
    assert [float(row[header.index("rmse")]) for row in rows] == table["rmse"]
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_parquet(labelled, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    labelled.to_parquet(tmp_path / "table.parquet")
    assert parquet.read_table(tmp_path / "table.parquet").to_pydict() == labelled.table()


def test_pandas(labelled):
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert labelled.to_pandas().to_dict("list") == labelled.table()


def test_xarray(labelled):
    pytest.importorskip("xarray", reason="xarray is not installed")
    cube = labelled.to_xarray()
    assert dict(cube.sizes) == {"query": 2, "epsilon": 2}
    here = cube.sel(query=3, epsilon=0.5)
    assert float(here.rmse) == labelled.at(query=3, epsilon=0.5).rmse
