"""Composition and discrete losses against reference values: one adapter a topic."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_reference import CLASSIC, TANH, agrees, least_noise, name

from dpjax import curves
from dpjax.accounting import basic, calibrate, exact, loss, rdp

BLOCKS = json.loads((Path(__file__).parent / "data" / "composition.json").read_text())


def every_rule(eps0, delta0, k, delta_total):
    queries = k * loss.approximate(eps0, delta0)
    total = k * delta0
    assert basic.epsilon(queries, total * (1 - 1e-9)) == np.inf or total == 0
    rules = [basic.epsilon, TANH, lambda q, d: basic.advanced(q, d, form="logarithm")]
    return {
        "basic_eps": basic.epsilon(queries, total * (1 + 1e-9)),
        "basic_delta": total,
        "drv": basic.advanced(queries, delta_total),
        "advanced_tanh": TANH(queries, delta_total),
        "kov_simplified": min(rule(queries, delta_total) for rule in rules),
        "kov_optimal": exact.epsilon(queries, delta_total),
    }


def largest_epsilon(eps, k, delta, rule):
    """Of one query, under a rule that knows only that."""
    return 1 / least_noise(lambda m: loss.pure(1 / m), k, eps, delta, rule)


def inverse(eps, k, delta):
    rules = {
        "basic": basic.epsilon,
        "drv": basic.advanced,
        "advanced_tanh": TANH,
        "kov_optimal": exact.epsilon,
    }
    return {title: largest_epsilon(eps, k, delta, rule) for title, rule in rules.items()}


def optimal_points(eps0, delta0, k):
    queries = k * loss.approximate(eps0, delta0)
    points = {str(i): (k - 2 * i) * eps0 for i in range(k // 2 + 1)}
    return {i: {"eps": e, "delta": exact.delta(queries, e)} for i, e in points.items()}


def on_the_points(eps0, delta0, delta_total, k):
    """The least epsilon of the form (k - 2i) eps0, as another package reports it."""
    queries = k * loss.approximate(eps0, delta0)
    points = (k - 2 * np.arange(k // 2 + 1)) * eps0
    return points[exact.delta(queries, points) <= delta_total].min()


def calibrated(eps, delta, k):
    return {
        "basic": largest_epsilon(eps, k, delta, basic.epsilon),
        "advanced_dr": largest_epsilon(eps, k, delta, basic.advanced),
        "kov": largest_epsilon(eps, k, delta, exact.epsilon),
        "tight_laplace_inverse_scale": 1 / least_noise(loss.laplace, k, eps, delta, exact.epsilon),
        "gauss_exact_sigma": least_noise(loss.gaussian, k, eps, delta, exact.epsilon),
        "gauss_classic_rdp_sigma": least_noise(loss.gaussian, k, eps, delta, CLASSIC),
    }


def first_integers(eps, delta):
    """The first k at which the Gaussian is ahead, even if it falls behind once more."""
    k = np.arange(1, 41)
    incumbent = curves.calibrated("laplace", eps, delta, accountant=basic.optimal)(k)
    answer = {}
    for title, rule in (("exact", exact.epsilon), ("classic_rdp", CLASSIC)):
        ahead = curves.gaussian(eps, delta, accountant=rule)(k) <= incumbent
        answer[title] = int(k[ahead.argmax()]) if ahead.any() else None
    return answer


def response(buckets, relation, noise_parameter):
    """With chance noise_parameter the answer is a uniform one."""
    odds = 1 + buckets * (1 - noise_parameter) / noise_parameter
    adjacency = {"replace_one": "replace_one", "replace_special": "add_remove"}[relation.lower()]
    return loss.k_ary_response(1 / np.log(odds), buckets, adjacency=adjacency)


def one_discrete_gaussian(sigma, eps):
    return exact.delta(loss.discrete_gaussian(sigma, 1), eps)


ADAPTERS = {
    "composition.eps": every_rule,
    "composition.inverse": inverse,
    "composition.kov_points": optimal_points,
    "composition.pure_delta": lambda eps0, k, eps: exact.delta(k * loss.pure(eps0), eps),
    "crossover.calibrated_eps0": calibrated,
    "crossover.int_kov": first_integers,
    "discrete_laplace.delta": lambda scale, sensitivity, eps: exact.delta(
        loss.discrete_laplace(scale, sensitivity), eps
    ),
    "discrete_gaussian.delta": lambda sigma, eps: exact.delta(
        loss.discrete_gaussian(sigma, 1), eps
    ),
    "ldp.binary_rr_rdp": lambda eps, order: rdp.divergence(
        loss.randomized_response(1 / eps), order
    ),
    "public.discrete_gaussian_delta": one_discrete_gaussian,
    "public.kov_advanced_composition": on_the_points,
    "public.pld_discrete_laplace_delta": lambda param, sensitivity, q, adjacency, eps: exact.delta(
        loss.discrete_laplace(1 / param, sensitivity), eps
    ),
    "public.randomized_response_eps": lambda **inputs: exact.epsilon(response(**inputs), 0.0),
    "public.randomized_response_rdp": lambda order, **inputs: rdp.divergence(
        response(**inputs), float(order)
    ),
}


def is_slow(topic, inputs):
    """Whether a case takes seconds and another of its kind is quick."""
    calibrated = topic in ("crossover.calibrated_eps0", "crossover.int_kov")
    return calibrated and (inputs["eps"], inputs["delta"]) != (1, 1e-3)


CASES = [
    pytest.param(
        block, case, marks=pytest.mark.slow if is_slow(block["topic"], case["inputs"]) else ()
    )
    for block in BLOCKS
    for case in block["cases"]
]


@pytest.mark.parametrize(("block", "case"), CASES, ids=name)
def test_agrees_with_the_reference(block, case):
    answer = ADAPTERS[block["topic"]](**case["inputs"])
    assert agrees(answer, case["expected"], block["tol"]), answer


def test_every_topic_has_cases():
    assert {block["topic"] for block in BLOCKS} == ADAPTERS.keys()


def test_calibration_keeps_to_the_private_side():
    noise = calibrate.noise_multiplier(
        lambda m: 50 * loss.pure(1 / m), 10.0, 1e-5, accountant=exact.epsilon
    )
    assert exact.epsilon(50 * loss.pure(1 / noise), 1e-5) <= 10.0
