"""Private training: the step against its definition, the sampling, and the table's promises."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpjax.accounting import exact, loss
from experiments import canaries, dp_sgd, table, training, training_speed
from experiments.training import Records
from tests import sampling

COMMITTED = Path(__file__).parent.parent / "figures" / "dp_sgd.csv"


@pytest.fixture(scope="module")
def rows():
    return table.read(COMMITTED, import_module("experiments.dp_sgd").COLUMNS)


def some_records(count=7, features=5, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    values = size * rng.standard_normal((features, count)).astype(np.float32)
    return Records(values, training.one_hot(rng.integers(0, 10, count)))


def some_weights(records, seed=1):
    shape = (training.CLASSES, np.shape(records.features)[0])
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), np.float32)


def loss_of_one(weights, features, label):
    return -jnp.sum(jax.nn.log_softmax(weights @ features) * label)


def descend(key, records, steps, **options):
    """One run with settings that a test does not care about."""
    settings: dict[str, Any] = {
        "noise_multiplier": 0.0,
        "clip_norm": 1.0,
        "learning_rate": 1.0,
        "sampling_probability": 1.0,
    }
    return training.train(key, records, num_steps=steps, **settings | options)


# The gradient


@pytest.mark.parametrize("clip_norm", [0.1, 1.0, np.inf])
def test_clipped_sum_is_the_sum_of_clipped_per_example_gradients(clip_norm):
    records, taken = some_records(), np.array([1, 0, 1, 1, 1, 0, 1], np.float32)
    weights = some_weights(records)
    each = jax.vmap(jax.grad(loss_of_one), (None, 1, 1))(weights, *records)
    norms = jnp.sqrt(jnp.sum(each**2, axis=(1, 2)))
    assert jnp.min(norms) > 0.1
    assert jnp.max(norms) > 1.0  # each finite clip norm clips some
    factors = taken * np.minimum(1, clip_norm / np.asarray(norms))
    expected = np.einsum("i,ijk->jk", factors, each)
    for gradient_sum in (training.clipped_sum, training.per_example_sum):
        ours = gradient_sum(weights, records, jnp.asarray(taken), clip_norm)
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_a_record_without_gradient_is_none():
    empty = Records(np.zeros((5, 3), np.float32), training.one_hot(np.zeros(3, int)))
    total = training.clipped_sum(some_weights(empty), empty, jnp.ones(3), 1.0)
    np.testing.assert_array_equal(total, np.zeros((10, 5)))


@given(st.integers(0, 1000), st.sampled_from([1e-3, 1.0, 1e3]), st.sampled_from([0.1, 1.0, 10.0]))
def test_one_record_moves_the_sum_by_the_clip_norm_at_most(seed, size, clip_norm):
    records = some_records(seed=seed, size=size)
    weights, everyone = some_weights(records), jnp.ones(7)
    with_it = training.clipped_sum(weights, records, everyone, clip_norm)
    without = training.clipped_sum(weights, records, everyone.at[0].set(0), clip_norm)
    assert jnp.linalg.norm(with_it - without) <= clip_norm * (1 + 1e-5)


def test_one_record_moves_the_mistaken_sum_by_more():
    records, everyone = some_records(size=3.0), jnp.ones(7)
    weights = some_weights(records)
    with_it = training.sum_clipped_as_one(weights, records, everyone, 1.0)
    without = training.sum_clipped_as_one(weights, records, everyone.at[0].set(0), 1.0)
    assert jnp.linalg.norm(with_it - without) > 1.5


# The step


def test_without_noise_and_clipping_it_is_gradient_descent(key):
    records = some_records(count=20)
    x, y = (np.asarray(part, float) for part in records)
    weights = np.zeros((10, 5))
    for _ in range(6):
        logits = weights @ x
        probabilities = np.exp(logits) / np.sum(np.exp(logits), axis=0)
        weights -= 0.5 * (probabilities - y) @ x.T / 20
    ours = descend(key, records, 6, clip_norm=np.inf, learning_rate=0.5)
    np.testing.assert_allclose(ours, weights, rtol=1e-4, atol=1e-6)


def test_the_sum_is_divided_by_the_expected_size_of_a_sample(key):
    records, present = some_records(count=8), np.array([1, 0, 0, 1, 0, 0, 0, 0], np.float32)
    ours = descend(key, records, 1, is_present=present)
    total = training.clipped_sum(jnp.zeros((10, 5)), records, jnp.asarray(present), 1.0)
    np.testing.assert_allclose(ours, -total / 8, rtol=1e-5, atol=1e-7)  # not by the 2 there are


def nothing(weights, records, taken, clip_norm):
    return jnp.zeros_like(weights)


def test_noise_is_normal_with_the_multiplier_times_the_clip_norm(key):
    records = Records(np.zeros((3000, 4), np.float32), training.one_hot(np.zeros(4, int)))
    settings = {"noise_multiplier": 1.7, "clip_norm": 0.3, "sampling_probability": 0.5}

    keys = jax.random.split(key)

    def noise(keys, steps):
        def one(key):
            return descend(key, records, steps, gradient_sum=nothing, **settings)

        return -np.reshape(jax.vmap(one)(keys), (2, -1)) * (0.5 * 4)

    two, three = noise(jax.random.clone(keys), 2), noise(keys, 3)
    third = three - two  # had the third step other keys, this had the variance of five

    def p_value(scale):
        return sampling.kolmogorov_smirnov(third, stats.norm(scale=scale).cdf)

    assert sampling.accepts(p_value(1.7 * 0.3))
    assert not sampling.accepts(p_value(1.7 * 0.3 * 1.1))
    assert not sampling.accepts(p_value(1.7 * 0.3 / 1.1))
    # Steps are independent of one another, and so are two runs.
    off = np.corrcoef(np.vstack([two, third])) - np.eye(4)
    assert np.max(np.abs(off)) < 5 / third.shape[1] ** 0.5


def how_often(weights, records, taken, clip_norm):
    """In place of a gradient: who is in the sample."""
    return jnp.broadcast_to(taken[None], weights.shape)


def test_samples_are_poisson(key):
    # A feature for each record, so that the weights count its samples.
    n, q, steps, runs = 200, 0.1, 12, 300
    records = Records(np.zeros((n, n), np.float32), np.zeros((10, n), np.float32))

    @jax.jit
    @jax.vmap
    def weights(key):
        return descend(key, records, steps, sampling_probability=q, gradient_sum=how_often)[0]

    counts = np.round(-q * n * np.asarray(weights(jax.random.split(key, runs)))).astype(int)
    law = stats.binom.pmf(np.arange(steps + 1), steps, q)
    found = np.bincount(counts.ravel(), minlength=steps + 1)
    assert sampling.accepts(sampling.chi_square(found, law))
    # And the sizes of samples vary as those of independent coins do, neither more nor less.
    mean = steps * n * q
    statistic = np.sum((counts.sum(axis=1) - mean) ** 2) / (mean * (1 - q))
    tails = (float(tail(statistic, runs)) for tail in (stats.chi2.cdf, stats.chi2.sf))
    assert sampling.accepts(2 * min(tails))


# Many models at once


def words_and_number(key, number):
    return jax.random.bits(key, (2, 3)), number


@pytest.mark.parametrize("models", [1, 37])
def test_together_is_vmap(key, models):
    keys, numbers = jax.random.split(key, models), np.arange(models, dtype=np.float32)
    expected = jax.vmap(words_and_number)(jax.random.clone(keys), numbers)
    ours = jax.jit(lambda *columns: training.together(words_and_number, *columns))(keys, numbers)
    for part, other in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(part, other)


ON_DEVICES = """
import jax, numpy as np
from experiments import training
training.use_every_core()  # which must not start JAX
jax.config.update("jax_num_cpu_devices", {devices})
keys, scales = jax.random.split(jax.random.key(5), 37), np.arange(37, dtype=np.float32)
one = lambda key, scale: scale * jax.random.normal(key, (3,))
found = jax.jit(lambda *columns: training.together(one, *columns))(keys, scales)
assert len(found.devices()) == jax.local_device_count() == {devices}
training.use_every_core()  # too late, and no error
print(np.asarray(found).tobytes().hex())
"""


@pytest.mark.slow
def test_models_are_the_same_on_any_number_of_devices():
    found = [
        subprocess.run(
            [sys.executable, "-c", ON_DEVICES.format(devices=devices)],
            cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=True,
        ).stdout
        for devices in (1, 3)
    ]  # fmt: skip
    assert len(found[0]) > 37 * 3 * 8
    assert found[0] == found[1]


@pytest.mark.slow
def test_models_trained_together_are_those_trained_alone(key):
    train, test = (some_records(count=count, features=6) for count in (30, 200))
    keys = jax.random.split(key, 4)
    settings = (
        np.array([0.0, 0.5, 2.0, 0.0], np.float32),
        np.array([1.0, 1.0, 0.5, np.inf], np.float32),
        np.array([1.0, 2.0, 0.3, 0.5], np.float32),
    )
    together = training.accuracies(
        keys, train, test, *settings, sampling_probability=0.5, num_steps=5
    )

    @jax.jit
    def accuracy(key, noise_multiplier, clip_norm, learning_rate):
        weights = training.train(
            key, train, noise_multiplier=noise_multiplier, clip_norm=clip_norm,
            learning_rate=learning_rate, sampling_probability=0.5, num_steps=5,
        )  # fmt: skip
        return training.accuracy(weights, test)

    alone = [accuracy(keys[i], *(setting[i] for setting in settings)) for i in range(4)]
    np.testing.assert_allclose(together, alone, atol=1.01 / 200)  # one digit on the fence
    program: Any = training.accuracies
    compiled = program._cache_size()
    settings = (settings[0] + 1, settings[1], settings[2] / 2)
    training.accuracies(keys, train, test, *settings, sampling_probability=0.5, num_steps=5)
    assert program._cache_size() == compiled


@pytest.mark.slow
def test_the_benchmark_compares_the_same_models(tmp_path):
    rows = training_speed.run(4, 0, lambda *_: None)  # which checks their accuracies
    assert [(row["way"], row["models"]) for row in rows] == [
        ("one_by_one", 4), ("textbook", 4), ("unrolled", 4), ("together", 4),
    ]  # fmt: skip
    assert rows[0]["times_faster"] == rows[0]["times_less_cpu"] == 1
    path = tmp_path / "training_speed.csv"
    path.write_text(table.to_csv(rows, training_speed.COLUMNS))
    data = table.read(path, training_speed.COLUMNS)
    assert training_speed.draw(data) is not None
    assert f"{1000 * data['seconds_per_model'][-1]:.2f}" in training_speed.report(data)


def test_every_run_of_every_point_has_a_key_of_its_own():
    places = [
        {"accountant": accountant, "epsilon": epsilon}
        for accountant in dp_sgd.ACCOUNTANTS
        for epsilon in (1.0, 3.0)
    ]
    few, many = (training.keys(42, "dp_sgd accuracy", places, runs) for runs in (3, 50))
    data = np.asarray(jax.random.key_data(many))
    assert len(np.unique(data, axis=0)) == len(places) * 50
    first = jax.random.key_data(few).reshape(len(places), 3, 2)
    np.testing.assert_array_equal(first, data.reshape(len(places), 50, 2)[:, :3])


# The data


def test_the_digits_are_split_once_for_all():
    train, test = training.digits()
    assert np.shape(train.features) == (65, 1437)
    assert np.shape(test.features) == (65, 360)
    both = np.hstack([train.features, test.features])
    assert len(np.unique(both, axis=1).T) == 1797
    assert both.dtype == np.float32
    np.testing.assert_allclose([both[:-1].min(), both[:-1].max()], [-0.3, 0.7], rtol=1e-6)
    assert np.all(both[-1] == 0.5)
    labels = np.hstack([train.labels, test.labels])
    assert np.all(labels.sum(axis=0) == 1)
    np.testing.assert_array_equal(labels.sum(axis=1), [178, 182, 177, 183, 181, 182, 181, 179,
                                                       174, 180])  # fmt: skip


def test_accuracy_without_privacy_is_that_of_logistic_regression(rows):
    from sklearn.linear_model import LogisticRegression

    train, test = training.digits()
    x, labels = np.transpose(train.features), np.argmax(train.labels, axis=0)
    fitted = LogisticRegression(max_iter=200).fit(x, labels)
    other = fitted.score(np.transpose(test.features), np.argmax(test.labels, axis=0))
    plain = rows.where(part="accuracy", accountant="none")["accuracy"][0]
    assert plain == pytest.approx(other, abs=0.015)


# The audit


@pytest.mark.parametrize("kind", ["own_pixels", "noise_images", "mislabelled"])
def test_canaries_are_the_last_records_and_leave_the_others_alone(kind):
    data = some_records(count=300, features=65)
    records = getattr(canaries, kind)(np.random.default_rng(0), data)
    x, y = (np.asarray(part) for part in records)
    assert x.shape[1] == y.shape[1] == 300 + canaries.NUM_CANARIES
    np.testing.assert_array_equal(x[:65, :300], data.features)
    np.testing.assert_array_equal(y[:, :300], data.labels)
    assert np.all(y.sum(axis=0) == 1)
    if kind == "own_pixels":
        np.testing.assert_array_equal(x.T @ x[:, 300:], np.vstack(
            [np.zeros((300, 200)), canaries.PIXEL**2 * np.eye(200)]))  # fmt: skip
    if kind == "mislabelled":
        there = {column.tobytes() for column in np.asarray(data.features).T}
        assert all(np.ascontiguousarray(column).tobytes() in there for column in x[:, 300:].T)


def test_guesses_count_over_runs():
    rng = np.random.default_rng(0)
    coins = rng.random((5, canaries.NUM_CANARIES)) < 0.5
    assert canaries.guessed(coins + 0.1 * rng.random(coins.shape), coins) == (100, 100)
    assert canaries.guessed(-(coins + 0.1 * rng.random(coins.shape)), coins) == (0, 100)


@pytest.mark.slow
def test_the_coins_are_fair_and_tell_who_is_in(key):
    # With next to no noise and nothing else to learn, the loss gives every canary away.
    data = Records(np.zeros((65, 1), np.float32), training.one_hot(np.zeros(1, int)))
    records = canaries.own_pixels(np.random.default_rng(0), data)
    keys = jax.random.split(key, 40)
    scores, coins = canaries.runs(
        keys, records, np.full(40, 1e-3, np.float32), np.ones(40, np.float32),
        clip_norm=1.0, sampling_probability=1.0, num_steps=5,
    )  # fmt: skip
    heads = int(np.sum(coins))
    assert sampling.accepts(float(stats.binomtest(heads, coins.size, 0.5).pvalue))
    correct, guesses = canaries.guessed(np.asarray(scores), np.asarray(coins))
    assert correct == guesses == 40 * 2 * canaries.GUESSES


# The table


def test_noise_keeps_the_claim_and_the_accountants_are_ordered(rows):
    noise = {
        accountant: rows.where(part="accuracy", accountant=accountant)["noise_multiplier"]
        for accountant in dp_sgd.ACCOUNTANTS
    }
    assert np.all(noise["exact"] < noise["renyi"])
    assert np.all(noise["renyi"] < noise["basic"])
    for accountant in ("basic", "renyi", "exact"):
        step = loss.sampled_gaussian(dp_sgd.SAMPLING_PROBABILITY, noise[accountant])
        epsilon = exact.epsilon(dp_sgd.NUM_STEPS * step, dp_sgd.DELTA)
        assert np.all(epsilon <= np.array(dp_sgd.EPSILONS) * (1 + 1e-8))  # nine digits in the CSV
    assert np.all(epsilon > np.array(dp_sgd.EPSILONS) * (1 - 1e-6))  # and the exact one all of it


def test_accuracy_grows_with_epsilon_and_with_the_accountant(rows):
    accuracy = rows.where(part="accuracy")
    plain = accuracy.where(accountant="none")
    for accountant in dp_sgd.ACCOUNTANTS:
        of = accuracy.where(accountant=accountant)
        assert np.all(of["runs"] >= 20)
        assert np.all(np.diff(of["accuracy"]) > 0)
        assert np.all(of["accuracy"] < plain["accuracy"])
        assert np.all(of["accuracy_10"] <= of["accuracy"])
        assert np.all(of["accuracy"] <= of["accuracy_90"])
    found, loose = (accuracy.where(accountant=name) for name in ("exact", "basic"))
    error = np.hypot(found["accuracy_standard_error"], loose["accuracy_standard_error"])
    assert np.all(found["accuracy"] - loose["accuracy"] > 5 * error)
    assert found.where(epsilon=8.0)["accuracy"] > 0.93
    assert found.where(epsilon=1.0)["accuracy"] > loose.where(epsilon=8.0)["accuracy"]


def test_canaries_never_contradict_the_program_and_find_its_mistake(rows):
    audit = rows.where(part="audit")
    right, wrong = audit.where(clipped="each"), audit.where(clipped="mean")
    assert len(right) == 3 * len(wrong) == 3 * len(dp_sgd.EPSILONS)
    assert np.all(right["epsilon_proven"] < right["epsilon"])
    assert right.where(canary="own_pixels", epsilon=8.0)["epsilon_proven"] > 2  # it does see
    small = wrong["epsilon"] <= 2
    assert np.all(wrong["epsilon_proven"][small] > 1.4 * wrong["epsilon"][small])
    assert np.all(audit["epsilon_proven"] <= audit["epsilon_limit"])
