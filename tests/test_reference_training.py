"""Published values of DP-SGD and of other packages' own tests: one adapter a topic.

Where a case has ends, the answer must lie between them: some published constants are upper bounds,
some of them with an excess that their own documentation states.
"""

import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate
from test_reference import ORDERS, agrees, least_noise, name, on_orders

from dpjax import theory
from dpjax.accounting import calibrate, exact, gaussian, gdp, loss, rdp

BLOCKS = json.loads((Path(__file__).parent / "data" / "training.json").read_text())


def training(q, sigma, steps):
    return steps * loss.sampled_gaussian(q, sigma)


def epochs(n, batch, sigma, epochs):
    return training(batch / n, sigma, math.ceil(epochs * n / batch))


def on_integers(q, sigma, steps, delta):
    orders = ORDERS["int_2_64"]
    curve = rdp.divergence(training(q, sigma, steps), orders)
    answer = {}
    for conversion in ("classic", "improved"):
        epsilons = rdp.to_epsilon(orders, curve, delta=delta, conversion=conversion)
        answer[conversion] = epsilons.min()
        answer[f"{conversion}_order"] = orders[epsilons.argmin()]
    return answer


def central_limit_epsilon(sigma, q, steps, delta):
    mu = gdp.clt_approximation_poisson(sampling_probability=q, noise_multiplier=sigma, count=steps)
    return gaussian.epsilon(delta, mu=mu)


def least_training_noise(eps, delta, q, steps, accountant):
    def central_limit(privacy_loss, delta):
        ((leak, count),) = privacy_loss.terms
        return central_limit_epsilon(leak.noise_multiplier, q, count, delta)

    rule = {"prv": exact.epsilon, "rdp": rdp.epsilon, "gdp": central_limit}[accountant]
    return calibrate.noise_multiplier(lambda m: training(q, m, steps), eps, delta, accountant=rule)


def at_order(delta, best_order, **settings):
    """Epsilon at the order that was published, which ours over real orders does not exceed."""
    orders = np.array([float(best_order)])
    answer = on_orders(orders, "improved")(epochs(**settings), delta)
    assert rdp.epsilon(epochs(**settings), delta) <= answer * (1 + 1e-12)
    return answer


def before_2020(delta, **settings):
    """The conversion and the orders that TensorFlow Privacy had then."""
    return on_orders(ORDERS["int_2_64"], "classic")(epochs(**settings), delta)


def example(sigma, count, q, delta, accountant):
    rules = {"PLD": exact.epsilon, "RDP": on_orders(ORDERS["dp_accounting_default"], "improved")}
    return rules[accountant](training(q, sigma, count), delta)


def one_step(std, sensitivity, q, adjacency, eps):
    """Of one direction; below 0 by the other one at -epsilon."""
    ahead, back = {
        "REM": ("remove", "add"),
        "ADD": ("add", "remove"),
        "REPLACE": ("both", "both"),
    }[adjacency]
    kind = "replace_one" if adjacency == "REPLACE" else "add_remove"
    ((leak, _),) = loss.sampled_gaussian(q, std / sensitivity, adjacency=kind).terms
    log_delta = leak.log_delta_once(np.asarray([abs(eps)]), ahead if eps >= 0 else back)
    assert log_delta is not None
    log_delta = log_delta.item()
    return np.exp(log_delta) if eps >= 0 else -np.expm1(eps) + np.exp(eps + log_delta)


def below_zero(b, eps, sensitivity=1, q=1, adjacency="ADD"):
    """Delta at a negative epsilon, where both directions leak alike and all take part."""
    return -np.expm1(eps) + np.exp(eps) * exact.delta(loss.laplace(b / sensitivity), -eps)


def two_modes(std, sensitivities, probs, adjacency, eps):
    """A mixture of shifts 0 and s is a Poisson sample of one record."""
    return one_step(std, sensitivities[1], probs[1], adjacency, eps)


def composed(k, what, mech, **inputs):
    if mech == "gaussian":
        return exact.delta(k * loss.gaussian(inputs["sigma"]), inputs["eps"])
    return exact.epsilon(k * loss.sampled_laplace(inputs["q"], inputs["b"]), inputs["delta"])


def expected_largest(b, d):
    law = theory.Laplace(b)
    value, _ = integrate.quad(
        lambda x: -np.expm1(d * np.log1p(-law.tail(x))), 0, 60 * b, points=[b], epsrel=1e-13
    )
    return value


ADAPTERS = {
    "laplace.delta": below_zero,
    "laplace.expected_max_abs": expected_largest,
    "sgm.eps_rdp_int_2_64": on_integers,
    "public.autodp_tfp_rdp": lambda order, **inputs: rdp.divergence(training(**inputs), order),
    "public.fourier_delta_addremove": lambda eps, **inputs: exact.delta(training(**inputs), eps),
    "public.fourier_eps_addremove": lambda delta, **inputs: exact.epsilon(
        training(**inputs), delta
    ),
    "public.fourier_eps_substitute": lambda q, sigma, steps, delta: exact.epsilon(
        steps * loss.sampled_gaussian(q, sigma, adjacency="replace_one"), delta
    ),
    "public.opacus_gdp_eps": central_limit_epsilon,
    "public.opacus_noise_multiplier": least_training_noise,
    "public.opacus_prv_eps": lambda delta, **inputs: exact.epsilon(training(**inputs), delta),
    "public.opacus_rdp_eps": lambda delta, **inputs: on_orders(ORDERS["tf"], "improved")(
        training(**inputs), delta
    ),
    "public.pld_accountant": composed,
    "public.pld_gaussian_delta": one_step,
    "public.pld_laplace_delta": below_zero,
    "public.pld_mixture_gaussian_delta": two_modes,
    "public.prv_eps_upper": lambda delta, **inputs: exact.epsilon(training(**inputs), delta),
    "public.prv_zero_eps_delta": lambda delta0, k: exact.delta(k * loss.approximate(0, delta0), 0),
    "public.sgm_rdp": lambda order, **inputs: rdp.divergence(training(**inputs), float(order)),
    "public.smallest_laplace_noise": lambda eps, delta, k, sensitivity: (
        sensitivity * least_noise(loss.laplace, k, eps, delta, exact.epsilon)
    ),
    "public.smallest_subsampled_gaussian_noise": lambda eps, delta, k, sensitivity, q: (
        sensitivity
        * least_noise(functools.partial(loss.sampled_gaussian, q), k, eps, delta, exact.epsilon)
    ),
    "public.subsampled_laplace_scale": lambda sensitivity, q, eps: (
        sensitivity
        * least_noise(functools.partial(loss.sampled_laplace, q), 1, eps, 0.0, exact.epsilon)
    ),
    "public.tf_dpsgd_rdp_eps": at_order,
    "public.tf_dpsgd_rdp_eps_old": before_2020,
    "public.tf_example_privacy": example,
    "public.tf_mnist_tutorial_eps": before_2020,
    # one record takes part in one node of each level of the tree
    "public.tree_aggregation_eps_upper": lambda sigma, steps, delta: rdp.epsilon(
        (math.floor(math.log2(steps)) + 1) * loss.gaussian(sigma), delta
    ),
}


SLOW = {
    "public.opacus_noise_multiplier",
    "public.prv_eps_upper",
    "public.smallest_subsampled_gaussian_noise",
    "public.tf_example_privacy",
}
CASES = [
    pytest.param(block, case, marks=pytest.mark.slow if block["topic"] in SLOW else ())
    for block in BLOCKS
    for case in block["cases"]
]


@pytest.mark.parametrize(("block", "case"), CASES, ids=name)
def test_agrees_with_the_reference(block, case):
    answer = ADAPTERS[block["topic"]](**case["inputs"])
    if "upper_bound_only" not in block["tol"]:
        assert agrees(answer, case["expected"], block["tol"]), answer
    if "lower" in case or "upper" in case:
        assert case.get("lower", -math.inf) <= answer <= case.get("upper", math.inf)


def test_every_topic_has_cases():
    assert {block["topic"] for block in BLOCKS} == ADAPTERS.keys()
