"""What the benchmark runs: ways to simulate the RMSE of a mechanism of scale 1 on an answer of 0.

Each maker gives `run(trials) -> rmse`. It is called in a process of its own (see
experiments/worker.py), so heavy imports are inside.
"""

import functools
import subprocess
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Run = Callable[[int], float]


class Entry(NamedTuple):
    """One line of the benchmark.

    Attributes:
        contestant: a name in MAKERS.
        mechanism: laplace or gaussian.
        devices: CPU devices that JAX has; 0 for whatever accelerator it finds.
        processes: that share the work.
        points: of the grid that the trials are divided over.
    """

    contestant: str
    mechanism: str
    devices: int = 1
    processes: int = 1
    points: int = 1


def numpy_pcg64(entry: Entry) -> Run:
    """NumPy's default generator, in chunks that stay in cache."""
    return _numpy(entry, np.random.PCG64)


def numpy_sfc64(entry: Entry) -> Run:
    """NumPy's fastest generator, likewise."""
    return _numpy(entry, np.random.SFC64)


def _numpy(entry: Entry, generator: type) -> Run:
    """`Generator.laplace`, or `standard_normal` in place in float32."""
    rng, chunk = np.random.Generator(generator(0)), 8_192  # the fastest of 2^12 to 2^16
    buffer = np.empty(chunk, np.float32)

    def run(trials: int) -> float:
        total = 0.0
        for start in range(0, trials, chunk):
            size = min(chunk, trials - start)
            if entry.mechanism == "laplace":
                x = rng.laplace(size=size)
            else:
                x = rng.standard_normal(out=buffer[:size], dtype=np.float32)
            total += float(x @ x)
        return (total / trials) ** 0.5

    return run


def jax_whole(entry: Entry) -> Run:
    """`jax.random` as one jitted array, at most 10^7 numbers at once."""
    import jax
    import jax.numpy as jnp

    sample = _sampler(entry)

    @functools.partial(jax.jit, static_argnums=1)
    def square(key: jax.Array, size: int) -> jax.Array:
        return jnp.mean(sample(key, (size,)) ** 2)

    def run(trials: int) -> float:
        size = min(trials, 10_000_000)
        keys = jax.random.split(jax.random.key(0), -(-trials // size))
        return float(np.mean([square(key, size) for key in keys]) ** 0.5)

    return run


def jax_blocked(entry: Entry) -> Run:
    """`jax.random` with its standard key in blocks of 65,536 in one jitted loop."""
    import jax
    import jax.numpy as jnp

    sample, block = _sampler(entry), 65_536

    @jax.jit
    def squares(key: jax.Array, blocks: jax.Array) -> jax.Array:
        def add(i: jax.Array, lanes: jax.Array) -> jax.Array:
            x = sample(jax.random.fold_in(key, i), (block,))
            return lanes + jnp.sum((x * x).reshape(-1, lanes.size), axis=0)

        return jax.lax.fori_loop(0, blocks, add, jnp.zeros(1024))

    def run(trials: int) -> float:
        blocks = -(-trials // block)
        lanes = np.asarray(squares(jax.random.key(0), np.int32(blocks)), np.float64)
        return float((np.sum(lanes) / (blocks * block)) ** 0.5)

    return run


def _sampler(entry: Entry) -> Callable:
    """The sampler in jax.random."""
    import jax

    return {"laplace": jax.random.laplace, "gaussian": jax.random.normal}[entry.mechanism]


def _release(entry: Entry, scale: float) -> Callable:
    """Our mechanism."""
    import dpjax

    mechanism = {"laplace": dpjax.laplace, "gaussian": dpjax.gaussian}[entry.mechanism]
    return functools.partial(mechanism, scale=np.float32(scale))


def dpjax_simulate(entry: Entry) -> Run:
    """`dpjax.simulate`, one jitted call with all its moments."""
    import jax

    import dpjax

    mechanism = _release(entry, 1.0)
    return lambda trials: float(dpjax.simulate(jax.random.key(0), mechanism, 0.0, trials).rmse)


def dpjax_sweep(entry: Entry) -> Run:
    """`dpjax.sweep` over a grid of epsilons, with all moments."""
    import jax

    import dpjax

    epsilons = np.logspace(-1, 1, entry.points) if entry.points > 1 else [1.0]
    points = dpjax.grid(lambda epsilon: _release(entry, 1 / epsilon), epsilon=epsilons)

    def run(trials: int) -> float:
        result = dpjax.sweep(jax.random.key(0), points, -(-trials // entry.points))
        return float(result.moments[0].rmse * epsilons[0])

    return run


def words(entry: Entry) -> Run:
    """The generator's words alone, added up, as many as a mechanism takes (one a trial)."""
    import jax
    import jax.numpy as jnp

    from dpjax import prng
    from dpjax.simulate import BLOCK, COMPILER_OPTIONS
    from dpjax.sweep.division import CHUNK

    devices, chunk = jax.local_devices(), CHUNK * BLOCK

    @functools.partial(jax.jit, compiler_options=COMPILER_OPTIONS)
    def add_up(key: jax.Array, start: jax.Array, stop: jax.Array) -> jax.Array:
        def add(i: jax.Array, lanes: jax.Array) -> jax.Array:
            drawn = prng.words(jax.random.fold_in(key, i), (BLOCK // lanes.size, lanes.size))
            return lanes + jnp.sum(drawn, axis=0, dtype=np.uint32)

        return jax.lax.fori_loop(start, stop, add, jnp.zeros(1024, np.uint32))

    keys = [jax.device_put(prng.unroll(jax.random.key(0)), device) for device in devices]

    def run(trials: int) -> float:
        sums = []
        for i in range(-(-trials // chunk)):
            stop = min((i + 1) * CHUNK, -(-trials // BLOCK))
            sums.append(add_up(keys[i % len(keys)], np.int32(i * CHUNK), np.int32(stop)))
        jax.block_until_ready(sums)
        return float("nan")

    return run


def diffprivlib(entry: Entry) -> Run:
    """IBM's diffprivlib, one call a trial."""
    from diffprivlib import mechanisms  # pyright: ignore[reportMissingImports]

    if entry.mechanism == "laplace":
        mechanism, scale = mechanisms.Laplace(epsilon=1.0, sensitivity=1.0), 1.0
    else:
        mechanism = mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0)
        scale = mechanism._scale  # it has no public name

    def run(trials: int) -> float:
        total = sum(mechanism.randomise(0.0) ** 2 for _ in range(trials))
        return (total / trials) ** 0.5 / scale

    return run


def opendp(entry: Entry) -> Run:
    """OpenDP's vector form."""
    import opendp.prelude as dp  # pyright: ignore[reportMissingImports]

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    if entry.mechanism == "laplace":
        mechanism = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=1.0)
    else:
        mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=1.0)

    def run(trials: int) -> float:
        x = np.asarray(mechanism([0.0] * trials))
        return float(x @ x / trials) ** 0.5

    return run


MAKERS: dict[str, Callable[[Entry], Run]] = {
    maker.__name__: maker
    for maker in (
        numpy_pcg64,
        numpy_sfc64,
        jax_whole,
        jax_blocked,
        dpjax_simulate,
        dpjax_sweep,
        words,
        diffprivlib,
        opendp,
    )
}

# 20 rounds of an addition, a rotation and an exclusive or, and six times two words of key: 72 for
# the two words of a threefry block.
OPERATIONS_PER_WORD = 36


def integer_bound() -> float | None:
    """Words per second if a GPU did nothing but the generator's integer operations, if known.

    64 lanes of 32-bit integers per multiprocessor (compute capability 7.0 to 9.0).
    """
    import jax

    cores = getattr(jax.local_devices()[0], "core_count", None)
    query = ["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"]
    try:
        clock = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None
    return None if cores is None else cores * 64 * float(clock) * 1e6 / OPERATIONS_PER_WORD
