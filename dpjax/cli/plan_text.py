"""What `dpjax plan` says to people."""

from typing import Any

import click

from dpjax import plan as planning
from dpjax.cli.output import number, paragraph, risk_lines, several, table, up


def lines_of(plan: planning.Plan, result: dict[str, Any]) -> list[str]:
    """All lines of the answer."""
    kinds = len(plan.workload.queries)
    asked = several(plan.workload.num_queries, "query", "queries")
    asked += f" of {kinds} kinds" if kinds > 1 else ""
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
                    *(row[name] for name in ("rank", "mechanism", "accounting")),
                    up(row["epsilon"]),
                    row["error"],
                    "" if row["over_best"] is None else f"{row['over_best']:.2f}",
                    row["reason"],
                )
                for row in result["designs"]
            ],
            best=0,
        ),
    ]
    if kinds > 1:
        lines += [
            f"({plan.measure.name}: its weighted root mean square over all published numbers; what"
            " holds for each kind of query is below)"
        ]
    lines += paragraph(
        "What to add, and what readers may be told",
        [
            *_noise(plan.measure.name, result),
            f"(to simulate it: dpjax.{plan.best.design.mechanism}(key, value, scale=...); --csv and"
            " --json have the scales of every design)",
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


def _noise(measure: str, result: dict[str, Any]) -> list[str]:
    """Noise and half-widths of each kind of query: a sentence for one, a table for several."""
    if len(result["queries"]) == 1:
        (query,) = result["queries"]
        line = (
            f"{query['name']}: noise of scale {number(up(query['scale']))}; an answer is within"
            f" {number(query['half_width'])} of the truth with {_percent(result)} % confidence"
        )
        if query["half_width_of_all"] != query["half_width"]:
            line += f", all answers at once within {number(query['half_width_of_all'])}"
        return [line]
    names = ("name", "count", "scale", "error", "half_width", "half_width_of_all")
    header = ("query", "count", "scale of the noise", measure, "within", "all within")
    queries = [query | {"scale": up(query["scale"])} for query in result["queries"]]
    return [
        *table(header, [[query[name] for name in names] for query in queries]),
        f"(within: how far an answer is from the truth with {_percent(result)} % confidence; all"
        " within: every answer of the release at once)",
    ]


def _percent(result: dict[str, Any]) -> str:
    """The confidence in percent."""
    return f"{100 * result['confidence']:.15g}"


def _lead(crossover: dict[str, Any], kinds: int) -> str:
    """Where Gaussian noise takes over."""
    k_star, first = crossover["k_star"], crossover["first_integer"]
    if k_star is None:
        return "Laplace noise leads for any number of queries (Gaussian noise needs a delta)"
    mixed = " in this mix" if kinds > 1 else ""
    line = f"Gaussian (exact) overtakes Laplace (basic) at k* = {k_star:.3f} queries{mixed}"
    if first is None:
        return line
    return line + f"; with both counted exactly, Gaussian leads from {several(first, *_NOUN)} on"


_NOUN = ("query", "queries")
