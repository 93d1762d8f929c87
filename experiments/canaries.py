"""Canaries: records made to be recognised, of which a fair coin decides who joins the training.

After a run an attacker who has nothing but the final model guesses for some of them whether they
were in it, by their loss. What the right guesses prove is `dpjax.audit.one_run`'s business.

Several runs, each with coins of its own, count as one: together they are one private release of
data in which every record says which run it goes to, and each coin moves one run only.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from dpjax.audit import one_run
from dpjax.simulate import COMPILER_OPTIONS
from experiments import training
from experiments.training import GradientSum, Records

NUM_CANARIES = 200
GUESSES = 10  # of "in", and as many of "out", in each run; fixed before any was seen
PIXEL = 4.0  # as long as a bright digit's features

Maker = Callable[[np.random.Generator, Records], Records]


def own_pixels(rng: np.random.Generator, data: Records) -> Records:
    """Data with canaries that each light a pixel that no other record has."""
    features = np.asarray(data.features)
    blank = np.zeros((len(features), NUM_CANARIES), np.float32)
    dark = np.zeros((NUM_CANARIES, features.shape[1]), np.float32)
    lit = PIXEL * np.eye(NUM_CANARIES, dtype=np.float32)
    return Records(np.block([[features, blank], [dark, lit]]), _with_random_labels(rng, data))


def noise_images(rng: np.random.Generator, data: Records) -> Records:
    """Data with canaries of random black and white pixels."""
    features = np.asarray(data.features)
    pixels = rng.integers(0, 2, (len(features) - 1, NUM_CANARIES)) - 0.3
    images = np.vstack([pixels, np.full(NUM_CANARIES, 0.5)]).astype(np.float32)
    return Records(np.hstack([features, images]), _with_random_labels(rng, data))


def mislabelled(rng: np.random.Generator, data: Records) -> Records:
    """Data with canaries that are its own digits again, with random labels."""
    features = np.asarray(data.features)
    chosen = rng.choice(features.shape[1], NUM_CANARIES, replace=False)
    both = np.hstack([features, features[:, chosen]])
    return Records(both, _with_random_labels(rng, data))


def _with_random_labels(rng: np.random.Generator, data: Records) -> np.ndarray:
    """The labels of the data, and then those of the canaries."""
    labels = training.one_hot(rng.integers(0, training.CLASSES, NUM_CANARIES))
    return np.hstack([np.asarray(data.labels), labels])


@partial(
    jax.jit,
    static_argnames=("sampling_probability", "num_steps", "gradient_sum"),
    compiler_options=COMPILER_OPTIONS,
)
def runs(
    keys: Array,
    records: Records,
    noise_multipliers: ArrayLike,
    learning_rates: ArrayLike,
    *,
    clip_norm: float,
    sampling_probability: float,
    num_steps: int,
    gradient_sum: GradientSum = training.clipped_sum,
) -> tuple[Array, Array]:
    """Train many models, each with about half of the canaries, all in one program.

    Args:
        keys: (runs,), one each.
        records: the data, its last NUM_CANARIES columns the canaries.
        noise_multipliers: (runs,), as are the learning rates.
        learning_rates: see `training.train`.
        clip_norm: see `training.train`, as are the arguments below.
        sampling_probability: of each step.
        num_steps: of each model.
        gradient_sum: what to add noise to.

    Returns:
        Scores (runs, canaries), the higher the better the final model fits them, and the coins.
    """

    def one(key: Array, noise_multiplier: Array, learning_rate: Array) -> tuple[Array, Array]:
        coins, steps = jax.random.split(key)
        is_in = jax.random.bernoulli(coins, 0.5, (NUM_CANARIES,))
        always = jnp.ones(jnp.shape(records.labels)[1] - NUM_CANARIES)
        weights = training.train(
            steps,
            records,
            noise_multiplier=noise_multiplier,
            clip_norm=clip_norm,
            learning_rate=learning_rate,
            sampling_probability=sampling_probability,
            num_steps=num_steps,
            is_present=jnp.concatenate([always, is_in.astype(float)]),
            gradient_sum=gradient_sum,
        )
        canaries, labels = (jnp.asarray(part)[:, -NUM_CANARIES:] for part in records)
        score = jnp.sum(jax.nn.log_softmax(weights @ canaries, axis=0) * labels, axis=0)
        return score, is_in

    return training.together(one, keys, noise_multipliers, learning_rates)


def guessed(scores: np.ndarray, is_in: np.ndarray) -> one_run.Guesses:
    """The guesses of several runs (runs, canaries) and how many were right, added up."""
    of_runs = [
        one_run.guess(*run, num_in=GUESSES, num_out=GUESSES)
        for run in zip(scores, is_in, strict=True)
    ]
    return one_run.Guesses(*(sum(number) for number in zip(*of_runs, strict=True)))
