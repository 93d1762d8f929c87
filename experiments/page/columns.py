"""What a table's columns are called for readers, with their units."""

from collections.abc import Sequence

# The heading of a column, or of the part of its name before _theory or _standard_error.
HEADINGS = {
    "accountant": "Accountant",
    "accuracy": "Accuracy, mean of the models",
    "accuracy_10": "A tenth of the models is below",
    "accuracy_90": "A tenth of the models is above",
    "advantage": "Advantage of the attacker",
    "advantage_bound": "Advantage that the guarantee allows",
    "audit": "Kind of audit",
    "bias": "Bias from clipping",
    "bound": "Bound that values are clipped to",
    "canary": "Kind of canary",
    "cells": "Possible cells",
    "clipped": "What is clipped",
    "columns": "Columns known",
    "confidence": "Confidence",
    "correct": "Guesses that were right",
    "d_star": "Dimension at which the laws cross, d*",
    "delta": "Delta",
    "delta_exact": "True delta at the epsilon claimed",
    "design": "Design",
    "detail": "Detail of the columns",
    "dimension": "Number of counts d",
    "epsilon": "Epsilon",
    "epsilon_assumed_gaussian": "Epsilon proven, assuming a Gaussian trade-off",
    "epsilon_claimed": "Epsilon claimed",
    "epsilon_counted": "Epsilon proven by counting",
    "epsilon_limit": "Most that so many trials can prove",
    "epsilon_proven": "Epsilon proven",
    "epsilon_true": "True epsilon",
    "error": "Error",
    "factor": "Largest record over the bound assumed",
    "false": "Cells of nobody or of several shown as one",
    "first_integer": "First whole k at which the challenger leads",
    "found": "Cells of one shown as one",
    "fpr": "False positive rate",
    "fraction": "Share of the answers in the bin",
    "guesses": "Guesses about canaries",
    "high": "Bin to",
    "incumbent": "Design that is overtaken",
    "k_star": "Crossover k*",
    "largest": "Patients in the fullest cell",
    "learning_rate": "Learning rate",
    "limit_assumed_gaussian": "Most provable, assuming a Gaussian trade-off",
    "limit_counted": "Most provable by counting",
    "lost": "Score lost by the choice",
    "low": "Bin from",
    "mae": "Mean absolute error",
    "measure": "Error measure",
    "mechanism": "Mechanism",
    "noise": "Noise",
    "noise_multiplier": "Noise multiplier",
    "num_queries": "Number of queries k",
    "occupied": "Cells with a patient",
    "outcomes": "Outcomes compared",
    "part": "Part of the figure",
    "patients": "Patients",
    "people": "People",
    "relative_rmse": "RMSE over the true count",
    "remedy": "Remedy",
    "right": "Chance of the right choice",
    "right_bound": "Most that the guarantee allows of it",
    "rmse": "RMSE",
    "runs": "Models trained",
    "sampler": "Sampler",
    "scale": "Noise scale",
    "share": "Share of answers that betray their data set",
    "share_betraying": "Share of the answers to 0 that are impossible on 1",
    "share_betraying_neighbour": "Share of the answers to 1 that are impossible on 0",
    "threshold": "Said to be in above",
    "tpr": "True positive rate",
    "tpr_bound": "True positive rate that the guarantee allows",
    "trials": "Simulated trials",
    "trials_at_least": "Trials below which counting cannot contradict",
    "trials_to_contradict": "Trials with which counting typically contradicts",
    "true_delta": "True delta of this scale",
    "unique": "Patients alone in their cell",
}

_RATE = "share"
UNITS = {  # of the same columns, by experiment
    "error_versus_epsilon": dict.fromkeys(("scale", "rmse", "mae"), "people")
    | {"relative_rmse": _RATE},
    "distributions": dict.fromkeys(("scale", "low", "high"), "people"),
    "budget": {"noise_multiplier": "times the sensitivity"},
    "crossover": {"rmse": "people"},
    "vector_queries": dict.fromkeys(("scale", "error"), "people"),
    "selection": {"scale": "patients", "lost": "patients", "right": "probability"},
    "local_versus_central": {"rmse": _RATE, "trials": "surveys"},
    "clipping": dict.fromkeys(("bound", "bias", "noise", "rmse"), "points"),
    "sensitivity_underestimated": {"scale": "bounds", "trials": "of each neighbour"},
    "gaussian_out_of_range": {"scale": "people", "trials": "of each neighbour"},
    "floating_point": {"scale": "times the sensitivity", "trials": "of each neighbour"},
    "membership": {"scale": "people", "threshold": "people", "trials": "each with and without"},
    "linkage": {"found": "cells", "false": "cells", "right": _RATE, "rmse": "patients"},
    "dp_sgd": {"accuracy": _RATE, "accuracy_10": _RATE, "accuracy_90": _RATE},
}
OTHERWISE = {  # a column that means something else in one experiment
    ("clipping", "noise"): "RMSE of the noise alone",
    ("linkage", "right"): "Of the ones shown, those that are",
}


def heading(experiment: str, column: str, columns: Sequence[str]) -> str:
    """What a column is called, with its unit.

    Args:
        experiment: its name.
        column: as the CSV calls it.
        columns: all of the table, since a simulated number stands beside its theory.
    """
    base = column.removesuffix("_standard_error").removesuffix("_theory")
    words = OTHERWISE.get((experiment, base), HEADINGS[base])
    if column.endswith("_standard_error"):
        words += ", standard error"
    elif column.endswith("_theory"):
        words += ", by theory"
    elif f"{column}_standard_error" in columns:
        words += ", simulated"
    unit = UNITS[experiment].get(base)
    return words if unit is None else f"{words} ({unit})"
