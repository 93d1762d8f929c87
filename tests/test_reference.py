"""Published and independently computed values, one adapter a topic.

Each block of tests/data holds a topic, its tolerance, the paper or package its numbers come from,
and cases of inputs and expected values; "none" stands for a value that does not exist.
"""

import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from dpjax import curves
from dpjax.accounting import basic, calibrate, exact, gaussian, gdp, loss, rdp, risk, zcdp
from dpjax.accounting._roots import bracketed_root
from dpjax.accounting.rdp import to_epsilon
from dpjax.crossover import crossover

FILES = ("crossover", "gaussian", "laplace", "published", "renyi", "risk", "sampled_laplace")
CLASSIC = functools.partial(rdp.epsilon, conversion="classic")
TANH = functools.partial(basic.advanced, form="tanh")
CONVERSIONS = {"mironov": "classic", "improved": "improved", "optimal": "optimal"}
ORDERS = {
    "int_2_64": np.arange(2.0, 65),
    "int_2_256": np.arange(2.0, 257),
    "tf": np.array([*np.arange(11, 110) / 10, *range(12, 64)]),
    "dp_accounting_default": np.array(
        [*np.arange(11, 110) / 10, *range(11, 64), 128, 256, 512, 1024]
    ),
}


def on_orders(orders, conversion):
    """The accountant that looks at these orders only."""

    def epsilon(privacy_loss, delta):
        curve = rdp.divergence(privacy_loss, orders)
        return rdp.to_epsilon(orders, curve, delta=delta, conversion=conversion).min()

    return epsilon


def least_noise(leak, k, eps, delta, accountant):
    return calibrate.noise_multiplier(lambda m: k * leak(m), eps, delta, accountant=accountant)


# ---- gaussian


def customary(eps, delta):
    sigma = gaussian.customary_noise_multiplier(eps, delta)
    actual = gaussian.customary_delta(eps, delta)
    return {
        "sigma_classic": sigma,
        "actual_delta": actual,
        "violates": bool(actual > delta),
        "sigma_classic_over_exact": sigma / gaussian.noise_multiplier(eps, delta),
    }


def different_gaussians(sigmas, delta):
    return exact.epsilon(sum((loss.gaussian(s) for s in sigmas), 0 * loss.gaussian(1.0)), delta)


# ---- renyi


def gaussian_optima(sigma, k, delta):
    queries = k * loss.gaussian(sigma)
    best = {c: rdp.optimum(queries, delta, conversion=c) for c in rdp.CONVERSIONS}
    return {
        **{f"{c}_real_orders": best[c].epsilon for c in rdp.CONVERSIONS},
        **{f"{c}_argmin_order": best[c].order for c in ("classic", "improved")},
        "exact": exact.epsilon(queries, delta),
    }


def gaussian_on_a_grid(sigma, k, delta, orders):
    orders = ORDERS[orders]
    curve = rdp.divergence(k * loss.gaussian(sigma), orders)
    answer = {}
    for conversion in ("classic", "improved"):
        epsilons = rdp.to_epsilon(orders, curve, delta=delta, conversion=conversion)
        answer[conversion] = epsilons.min()
        answer[f"{conversion}_order"] = orders[epsilons.argmin()]
    return answer


def conversions(convert, names):
    """The named conversions at one order."""
    return lambda order, rdp, **target: {
        name: convert(order, rdp, **target, conversion=CONVERSIONS[name]) for name in names
    }


def zcdp_epsilon(rho, delta):
    return {
        "bun_steinke": zcdp.epsilon(rho, delta=delta, conversion="classic"),
        "cks2020": zcdp.epsilon(rho, delta=delta),
        "cks2020_order": rdp.optimum(loss.gaussian(1 / np.sqrt(2 * rho)), delta).order,
    }


def zcdp_delta(rho, eps):
    classic = zcdp.delta(rho, epsilon=eps, conversion="classic")
    return {"bun_steinke": classic, "cks2020": zcdp.delta(rho, epsilon=eps)}


def laplace_optimum(b, k, delta):
    best = rdp.optimum(k * loss.laplace(b), delta)
    return {
        "basic": basic.epsilon(k * loss.laplace(b), delta),
        "rdp_improved_real_orders": best.epsilon,
        "argmin_order": best.order,
    }


# ---- crossover


def k_star(accountant, eps, delta, up_to=1000):
    challenger = curves.gaussian(eps, delta, accountant=accountant)
    return crossover(curves.laplace_basic(eps), challenger, up_to=up_to).k_star


def k_star_on_grids(eps, delta):
    answer = {}
    for conversion, grid in (
        ("classic", "int_2_256"),
        ("classic", "int_2_64"),
        ("improved", "int_2_256"),
    ):
        accountant = on_orders(ORDERS[grid], conversion)
        if accountant(loss.gaussian(np.inf), delta) >= eps:  # out of reach of any noise
            with pytest.raises(ValueError, match="expected a target that some noise meets"):
                k_star(accountant, eps, delta)
            answer[f"{conversion}_{grid}"] = None
        else:
            answer[f"{conversion}_{grid}"] = k_star(accountant, eps, delta)
    return answer


def advanced_laplace(eps, delta):
    """A law of real k that no accountant has: the formulas, solved for the epsilon of one query."""
    challenger = curves.gaussian(eps, delta, accountant=exact.epsilon)
    answer = {}
    for name, drift in (("dr", np.expm1), ("tanh", lambda e: np.tanh(e / 2))):

        def error(k, drift=drift):
            def excess(e):
                return np.sqrt(2 * k * np.log(1 / delta)) * e + k * e * drift(e) - eps

            low, high = np.zeros(np.shape(k)), np.full(np.shape(k), eps)
            e0, _ = bracketed_root(excess, low, high, excess(low), excess(high), 0.0)
            return np.sqrt(2) / e0

        incumbent = curves.ErrorCurve(error, "rmse", True)
        ratio = incumbent(np.array([1.0, 1e16])) / challenger(np.array([1.0, 1e16]))
        answer[name] = {
            "k_star": crossover(incumbent, challenger, up_to=300).k_star,
            "laplace_over_gauss_k1": ratio[0],
            "laplace_over_gauss_inf": ratio[1],
        }
    return answer


def first_integers(eps, delta, accountant, up_to):
    incumbent = curves.calibrated("laplace", eps, delta, accountant=accountant)
    answer = {}
    for name, rule in (("exact", exact.epsilon), ("classic_rdp", CLASSIC)):
        challenger = curves.gaussian(eps, delta, accountant=rule)
        answer[name] = crossover(incumbent, challenger, up_to=up_to).first_integer
    return answer


def basic_or_advanced(privacy_loss, delta):
    answers = basic.epsilon(privacy_loss, delta), basic.advanced(privacy_loss, delta)
    return np.minimum(*answers)


# ---- risk


def central_limit(batch, n, sigma, epochs, delta):
    root_of_steps = np.sqrt(epochs * n / batch)  # not a whole number of steps in every case
    mus = {
        "poisson": gdp.clt_approximation_poisson(
            sampling_probability=batch / n, noise_multiplier=sigma, count=1
        )
        * root_of_steps,
        "uniform": gdp.clt_approximation_uniform(
            sampling_probability=batch / n, noise_multiplier=sigma, count=1
        )
        * root_of_steps,
    }
    return {
        **{f"mu_{name}": mu for name, mu in mus.items()},
        **{f"eps_{name}": gaussian.epsilon(delta, mu=mu) for name, mu in mus.items()},
    }


def accuracy_of_guarantee(eps, delta):
    tpr = 1 - risk.tradeoff_of_guarantee(0.001, epsilon=eps, delta=delta)
    return {
        "max_accuracy_balanced": (1 + risk.advantage_of_guarantee(eps, delta)) / 2,
        "max_ppv_at_fpr_0.001": risk.positive_predictive_value(fpr=0.001, tpr=tpr),
    }


def gaussian_beside_guarantee(eps, delta, fpr):
    sigma = gaussian.noise_multiplier(eps, delta)
    return {
        "sigma": sigma,
        "tpr_exact_gaussian": 1 - risk.tradeoff_of_gaussian(fpr, mu=1 / sigma),
        "tpr_adp_bound": 1 - risk.tradeoff_of_guarantee(fpr, epsilon=eps, delta=delta),
    }


def fixed_point(mu):
    fpr = (1 - gaussian.delta(0, mu=mu)) / 2  # where the advantage is
    np.testing.assert_allclose(risk.tradeoff_of_gaussian(fpr, mu=mu), fpr, rtol=1e-12)
    return fpr


# ---- published


def published_central_limit(n, batch, sigma, epochs, delta, sampling):
    return central_limit(batch, n, sigma, epochs, delta)[f"eps_{sampling}"]


def smallest_gaussian_noise(eps, delta, k, sensitivity):
    return sensitivity * least_noise(loss.gaussian, k, eps, delta, exact.epsilon)


# ---- sampled_laplace


def sampled_laplace_delta(b, q, eps):
    (leak, _), *_ = loss.sampled_laplace(q, b).terms
    answer = {}
    for direction in ("remove", "add"):
        log_delta = leak.log_delta_once(np.asarray(float(eps)), direction)
        assert log_delta is not None
        answer[direction] = float(np.exp(log_delta))
    np.testing.assert_allclose(exact.delta(loss.sampled_laplace(q, b), eps), max(answer.values()))
    return {**answer, "max": max(answer.values())}


def one_direction(b, sensitivity, q, adjacency, eps):
    direction = {"REM": "remove", "ADD": "add"}[adjacency]
    return sampled_laplace_delta(b / sensitivity, q, eps)[direction]


ADAPTERS = {
    "gaussian.delta": lambda eps, sigma: gaussian.delta(eps, mu=1 / sigma),
    "gaussian.log_delta": lambda eps, sigma: gaussian.log_delta(eps, mu=1 / sigma),
    "gaussian.eps": lambda delta, sigma: gaussian.epsilon(delta, mu=1 / sigma),
    "gaussian.sigma": lambda eps, delta: gaussian.noise_multiplier(eps, delta),
    "gaussian.compose_eps": lambda sigma, k, delta: exact.epsilon(k * loss.gaussian(sigma), delta),
    "gaussian.compose_sigma": lambda eps, delta, k: least_noise(
        loss.gaussian, k, eps, delta, exact.epsilon
    ),
    "gaussian.compose_hetero_eps": different_gaussians,
    "gaussian.classic": customary,
    "gaussian.classic_threshold_eps": gaussian.customary_unsafe_epsilon,
    "laplace.rdp": lambda b, order: rdp.divergence(loss.laplace(b), float(order)),
    "laplace.compose_eps_rdp": laplace_optimum,
    "laplace.basic_rmse": lambda k, eps_total: curves.laplace_basic(eps_total)(k),
    "rdp.gaussian_eps": gaussian_optima,
    "rdp.gaussian_eps_grid": gaussian_on_a_grid,
    "rdp.convert": conversions(rdp.to_epsilon, ("mironov", "improved", "optimal")),
    "rdp.convert_delta": lambda eps, **known: conversions(rdp.to_delta, ("mironov", "improved"))(
        **known, epsilon=eps
    ),
    "zcdp.eps": zcdp_epsilon,
    "zcdp.delta": zcdp_delta,
    "crossover.classic_rdp": functools.partial(k_star, CLASSIC),
    "crossover.zcdp": functools.partial(k_star, CLASSIC),
    "crossover.improved_rdp": functools.partial(k_star, rdp.epsilon),
    "crossover.exact": functools.partial(k_star, exact.epsilon),
    "crossover.rdp_order_grids": k_star_on_grids,
    "crossover.advanced_laplace_vs_exact": advanced_laplace,
    "crossover.int_basic_or_advanced": lambda eps, delta: first_integers(
        eps, delta, basic_or_advanced, up_to=40
    ),
    "mia.adp_accuracy": accuracy_of_guarantee,
    "mia.adp_advantage": lambda eps, delta: risk.advantage_of_guarantee(eps, delta),
    "mia.adp_tpr": lambda eps, delta, fpr: (
        1 - risk.tradeoff_of_guarantee(fpr, epsilon=eps, delta=delta)
    ),
    "mia.gaussian_vs_adp_tpr": gaussian_beside_guarantee,
    "mia.gdp_advantage": lambda mu: gaussian.delta(0, mu=mu),
    "mia.laplace_advantage": lambda b: (
        1 - 2 * risk.tradeoff_of_laplace(np.exp(-1 / b / 2) / 2, noise_multiplier=b)
    ),
    "tradeoff.gaussian": lambda mu, alpha: risk.tradeoff_of_gaussian(alpha, mu=mu),
    "tradeoff.gaussian_fixed_point": fixed_point,
    "tradeoff.laplace": lambda b, alpha: risk.tradeoff_of_laplace(alpha, noise_multiplier=b),
    "subsampled_laplace.delta": sampled_laplace_delta,
    "subsampled_laplace.pure_eps": lambda b, q, at: exact.epsilon(loss.sampled_laplace(q, b), 0),
    "subsampled_laplace.rdp": lambda b, q, order: rdp.divergence(
        loss.sampled_laplace(q, b), float(order)
    ),
    "public.pld_laplace_delta": one_direction,
    "public.pld_sampled_laplace_eps": lambda b, q, k, delta: exact.epsilon(
        k * loss.sampled_laplace(q, b), delta
    ),
    "sgm.gdp_clt": central_limit,
    "public.gaussian_rdp": lambda order, sigma: rdp.divergence(loss.gaussian(sigma), order),
    "public.gdp_clt": published_central_limit,
    "public.laplace_pure_eps": lambda eps, count, delta: on_orders(np.array([1e10]), "improved")(
        count * loss.laplace(1 / eps), delta
    ),
    "public.opendp_zcdp_delta": lambda rho, eps: zcdp.delta(rho, epsilon=eps),
    "public.opendp_zcdp_eps": lambda rho, delta: zcdp.epsilon(rho, delta=delta),
    "public.prv_gaussian_delta": lambda eps, sigma, k: gaussian.delta(eps, mu=np.sqrt(k) / sigma),
    "public.rdp_gaussian_sigma_for_1_1e-6": lambda sigma, delta, orders: rdp.epsilon(
        loss.gaussian(sigma), delta
    ),
    "public.rdp_to_eps": lambda rdp, orders, delta: to_epsilon(
        np.arange(2.0, 33), rdp, delta=delta
    ).min(),
    "public.smallest_gaussian_noise": smallest_gaussian_noise,
}


CALIBRATED = {
    "crossover.classic_rdp",
    "crossover.zcdp",
    "crossover.improved_rdp",
    "crossover.int_basic_or_advanced",
}


def read():
    for file in FILES:
        for block in json.loads((Path(__file__).parent / "data" / f"{file}.json").read_text()):
            for case in block["cases"]:
                yield block, case


def name(value):
    """A test's name: the topic and the inputs."""
    if "topic" in value:
        return value["topic"]
    return ",".join(f"{k}={v}" for k, v in value["inputs"].items()).replace(" ", "")


def agrees(actual, expected, tol):
    """Whether an answer has the expected structure and numbers."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict)
        assert actual.keys() == expected.keys()
        return all(agrees(actual[k], expected[k], tol) for k in expected)
    if expected == "none":
        return actual is None
    if isinstance(expected, bool):
        return actual is expected
    if actual is None:
        return False
    allowed = tol.get("rel", 0) * abs(expected) + tol.get("abs", 0)
    return math.isfinite(actual) and abs(float(actual) - expected) <= allowed


def is_slow(topic, inputs):
    """Whether a case is one of many that calibrate; those at epsilon 1 are not."""
    return topic in CALIBRATED and inputs["eps"] != 1


CASES = [
    pytest.param(
        block, case, marks=pytest.mark.slow if is_slow(block["topic"], case["inputs"]) else ()
    )
    for block, case in read()
]


@pytest.mark.parametrize(("block", "case"), CASES, ids=name)
def test_agrees_with_the_reference(block, case):
    answer = ADAPTERS[block["topic"]](**case["inputs"])
    assert agrees(answer, case["expected"], block["tol"]), answer


def test_every_adapter_has_cases_and_every_case_an_adapter():
    assert {block["topic"] for block, _ in read()} == ADAPTERS.keys()
