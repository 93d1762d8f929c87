"""DP-SGD for a linear classifier of handwritten digits: Poisson samples, clipping, Gaussian noise.

One pure function trains one model, so any number of them are trained by one program: other keys,
other noise, other learning rates. Records are columns, so that vector units run along them.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jax.typing import ArrayLike
from jaxtyping import Array, Float

import dpjax
from dpjax import prng
from dpjax.simulate import COMPILER_OPTIONS
from experiments import simulation

CLASSES = 10
SPLIT_SEED = 0
TEST_RECORDS = 360
BLOCK = 16  # models on one core at once: the probabilities of 1437 records are 0.9 MB


class Records(NamedTuple):
    """People, one a column."""

    features: Float[ArrayLike, "features records"]
    labels: Float[ArrayLike, "classes records"]  # one 1 in each column


GradientSum = Callable[[Array, Records, Array, ArrayLike], Array]


def digits() -> tuple[Records, Records]:
    """Scikit-learn's 1797 handwritten digits of 8 x 8 pixels, split once for all: train and test.

    What a record becomes depends on nothing but itself: pixels go from 0 ... 16 to -0.3 ... 0.7 by
    constants (a mean of the data would have to be released, too), and a constant is the bias.
    """
    from sklearn.datasets import load_digits  # here: it is slow to import

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(SPLIT_SEED).permutation(len(labels))  # the same for ever
    features = np.vstack([pixels.T / 16 - 0.3, np.full(len(labels), 0.5)])
    features = features.astype(np.float32)
    test, train = order[:TEST_RECORDS], order[TEST_RECORDS:]
    return (
        Records(features[:, train], one_hot(labels[train])),
        Records(features[:, test], one_hot(labels[test])),
    )


def one_hot(labels: np.ndarray) -> np.ndarray:
    """Whole labels as columns with a single 1."""
    return np.eye(CLASSES, dtype=np.float32)[:, labels]


def clipped_sum(weights: Array, records: Records, taken: Array, clip_norm: ArrayLike) -> Array:
    """The gradients of the cross-entropy of the taken records, each clipped, added up.

    The gradient of one record is the outer product of its residual (probabilities less label) and
    its features, and the norm of an outer product is the product of the norms. So each record is
    clipped by one number, and no gradient of a single record is ever formed.

    Args:
        weights: (classes, features).
        records: all of them.
        taken: (records,) of 0 and 1.
        clip_norm: the L2 norm that no record's part of the sum exceeds.
    """
    features = jnp.asarray(records.features)
    residual = _residual(weights, records)
    norm = jnp.linalg.norm(residual, axis=0) * jnp.linalg.norm(features, axis=0)
    factor = taken * jnp.minimum(1, clip_norm / norm)  # a norm of 0 gives infinity, and that 1
    return (residual * factor[None]) @ features.T


def per_example_sum(weights: Array, records: Records, taken: Array, clip_norm: ArrayLike) -> Array:
    """The same as `clipped_sum`, the textbook's way: every gradient is formed, then clipped.

    For models whose gradients have no such structure, and to compare with.
    """

    def cross_entropy(weights: Array, features: Array, label: Array) -> Array:
        return -jnp.sum(jax.nn.log_softmax(weights @ features) * label)

    each = jax.vmap(jax.grad(cross_entropy), (None, 1, 1))(weights, *map(jnp.asarray, records))
    norms = jnp.sqrt(jnp.sum(each**2, axis=(1, 2)))
    return jnp.einsum("i,ijk->jk", taken * jnp.minimum(1, clip_norm / norms), each)


def sum_clipped_as_one(
    weights: Array, records: Records, taken: Array, clip_norm: ArrayLike
) -> Array:
    """A mistake, for audits to find: the mean gradient of the sample is clipped, not each one.

    It looks much the same and trains as well, but one record may move the sum by far more than
    `clip_norm`.
    """
    residual = _residual(weights, records) * taken[None]
    total = residual @ jnp.asarray(records.features).T
    norm = jnp.linalg.norm(total) / jnp.maximum(jnp.sum(taken), 1)
    return total * jnp.minimum(1, clip_norm / norm)


def _residual(weights: Array, records: Records) -> Array:
    """(classes, records): softmax less label, the gradient of the cross-entropy in the logits."""
    logits = weights @ jnp.asarray(records.features)
    return jax.nn.softmax(logits, axis=0) - jnp.asarray(records.labels)


def train(
    key: Array,
    records: Records,
    *,
    noise_multiplier: ArrayLike,
    clip_norm: ArrayLike,
    learning_rate: ArrayLike,
    sampling_probability: float,
    num_steps: int,
    is_present: ArrayLike | None = None,
    gradient_sum: GradientSum = clipped_sum,
) -> Array:
    """The weights after noisy gradient steps from 0, each on a Poisson sample of the records.

    Every record is in every sample by a coin of its own, the sum of the clipped gradients gets
    noise once, and is divided by the expected size of a sample: its real size depends on who is in
    it. One step leaks `loss.sampled_gaussian(sampling_probability, noise_multiplier)`.

    Args:
        key: one typed key, used once.
        records: the data; their number is taken as public where the sum is divided.
        noise_multiplier: standard deviation of the noise over `clip_norm`, at least 0.
        clip_norm: above 0; infinity clips nothing, and then there is no noise.
        learning_rate: above 0.
        sampling_probability: in [0, 1]; a coin falls on a grid of 2^-23.
        num_steps: at least 0. A longer run repeats a shorter one and goes on.
        is_present: (records,) of 0 and 1, by default all ones: those who are in the data at all.
        gradient_sum: what to add noise to; its sensitivity must be `clip_norm`.

    Source: Abadi et al. 2016, Algorithm 1.
    """
    features, labels = (jnp.asarray(part) for part in records)
    num_records = features.shape[1]
    present = jnp.ones(num_records) if is_present is None else jnp.asarray(is_present)
    # Infinitely much of no noise is none.
    scale = jnp.where(noise_multiplier == 0, 0.0, noise_multiplier * jnp.asarray(clip_norm))

    def step(weights: Array, number: Array) -> tuple[Array, None]:
        sampling, noise = jax.random.split(jax.random.fold_in(key, number))
        coins = jax.random.bernoulli(sampling, sampling_probability, (num_records,))
        taken = jnp.where(coins, present, 0)
        total = gradient_sum(weights, Records(features, labels), taken, clip_norm)
        noisy = dpjax.gaussian(noise, total, scale=scale)
        return weights - learning_rate * noisy / (sampling_probability * num_records), None

    start = jnp.zeros((CLASSES, features.shape[0]))
    return jax.lax.scan(step, start, jnp.arange(num_steps))[0]


def accuracy(weights: Array, records: Records) -> Array:
    """Share of the records whose most probable class is their label."""
    guess = jnp.argmax(weights @ jnp.asarray(records.features), axis=0)
    return jnp.mean((guess == jnp.argmax(jnp.asarray(records.labels), axis=0)).astype(float))


def keys(seed: int, name: str, places: Sequence[Mapping[str, str | float]], runs: int) -> Array:
    """A key for each run of each place in a grid, place by place; more runs change none."""
    of_places = jnp.stack([simulation.point_key(seed, name, place) for place in places])
    of_runs = jax.vmap(jax.random.fold_in, (None, 0))
    return jax.vmap(of_runs, (0, None))(of_places, jnp.arange(runs)).ravel()


def use_every_core() -> None:
    """One CPU device for each core, unless JAX has started; what is computed stays the same."""
    try:
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
    except RuntimeError:
        pass


def together(one: Callable[..., Any], keys: Array, *settings: ArrayLike) -> Any:
    """What `jax.vmap(one)(keys, *settings)` gives, but for rounding, in less time; under jit.

    Three things make it fast. Models go in blocks, whose records' probabilities stay in the cache
    from one step of the arithmetic to the next; the blocks go to every local device; and keys draw
    by `dpjax.prng`, which has the words of `jax.random` sooner.

    Args:
        one: pure, from a key and numbers to arrays.
        keys: (models,), threefry2x32.
        settings: (models,), each.
    """

    def block(key: Array, *setting: Array) -> Any:
        return jax.vmap(lambda key, *of: one(prng.unroll(key), *of))(key, *setting)

    def on_device(*columns: Array) -> Any:
        blocks = [jnp.reshape(column, (-1, size, *column.shape[1:])) for column in columns]
        found = jax.lax.map(lambda of: block(*of), blocks)
        return jax.tree.map(lambda part: jnp.reshape(part, (-1, *part.shape[2:])), found)

    models, devices = len(keys), jax.local_devices()
    size = -(-models // len(devices))
    if jax.default_backend() == "cpu":  # an accelerator wants as many at once as there are
        size = min(size, BLOCK)
    # Whole blocks on each device: where models are too few, the last one is trained again.
    trained = -(-models // (size * len(devices))) * size * len(devices)
    place = np.minimum(np.arange(trained), models - 1)
    spec = PartitionSpec("models")
    run = jax.shard_map(
        on_device,
        mesh=Mesh(np.array(devices), ("models",)),
        in_specs=spec,
        out_specs=spec,
        check_vma=False,  # which knows no scan that starts from a constant
    )
    found = run(*(jnp.asarray(column)[place] for column in (keys, *settings)))
    return jax.tree.map(lambda part: part[:models], found)


@partial(
    jax.jit,
    static_argnames=("sampling_probability", "num_steps"),
    compiler_options=COMPILER_OPTIONS,
)
def accuracies(
    keys: Array,
    train_records: Records,
    test_records: Records,
    noise_multipliers: ArrayLike,
    clip_norms: ArrayLike,
    learning_rates: ArrayLike,
    *,
    sampling_probability: float,
    num_steps: int,
) -> Float[Array, " models"]:
    """Test accuracy of many models, all trained in one program.

    Args:
        keys: (models,), one each.
        train_records: shared by all.
        test_records: shared by all.
        noise_multipliers: (models,), as are the two below.
        clip_norms: see `train`.
        learning_rates: see `train`.
        sampling_probability: of each step, for all.
        num_steps: of each model.
    """

    def one(key: Array, noise_multiplier: Array, clip_norm: Array, learning_rate: Array) -> Array:
        weights = train(
            key,
            train_records,
            noise_multiplier=noise_multiplier,
            clip_norm=clip_norm,
            learning_rate=learning_rate,
            sampling_probability=sampling_probability,
            num_steps=num_steps,
        )
        return accuracy(weights, test_records)

    return together(one, keys, noise_multipliers, clip_norms, learning_rates)
