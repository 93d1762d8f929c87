"""Ranked designs: the error of each at a total budget, or the least epsilon at a tolerable error.

Both directions read the same accountants, so each undoes the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpjax import _validate
from dpjax.accounting import calibrate, rdp
from dpjax.plan import split
from dpjax.plan.designs import DESIGNS, Design
from dpjax.plan.measures import Measure, half_width
from dpjax.plan.workload import Workload

EPSILONS = (1e-6, 300.0)
"""Budgets planned for: below, noise drowns any answer; above, everything is revealed."""

_DIGITS = 12.0  # between a tolerable error and a sensitivity
_MOST_STEP = 3.0  # of the logarithm of all scales, on the way to a budget


class ImpossibleError(ValueError):
    """A wish that no design fulfils; the message has the reason and the nearest possible one."""


@dataclass(frozen=True)
class Option:
    """One design for the whole workload.

    Attributes:
        design: mechanism and accountant.
        scales: of the noise, one for each kind of query, in its units.
        epsilon: what the accountant proves of them, an upper bound of the true one.
        error: over all published numbers, in the plan's measure.
        errors: of each kind of query.
    """

    design: Design
    scales: np.ndarray
    epsilon: float
    error: float
    errors: np.ndarray

    def half_widths(self, confidence: float, *, answers: int = 1) -> np.ndarray:
        """How far an answer of each kind of query is from the truth at most, for its readers.

        Args:
            confidence: in (0, 1), the chance that it holds.
            answers: for so many answers at once (their noise is independent).

        Returns:
            Half-widths, (queries,): answer - truth is within plus or minus these.
        """
        _validate.open_probability(confidence=confidence)
        each = float(np.exp(np.log(confidence) / _validate.positive_count(answers=answers)))
        return half_width(self.design.mechanism, self.scales, min(each, 1 - 2**-53))


@dataclass(frozen=True)
class Plan:
    """Designs for a workload, the best one first.

    Attributes:
        workload: as asked.
        delta: of the whole release.
        measure: of the error.
        wished: "epsilon" (the least error wins) or "error" (the least epsilon wins).
        target: the epsilon or the error that was wished.
        options: ranked; never empty.
        left_out: designs that do not apply, each with the reason.
    """

    workload: Workload
    delta: float
    measure: Measure
    wished: str
    target: float
    options: tuple[Option, ...]
    left_out: tuple[tuple[Design, str], ...]

    @property
    def best(self) -> Option:
        """The winner."""
        return self.options[0]

    @property
    def epsilon(self) -> float:
        """Of the whole release: the budget, or the least one for the tolerable error."""
        return self.target if self.wished == "epsilon" else self.best.epsilon

    def of(self, name: str) -> Option:
        """The option of a design by name, such as "laplace basic".

        Raises:
            KeyError: the design is not among the options.
        """
        return {option.design.name: option for option in self.options}[name]


def at_budget(
    workload: Workload,
    *,
    epsilon: float,
    delta: float,
    measure: str = "rmse",
    level: float | None = None,
    designs: Sequence[Design] = DESIGNS,
) -> Plan:
    """The error of each design at a total budget, the least first.

    Args:
        workload: what is asked; each design splits the budget over it in the best way.
        epsilon: of the whole release, in EPSILONS.
        delta: of the whole release, in [0, 1); at 0 only Laplace noise applies.
        measure: "rmse", "mae" or "quantile" (of the absolute error).
        level: in (0, 1): which quantile, for measure "quantile" only.
        designs: among which to choose.

    Returns:
        Plan: each option keeps within the budget, from the private side. Over unequal queries its
        error is the weighted root mean square over all published numbers.

    Raises:
        ValueError: an argument outside its range.
        ImpossibleError: no design applies, or none keeps the budget.

    >>> from dpjax.plan.workload import equal
    >>> for option in at_budget(equal(3), epsilon=1.0, delta=0.0).options[:1]:
    ...     print(option.design.name, option.scales, round(option.error, 3))
    laplace basic [3.] 4.243
    """
    budget = one_number(epsilon=_validate.positive(epsilon=epsilon))
    if not EPSILONS[0] <= budget <= EPSILONS[1]:
        raise ImpossibleError(
            f"epsilon {budget:g}: no plan is made for it, since {_why_out(budget)}; nearest"
            f" possible: epsilon {np.clip(budget, *EPSILONS):g}"
        )
    spend = _delta(delta)
    measured = Measure(measure, level)

    def option(design: Design) -> Option:
        def aim(of: Workload) -> _Aim:
            def spent(scales: np.ndarray) -> np.ndarray:
                return np.asarray(design.accountant(design.loss(of, scales), spend))

            def on_budget(scales: np.ndarray) -> np.ndarray:
                return scales * _factor(design, of, scales, budget, spend)

            def nearer(scales: np.ndarray, epsilon: float, slope: float) -> np.ndarray:
                step = np.log(epsilon / budget) * epsilon / slope  # Newton's, in logarithms
                return scales * np.exp(np.clip(step, -_MOST_STEP, _MOST_STEP))

            def error(scales: np.ndarray) -> float:
                return measured.overall(of, design.mechanism, on_budget(scales))

            return _Aim(spent, on_budget, nearer, error)

        return _option(design, workload, measured, aim)

    return _plan(workload, spend, measured, "epsilon", budget, option, designs)


def at_error(
    workload: Workload,
    *,
    error: float,
    delta: float,
    measure: str = "rmse",
    level: float | None = None,
    designs: Sequence[Design] = DESIGNS,
) -> Plan:
    """The least epsilon of each design for a tolerable error, the least first.

    "Within 5, 95 % of the time" is error 5 with measure "quantile" and level 0.95.

    Args:
        workload: what is asked.
        error: tolerable, in the answers' units, finite and above 0; over unequal queries the
            weighted root mean square over all published numbers.
        delta: of the whole release, in [0, 1); at 0 only Laplace noise applies.
        measure: "rmse", "mae" or "quantile" (of the absolute error).
        level: in (0, 1): which quantile, for measure "quantile" only.
        designs: among which to choose.

    Returns:
        Plan: each option's epsilon is an upper bound of the true one. `at_budget` with it gives the
        error back; of discrete noise a quantile is whole, and at most the one wished.

    Raises:
        ValueError: an argument outside its range.
        ImpossibleError: no design applies, or the least epsilon is above those of EPSILONS.

    >>> from dpjax.plan.workload import equal
    >>> found = at_error(equal(20), error=5.0, delta=1e-6, measure="quantile", level=0.95)
    >>> print(found.best.design.name, round(found.epsilon, 3))
    gaussian exact 9.388
    """
    tolerated = one_number(error=_validate.positive(error=error))
    spend = _delta(delta)
    measured = Measure(measure, level)

    def option(design: Design) -> Option:
        def aim(of: Workload) -> _Aim:
            def spent(scales: np.ndarray) -> np.ndarray:
                leak = design.loss(of, scales)
                if design.for_equal and float(rdp.epsilon(leak, spend)) > 2 * EPSILONS[1]:
                    return np.asarray(np.inf)  # far beyond, where slow accountants are slowest
                return np.asarray(design.accountant(leak, spend))

            def reach(scales: np.ndarray) -> np.ndarray:
                return measured.reach(of, design.mechanism, scales, tolerated)

            def nearer(scales: np.ndarray, epsilon: float, slope: float) -> np.ndarray:
                return reach(scales)

            def least(scales: np.ndarray) -> float:
                return float(spent(reach(scales)))

            return _Aim(spent, reach, nearer, least)

        return _option(design, workload, measured, aim)

    found = _plan(workload, spend, measured, "error", tolerated, option, designs)
    if found.epsilon > EPSILONS[1]:
        wish = {"delta": delta, "measure": measure, "level": level, "designs": designs}
        least = at_budget(workload, epsilon=EPSILONS[1], **wish).best.error
        raise ImpossibleError(
            f"{measured.named(tolerated)} takes epsilon {found.epsilon:.6g}, and"
            f" {_why_out(found.epsilon)}; nearest possible: {measured.named(least)}"
        )
    return found


class _Aim(NamedTuple):
    """What a design is to reach on a workload, for scales of shape (queries,)."""

    spent: Callable[[np.ndarray], np.ndarray]  # epsilon, also of (queries, *grid)
    on_target: Callable[[np.ndarray], np.ndarray]  # all times the factor that meets the wish
    nearer: Callable[[np.ndarray, float, float], np.ndarray]  # a step there: see `split.searched`
    cost: Callable[[np.ndarray], float]  # once the wish is met


def _option(
    design: Design, workload: Workload, measure: Measure, aim: Callable[[Workload], _Aim]
) -> Option:
    """A design with the best split."""
    whole = aim(workload)
    if design.power is not None or workload.is_equal:
        scales = split.closed_form(workload, design.power or 1.0)
    else:
        few = split.grouped(workload)
        spent, _, nearer, cost = aim(few)
        scales = split.ungrouped(workload, few, split.searched(few, nearer, spent, cost))
    scales = whole.on_target(scales)
    overall = measure.overall(workload, design.mechanism, scales)
    each = np.asarray(measure.of(design.mechanism, scales))
    return Option(design, scales, float(whole.spent(scales)), overall, each)


def _factor(
    design: Design, workload: Workload, scales: np.ndarray, budget: float, delta: float
) -> float:
    """The least factor on the scales that keeps within the budget."""
    if design.name == "laplace basic":  # 1 / factor times what these scales spend
        factor = float(design.accountant(design.loss(workload, scales), delta)) / budget
        while float(design.accountant(design.loss(workload, scales * factor), delta)) > budget:
            factor = float(np.nextafter(factor, np.inf))
        return factor

    def family(factor: np.ndarray):
        return design.loss(workload, np.multiply.outer(scales, factor))

    return float(calibrate.noise_multiplier(family, budget, delta, accountant=design.accountant))


def _plan(
    workload: Workload,
    delta: float,
    measure: Measure,
    wished: str,
    target: float,
    option: Callable[[Design], Option],
    designs: Sequence[Design],
) -> Plan:
    """All designs that apply, ranked."""
    sensitivities = workload.each("sensitivity")
    if wished == "error" and not np.all(
        np.abs(np.log10(target) - np.log10(sensitivities)) <= _DIGITS
    ):
        raise ImpossibleError(
            f"{measure.named(target)} is more than {_DIGITS:g} digits from a sensitivity; nearest"
            f" possible: {np.clip(target, *_within(sensitivities)):g}"
        )
    options, left_out = [], []
    for design in designs:
        reason = design.why_not(workload, delta)
        if reason is None:
            try:
                found = option(design)
            except ValueError:
                reason = "no noise of any scale fulfils the wish"
            else:
                numbers = (found.epsilon, found.error, *found.scales)
                if np.all(np.isfinite(numbers)) and np.all(found.scales > 0):
                    options.append(found)
                    continue
                reason = f"takes an epsilon above {EPSILONS[1]:g}"
        left_out.append((design, reason))
    if not options:
        reasons = "; ".join(f"{design.name} {reason}" for design, reason in left_out)
        nearest = "laplace noise, or a delta above 0" if delta == 0 else "a wish nearer to 1"
        raise ImpossibleError(
            f"{wished} {target:g} at delta {delta:g}: no design does it ({reasons}); nearest"
            f" possible: {nearest}"
        )

    def rank(found: Option) -> float:
        value = found.error if wished == "epsilon" else found.epsilon
        return float(f"{value:.9e}")

    return Plan(
        workload, delta, measure, wished, target, tuple(sorted(options, key=rank)), tuple(left_out)
    )


def _within(sensitivities: np.ndarray) -> tuple[float, float]:
    """The tolerable errors that are near enough to all sensitivities."""
    return float(sensitivities.max()) / 10**_DIGITS, float(sensitivities.min()) * 10**_DIGITS


def _why_out(epsilon: float) -> str:
    """What is wrong with an epsilon beyond EPSILONS."""
    return "it protects nobody" if epsilon > 1 else "its noise drowns any answer"


def _delta(delta: float) -> float:
    """A single delta in [0, 1)."""
    value = one_number(delta=_validate.probability(delta=delta))
    if value == 1:
        raise ValueError("delta = 1: expected a number in [0, 1); at 1 everything may leak")
    return value


def one_number(**argument: np.ndarray) -> float:
    """A single number."""
    ((name, value),) = argument.items()
    if value.ndim:
        raise ValueError(f"{name} = array of shape {value.shape}: expected one number")
    return float(value)
