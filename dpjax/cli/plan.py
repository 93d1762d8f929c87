"""`dpjax plan`: from a workload and a wish to ranked designs."""

import sys
from pathlib import Path
from typing import Any

import click

from dpjax import _validate
from dpjax import plan as planning
from dpjax.cli import options
from dpjax.cli.output import emit, one_line
from dpjax.cli.plan_text import lines_of
from dpjax.plan import advice


@click.command(cls=options.Command)
@click.option(
    "--epsilon", type=options.NUMBER, help="Total budget, from 1e-6 to 300: the least error wins."
)
@click.option(
    "--rmse",
    type=options.NUMBER,
    help="Tolerable root mean square error of an answer, in its units; the least epsilon wins.",
)
@click.option("--mae", type=options.NUMBER, help="Tolerable mean absolute error of an answer.")
@click.option(
    "--within",
    type=options.NUMBER,
    help="Tolerable distance of an answer from the truth, kept with --confidence.",
)
@options.delta
@click.option(
    "--queries", type=options.QUERIES, help="How many equal queries of one number each, up to 1e9."
)
@click.option(
    "--sensitivity",
    type=options.NUMBER,
    help="Largest change of the answer to each of --queries.  [default: 1]",
)
@click.option("--whole", is_flag=True, help="Answers are whole numbers: try discrete noise too.")
@click.option(
    "--adjacency",
    type=options.Name(["add_remove", "replace_one"]),
    help="Of neighbouring data sets, for which the sensitivity holds: one person's record added or"
    " removed, or replaced by another.  [default: add-remove]",
)
@click.option(
    "--people", type=options.WHOLE, help="How many people the data are of, for advice on delta."
)
@click.option(
    "--workload",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with unequal queries, in place of --queries.",
)
@options.measure
@click.option(
    "--simulate",
    type=options.MANY_TRIALS,
    help="Check the best design with so many trials, from 2 to 1e14.",
)
@click.option(
    "--seed", type=options.SEED, default=0, show_default=True, help="Of --simulate, below 2^32."
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the designs into this file (.png, .svg or .pdf).",
)
@options.output
@click.pass_context
def command(ctx: click.Context, delta: float, form: str | None, **given: Any) -> None:
    """Rank mechanisms and accountants for a workload.

    Give --epsilon for the least error, or a tolerable error (--rmse, --mae or --within) for the
    least epsilon. With both, the plan is made if some design does it, else the exit code is 1 and
    the message has the nearest possible wishes. Errors are in the answers' units. Over unequal
    queries the error is one number, the weighted root mean square of the errors of all published
    numbers; what holds for each of them is in the answer.

    The text has the scales of the best design, --csv and --json those of every design. Mechanisms
    are functions of dpjax, such as dpjax.discrete_laplace(key, value, scale=20.0).

    \b
    Fifty counts at epsilon 1, and fifty counts to within an error of 5:
      dpjax plan --epsilon 1 --delta 1e-5 --queries 50
      dpjax plan --rmse 5 --queries 50 --delta 1e-5
      dpjax plan --within 5 --confidence 0.95 --queries 50 --delta 1e-6 --people 10000

    \b
    Unequal queries, in a file:
      dpjax plan --epsilon 1 --delta 1e-5 --workload workload.toml --plot plan.png

    \b
    The file has a table for each kind of query, by kind or by sensitivity:
      adjacency = "replace_one"  # or "add_remove", which knows no mean
      people = 10000
      [[query]]
      kind = "count"             # or "sum" with lower, upper; "mean" with lower, upper,
                                 # num_records; "histogram" with bins, up to 1e6
      count = 20                 # times the size (of a histogram, bins) up to 1e9
      [[query]]
      name = "income"
      sensitivity = 50.0         # and size, changed, whole, where they are not 1, 1, false
      weight = 0.01              # of its squared error beside the others'
    """
    _validate.open_probability(confidence=given["confidence"])
    seeded = ctx.get_parameter_source("seed") == click.core.ParameterSource.COMMANDLINE
    if seeded and given["simulate"] is None:
        raise click.UsageError("--seed is of --simulate: give both or none")
    options.check_writable("plot", given["plot"], (".png", ".svg", ".pdf"))
    workload = _workload(given)
    measure, tolerated = _tolerated(given)
    level = options.level_of(measure, given["confidence"])
    wish = {"delta": delta, "measure": measure, "level": level}
    if given["epsilon"] is not None:
        plan = planning.at_budget(workload, epsilon=given["epsilon"], **wish)
        if tolerated is not None:
            planning.check(plan, tolerated)
    elif tolerated is not None:
        plan = planning.at_error(workload, error=tolerated, **wish)
    else:
        raise click.UsageError("give --epsilon, or a tolerable error by --rmse, --mae, --within")
    checks = _simulated(plan, given)
    result = _result(plan, given["confidence"], checks)
    if given["plot"]:
        from dpjax.cli.drawing import draw_plan

        draw_plan(plan, given["plot"])
    emit(form, "plan", result, result["designs"], lines_of(plan, result))
    if not all(check["agrees"] for check in checks or []):
        ctx.exit(1)


def _workload(given: dict[str, Any]) -> planning.Workload:
    """From the file or from the flags."""
    flags = {name: given[name] for name in ("queries", "sensitivity", "adjacency")}
    if given["workload"] is not None:
        clash = [name for name, value in flags.items() if value is not None]
        if given["whole"] or clash:
            raise click.UsageError(f"--{(clash or ['whole'])[0]} is part of the file of --workload")
        try:
            found = planning.from_toml(options.text_of(given["workload"]))
        except (ValueError, TypeError) as error:
            raise click.UsageError(f"{given['workload']}: {one_line(error)}") from error
        people = found.people if given["people"] is None else given["people"]
        return planning.Workload(found.queries, found.adjacency, people)
    if given["queries"] is None:
        raise click.UsageError("give --queries, or a file by --workload")
    return planning.equal(
        given["queries"],
        sensitivity=1.0 if given["sensitivity"] is None else given["sensitivity"],
        whole=given["whole"],
        adjacency=given["adjacency"] or "add_remove",
        people=given["people"],
    )


def _tolerated(given: dict[str, Any]) -> tuple[str, float | None]:
    """The measure, and the tolerable error if there is one."""
    wishes = [(name, given[name]) for name in ("rmse", "mae", "within") if given[name] is not None]
    if len(wishes) > 1:
        raise click.UsageError(f"--{wishes[0][0]} and --{wishes[1][0]}: give one tolerable error")
    measure = given["measure"]
    if not wishes:
        return measure or "rmse", None
    ((name, value),) = wishes
    _validate.positive(**{name: value})
    wished = "quantile" if name == "within" else name
    if measure not in (None, wished):
        raise click.UsageError(f"--{name} is of measure {wished}: leave out --measure {measure}")
    return wished, value


def _simulated(plan: planning.Plan, given: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The best design by simulation, which alone needs JAX."""
    if given["simulate"] is None:
        return None
    from dpjax.plan.verify import verify
    from dpjax.sweep import progress

    found = verify(
        plan,
        num_trials=given["simulate"],
        seed=given["seed"],
        confidence=given["confidence"],
        progress=progress.bar("simulate") if sys.stderr.isatty() else None,
    )
    return [each._asdict() for each in found]


def _result(
    plan: planning.Plan, confidence: float, checks: list[dict[str, Any]] | None
) -> dict[str, Any]:
    """All there is to know, for JSON."""
    workload, best = plan.workload, plan.best
    answers = sum(query.answers for query in workload.queries)
    alone, together = (best.half_widths(confidence, answers=n) for n in (1, answers))
    of_best = {"epsilon": plan.epsilon} | {
        "wish": plan.wished,
        "delta": plan.delta,
        "measure": plan.measure.kind,
        "level": plan.measure.level,
        "adjacency": workload.adjacency,
        "people": workload.people,
        "num_queries": workload.num_queries,
        "best": best.design.name,
        "confidence": confidence,
    }
    queries = [
        {
            "name": query.name,
            "sensitivity": query.sensitivity,
            "count": query.count,
            "size": query.size,
            "changed": query.changed,
            "weight": query.weight,
            "whole": query.whole,
            "scale": float(scale),
            "error": float(error),
            "half_width": float(one),
            "half_width_of_all": float(every),
        }
        for query, scale, error, one, every in zip(
            workload.queries, best.scales, best.errors, alone, together, strict=True
        )
    ]
    designs = [
        {
            "rank": rank,
            "mechanism": option.design.mechanism,
            "accounting": option.design.accounting,
            "epsilon": option.epsilon,
            "error": option.error,
            "over_best": _over_best(plan, option),
            "scales": [float(scale) for scale in option.scales],
            "reason": option.design.reason,
        }
        for rank, option in enumerate(plan.options, 1)
    ]
    return of_best | {
        "queries": queries,
        "designs": designs,
        "left_out": [{"design": d.name, "reason": reason} for d, reason in plan.left_out],
        "crossover": advice.lead_of(plan)._asdict(),
        "risk": advice.risk_of(plan)._asdict(),
        "notes": advice.notes_on(plan),
        "simulated": checks,
    }


def _over_best(plan: planning.Plan, option: planning.Option) -> float | None:
    """How many times the best design's error, or epsilon, this one has."""
    name = "error" if plan.wished == "epsilon" else "epsilon"
    least = getattr(plan.best, name)
    return getattr(option, name) / least if least > 0 else None
