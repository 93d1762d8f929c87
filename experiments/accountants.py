"""The contestants of the accounting benchmark: the same question put to each package.

Each maker loads its package and gives `answer(*columns) -> answers`: arrays of equal length in, one
number for each row out. Packages that answer one question at a time get them one by one, by the
call that their documentation names, at their default resolution unless the method says otherwise.
"""

import contextlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from experiments import article

DELTA = article.DELTA
Answer = Callable[..., np.ndarray]


class Contestant(NamedTuple):
    """One package with one method for one task.

    Attributes:
        package: its name on the package index.
        method: what is called, for the table.
        make: loads the package, or raises ImportError.
    """

    package: str
    method: str
    make: Callable[[], Answer]

    @property
    def version(self) -> str:
        """The installed version, empty where it is not."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return ""


def one_by_one(answer: Callable[..., Any]) -> Answer:
    """A function of numbers as one of columns; NaN where it raises an error."""

    def answers(*columns: np.ndarray) -> np.ndarray:
        found = np.full(len(columns[0]), np.nan)
        for i, row in enumerate(zip(*columns, strict=True)):
            with contextlib.suppress(ArithmeticError, RuntimeError, ValueError):
                found[i] = float(answer(*(c.item() for c in row)))
        return found

    return answers


# ---- dpjax: all rows at once


def dpjax_exact() -> Answer:
    from dpjax.accounting import exact, loss

    return lambda q, s, k: exact.epsilon(k * _step(loss, q, s), DELTA)


def dpjax_renyi() -> Answer:
    from dpjax.accounting import loss, rdp

    return lambda q, s, k: rdp.epsilon(k * _step(loss, q, s), DELTA)


def _step(loss: ModuleType, q: np.ndarray, s: np.ndarray) -> Any:
    """One step: a plain Gaussian where everybody takes part."""
    return loss.gaussian(s) if np.all(q == 1) else loss.sampled_gaussian(q, s)


def dpjax_crossover(rule: str) -> Callable[[], Answer]:
    def make() -> Answer:
        from dpjax import curves
        from dpjax.accounting import exact, rdp
        from dpjax.crossover import crossover_map

        accountant = {"exact": exact.epsilon, "renyi": rdp.epsilon}[rule]

        def k_star(epsilon: np.ndarray) -> np.ndarray:
            challenger = curves.gaussian(epsilon, DELTA, accountant=accountant)
            return crossover_map(curves.laplace_basic(epsilon), challenger, up_to=100).k_star

        return k_star

    return make


# ---- dp-accounting


def google_distribution() -> Answer:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return one_by_one(
        lambda q, s, k: (
            pld.from_gaussian_mechanism(s, sampling_prob=q)
            .self_compose(k)
            .get_epsilon_for_delta(DELTA)
        )
    )


def google_renyi() -> Answer:
    from dp_accounting import dp_event, rdp

    def epsilon(q: float, s: float, k: int) -> float:
        accountant = rdp.RdpAccountant()
        accountant.compose(dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(s)), k)
        return accountant.get_epsilon(DELTA)

    return one_by_one(epsilon)


def google_noise() -> Answer:
    from dp_accounting.pld import accountant, common

    return noise_to_k_star(
        lambda epsilon: accountant.get_smallest_gaussian_noise(
            common.DifferentialPrivacyParameters(epsilon, DELTA), 1, 1.0
        )
    )


# ---- Opacus


def opacus_renyi() -> Answer:
    from opacus.accountants import RDPAccountant  # type: ignore[import-not-found]

    return one_by_one(_with_history(RDPAccountant))


def opacus_random_variable() -> Answer:
    from opacus.accountants import PRVAccountant  # type: ignore[import-not-found]

    return one_by_one(_with_history(PRVAccountant))


def riskcal_dots() -> Answer:
    from riskcal.accountants import CTDAccountant  # type: ignore[import-not-found]

    return one_by_one(_with_history(CTDAccountant))


def _with_history(accountant: type) -> Callable[[float, float, int], float]:
    """The history written at once: a call of `step` for each would be slower."""

    def epsilon(q: float, s: float, k: int) -> float:
        fresh = accountant()
        fresh.history = [(s, q, k)]
        return fresh.get_epsilon(delta=DELTA)

    return epsilon


def opacus_noise(mechanism: str) -> Callable[[], Answer]:
    def make() -> Answer:
        from opacus.accountants.utils import get_noise_multiplier  # type: ignore[import-not-found]

        return noise_to_k_star(
            lambda epsilon: get_noise_multiplier(
                target_epsilon=epsilon,
                target_delta=DELTA,
                sample_rate=1.0,
                steps=1,
                accountant=mechanism,
            )
        )

    return make


# ---- prv-accountant


def random_variable(error: float) -> Callable[[], Answer]:
    def make() -> Answer:
        from prv_accountant.dpsgd import DPSGDAccountant  # type: ignore[import-not-found]

        def epsilon(q: float, s: float, k: int) -> float:
            accountant = DPSGDAccountant(s, q, k, eps_error=error, delta_error=DELTA / 1000)
            _, _, upper = accountant.compute_epsilon(DELTA, k)
            return upper

        return one_by_one(epsilon)

    return make


def random_variable_of_gaussian() -> Answer:
    from prv_accountant import GaussianMechanism, PRVAccountant  # type: ignore[import-not-found]

    def epsilon(q: float, s: float, k: int) -> float:
        accountant = PRVAccountant(
            GaussianMechanism(s), max_self_compositions=k, eps_error=0.1, delta_error=DELTA / 1000
        )
        _, _, upper = accountant.compute_epsilon(DELTA, k)
        return upper

    return one_by_one(epsilon)


# ---- autodp


def autodp_gaussian() -> Answer:
    from autodp.mechanism_zoo import GaussianMechanism  # type: ignore[import-not-found]
    from autodp.transformer_zoo import ComposeGaussian  # type: ignore[import-not-found]

    def epsilon(q: float, s: float, k: int) -> float:
        return ComposeGaussian()([GaussianMechanism(s)], [k]).get_approxDP(DELTA)

    return one_by_one(epsilon)


def autodp_renyi() -> Answer:
    from autodp.mechanism_zoo import GaussianMechanism  # type: ignore[import-not-found]
    from autodp.transformer_zoo import AmplificationBySampling, Composition  # type: ignore[import-not-found]

    def epsilon(q: float, s: float, k: int) -> float:
        sample = AmplificationBySampling(PoissonSampling=True)
        step = sample(GaussianMechanism(s), q, improved_bound_flag=True)
        return Composition()([step], [k]).get_approxDP(DELTA)

    return one_by_one(epsilon)


def autodp_noise() -> Answer:
    from autodp.calibrator_zoo import ana_gaussian_calibrator  # type: ignore[import-not-found]
    from autodp.mechanism_zoo import ExactGaussianMechanism  # type: ignore[import-not-found]

    calibrate = ana_gaussian_calibrator()
    return noise_to_k_star(
        lambda epsilon: calibrate(ExactGaussianMechanism, epsilon, DELTA).params["sigma"]
    )


# ---- packages in Rust


def opake() -> Answer:
    native = _compiled("opake-accounting", "opake_accounting")
    settings = native.DiscretizationConfig()

    def epsilon(q: float, s: float, k: int) -> float:
        step = native.gaussian_pld(s, settings)
        step = step if q == 1 else native.poisson_pld(step, q)
        return step.self_compose(k).epsilon_at(DELTA)

    return one_by_one(epsilon)


def _compiled(package: str, name: str) -> Any:
    """A package's extension module by itself; its Python layer does not load on every 3.11."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise ImportError(f"No module named {package!r}") from error
    path = next(file.locate() for file in files if file.name.endswith((".so", ".pyd")))
    spec = importlib.util.spec_from_file_location(name, str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def accelerator() -> Answer:
    from dp_accelerator import DPSGDAccountant  # type: ignore[import-not-found]

    def epsilon(q: float, s: float, k: int) -> float:
        accountant = DPSGDAccountant(s, 1, 1)
        accountant.q = q  # it takes whole batches of whole data sets, and keeps their ratio
        return accountant.get_epsilon(k, DELTA)

    return one_by_one(epsilon)


# ----


def noise_to_k_star(noise_multiplier: Callable[[float], float]) -> Answer:
    """The crossing of sqrt(2) k / epsilon and sqrt(k) sigma, sigma being for one query."""
    return one_by_one(lambda epsilon: (epsilon * float(noise_multiplier(epsilon))) ** 2 / 2)


DPJAX_EXACT = Contestant("dpjax", "exact", dpjax_exact)
DPJAX_RENYI = Contestant("dpjax", "rdp, real orders", dpjax_renyi)
RENYI = (
    Contestant("dp-accounting", "RdpAccountant", google_renyi),
    Contestant("opacus", "RDPAccountant", opacus_renyi),
    Contestant("autodp", "AmplificationBySampling", autodp_renyi),
    Contestant("dp-accelerator", "DPSGDAccountant", accelerator),
)
EXACT = (
    Contestant("dp-accounting", "connect the dots", google_distribution),
    Contestant("riskcal", "CTDAccountant", riskcal_dots),
    Contestant("opacus", "PRVAccountant", opacus_random_variable),
    Contestant("prv-accountant", "eps_error 0.1", random_variable(0.1)),
    Contestant("opake-accounting", "compiled module", opake),
)
CONTESTANTS = {
    "gaussian": (
        DPJAX_EXACT,
        Contestant("dp-accounting", "connect the dots", google_distribution),
        Contestant("autodp", "ComposeGaussian", autodp_gaussian),
        Contestant("riskcal", "CTDAccountant", riskcal_dots),
        Contestant("prv-accountant", "eps_error 0.1", random_variable_of_gaussian),
        Contestant("opake-accounting", "compiled module", opake),
    ),
    "training_renyi": (DPJAX_RENYI, *RENYI),
    "training_exact": (DPJAX_EXACT, *EXACT),
    "crossover": (
        Contestant("dpjax", "exact", dpjax_crossover("exact")),
        Contestant("dpjax", "rdp, real orders", dpjax_crossover("renyi")),
        Contestant("dp-accounting", "get_smallest_gaussian_noise", google_noise),
        Contestant("autodp", "ana_gaussian_calibrator", autodp_noise),
        Contestant("opacus", "RDPAccountant", opacus_noise("rdp")),
        Contestant("opacus", "PRVAccountant", opacus_noise("prv")),
    ),
    "one_loss": (DPJAX_EXACT, DPJAX_RENYI, *EXACT, *RENYI),
}
