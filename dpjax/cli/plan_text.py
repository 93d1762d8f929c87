"""What `dpjax plan` says to people."""

from typing import Any

import click

from dpjax import plan as planning
from dpjax.cli.output import number, paragraph, risk_lines, table


def lines_of(plan: planning.Plan, result: dict[str, Any]) -> list[str]:
    """All lines of the answer."""
    kinds = len(plan.workload.queries)
    asked = f"{plan.workload.num_queries} queries" + (f" of {kinds} kinds" if kinds > 1 else "")
    wish = (
        f"epsilon {plan.target:g}"
        if plan.wished == "epsilon"
        else f"{plan.measure.name} at most {plan.target:g}"
    )
    lines = [
        f"{asked} at {wish}, delta {plan.delta:g} ({plan.workload.adjacency}): use"
        f" {click.style(plan.best.design.name, bold=True)}",
        "",
        *table(
            ("rank", "mechanism", "accounting", "epsilon", plan.measure.name, "x best", "reason"),
            [
                (
                    *(
                        row[name]
                        for name in ("rank", "mechanism", "accounting", "epsilon", "error")
                    ),
                    "" if row["over_best"] is None else f"{row['over_best']:.2f}",
                    row["reason"],
                )
                for row in result["designs"]
            ],
            best=0,
        ),
    ]
    if kinds > 1:
        lines += [f"({plan.measure.name}: weighted root mean square over all published numbers)"]
    lines += paragraph(
        "What to add, and what readers may be told",
        [
            f"{query['name']}: noise of scale {number(query['scale'])}; an answer is within"
            f" {number(query['half_width'])} of the truth with {_percent(result)} % confidence,"
            f" all answers at once within {number(query['half_width_of_all'])}"
            for query in result["queries"]
        ],
    )
    lines += paragraph("Where the lead changes", [_lead(result["crossover"], kinds)])
    lines += paragraph("What this epsilon means", risk_lines(result["risk"]))
    if result["notes"]:
        lines += paragraph("Notes", result["notes"])
    if result["simulated"]:
        lines += paragraph(
            "Simulated",
            [
                f"{check['name']}: rmse {check['rmse']:.6g} +- {check['rmse_standard_error']:.2g},"
                f" expected {check['rmse_expected']:.6g}; within the half-width"
                f" {check['coverage']:.4%}, expected {check['coverage_expected']:.4%}:"
                f" {'agrees' if check['agrees'] else 'DOES NOT AGREE'}"
                for check in result["simulated"]
            ],
        )
    return lines


def _percent(result: dict[str, Any]) -> str:
    """The confidence in percent."""
    return f"{100 * result['confidence']:g}"


def _lead(crossover: dict[str, Any], kinds: int) -> str:
    """Where Gaussian noise takes over."""
    k_star, first = crossover["k_star"], crossover["first_integer"]
    if k_star is None:
        return "Laplace noise leads for any number of queries (Gaussian noise needs a delta)"
    mixed = " in this mix" if kinds > 1 else ""
    line = f"Gaussian (exact) overtakes Laplace (basic) at k* = {k_star:.3f} queries{mixed}"
    if first is None:
        return line
    return line + f"; whatever the accountant, Gaussian leads from {first}"
