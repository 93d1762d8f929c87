"""The laws of lattice losses as lists of (loss, probability), in 40 digits."""

from typing import Any

import mpmath

mp: Any = mpmath.mp.clone()

mp.dps = 40


def response(epsilon, k):
    e = mp.mpf(epsilon)
    q = 1 / (mp.exp(e) + k - 1)
    return [(e, q * mp.exp(e)), (mp.mpf(0), (k - 2) * q), (-e, q)]


def uniform_response(epsilon, k, direction):
    e = mp.mpf(epsilon)
    q = 1 / (mp.exp(e) + k - 1)
    own, other = mp.log(k * q) + e, mp.log(k * q)
    if direction == "remove":
        return [(own, q * mp.exp(e)), (other, (k - 1) * q)]
    return [(-own, mp.mpf(1) / k), (-other, mp.mpf(k - 1) / k)]


def noise(log_mass, shift, reach):
    """The loss of a law on the integers against the same law shifted."""
    points = range(-reach, reach + shift + 1)
    mass = [mp.exp(log_mass(x)) for x in points]
    total = mp.fsum(mass)
    losses = [log_mass(x) - log_mass(x - shift) for x in points]
    return merged([(loss, p / total) for loss, p in zip(losses, mass, strict=True)])


def discrete_laplace(scale, shift):
    s = mp.mpf(scale)
    return noise(lambda x: -abs(x) / s, shift, int(95 * scale) + 2)


def discrete_gaussian(scale, shift):
    s = mp.mpf(scale)
    return noise(lambda x: -(mp.mpf(x) ** 2) / (2 * s**2), shift, int(14 * scale) + 3)


def composed(law, count):
    """The law of the sum."""
    total = [(mp.mpf(0), mp.mpf(1))]
    for _ in range(count):
        total = merged([(a + b, p * q) for a, p in total for b, q in law])
    return total


def merged(law):
    """Equal losses, up to rounding, as one."""
    total = {}
    for loss, p in law:
        key = mp.nstr(loss, 25)
        before = total.get(key, (loss, 0))
        total[key] = before[0], before[1] + p
    return list(total.values())


def delta(law, epsilon):
    epsilon = mp.mpf(epsilon)
    return mp.fsum(-p * mp.expm1(epsilon - loss) for loss, p in law if loss > epsilon)


def cumulant(law, t):
    return mp.log(mp.fsum(p * mp.exp(mp.mpmathify(t) * loss) for loss, p in law))
