"""A plan as a picture, on request; matplotlib is loaded only here."""

from pathlib import Path
from typing import Any

import click

from dpjax.cli.output import several
from dpjax.plan import Plan

_COLOURS = {"laplace": "#dd7a1c", "gaussian": "#173f70"}


def draw_plan(plan: Plan, path: Path) -> None:
    """Write a dot for each design on a log axis, the best one on top."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogLocator, NullLocator
    except ImportError as error:
        raise click.UsageError("--plot needs matplotlib: pip install matplotlib") from error
    by_error = plan.wished == "epsilon"
    names = [option.design.name.replace("_", " ") for option in plan.options]
    values = [option.error if by_error else option.epsilon for option in plan.options]
    colours = [_COLOURS[option.design.mechanism.split("_")[-1]] for option in plan.options]
    with rc_context({"font.size": 9, "svg.hashsalt": "dpjax", "axes.axisbelow": True}):
        figure = Figure(figsize=(7.0, 1.1 + 0.3 * len(names)), dpi=150, layout="constrained")
        ax = figure.subplots()
        ax.scatter(values, names, c=colours, s=60, zorder=3)
        for name, value in zip(names, values, strict=True):
            place: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
            weight = "bold" if name == names[0] else "normal"
            ax.annotate(f"{value:.4g}", (value, name), (9, 0), fontweight=weight, **place)
        ax.invert_yaxis()
        ax.set_xscale("log")
        span = max(values) / min(values)
        ax.set_xlim(min(values) / (1.1 * span**0.05), max(values) * 1.4 * span**0.12)
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if span < 1e3 else (1,)))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.xaxis.set_minor_locator(NullLocator())
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#e6e8eb")
        what = f"{plan.measure.name} of an answer" if by_error else "least ε"
        wish = f"ε = {plan.target:g}" if by_error else plan.measure.named(plan.target)
        ax.set_xlabel(f"{what} (log scale)")
        asked = several(plan.workload.num_queries, "query", "queries")
        figure.suptitle(
            f"{asked} at {wish}, δ = {plan.delta:g}: {names[0]} leads",
            x=0.01,  # of the figure, for the axes are narrow beside long names
            horizontalalignment="left",
            fontweight="bold",
            fontsize=10,
        )
        metadata = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}
        figure.savefig(path, metadata=metadata.get(path.suffix, {"CreationDate": None}))
