"""Strict JAX for every test, a key for each, and hypothesis without chance."""

import gc
import zlib

import hypothesis
import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_legacy_prng_key", "error")
jax.config.update("jax_debug_key_reuse", True)

hypothesis.settings.register_profile(
    "dpjax", derandomize=True, database=None, deadline=None, max_examples=50, print_blob=False
)
hypothesis.settings.load_profile("dpjax")


# What is imported stays: the collector would go through all of it again and again.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def key(request: pytest.FixtureRequest) -> jax.Array:
    """A key from the test's own name: stable, replayable, another for each test."""
    return jax.random.key(zlib.crc32(request.node.nodeid.encode()))
