"""figures/index.html: every figure with its reading and its table, and a panel of sliders.

One file that needs no network: page.html is its frame, style.css its look, panel.js the closed
forms that the sliders redraw; words.py is its glossary, columns.py the tables' headings, and
drawing.py puts the figures in.
"""

import csv
import html
import importlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any, NamedTuple
from urllib.parse import quote

from experiments import manifest, table
from experiments.page import columns, drawing, words

FILE = "index.html"
SOURCE = Path(__file__).parent
ROWS = 50  # of a table that are shown; all of them come with the link


class Step(NamedTuple):
    """A step on the way to a design, with the figures that it stands on."""

    id: str
    title: str
    advice: str
    names: tuple[str, ...]


STEPS = (
    Step(
        "why",
        "Why add noise at all",
        "What a table without names still gives away, and what a guarantee leaves an attacker.",
        ("linkage", "membership"),
    ),
    Step(
        "sensitivity",
        "Step 1: estimate the sensitivity",
        "How far can one person move the answer? Bound it before looking at the data, by clipping"
        " if need be: a bound that is too high costs noise, one that is too low costs the"
        " guarantee.",
        ("clipping", "sensitivity_underestimated"),
    ),
    Step(
        "queries",
        "Step 2: foresee the number of queries",
        "All answers about the same people share one budget. Count them beforehand, and choose who"
        " keeps the account.",
        ("budget",),
    ),
    Step(
        "mechanism",
        "Step 3: pick the mechanism",
        "Few queries favour Laplace noise and many favour Gaussian noise; a choice among"
        " candidates and data that nobody may see have mechanisms of their own.",
        ("crossover", "vector_queries", "selection", "local_versus_central"),
    ),
    Step(
        "error",
        "Step 4: derive the budget from the error that you can bear",
        "Error and epsilon determine each other: say how far off an answer may be, and read off the"
        " epsilon that this takes.",
        ("error_versus_epsilon", "distributions"),
    ),
    Step(
        "check",
        "Last: check what really runs",
        "A theorem protects the program that it was proven for. Audit what you run.",
        ("gaussian_out_of_range", "floating_point", "dp_sgd"),
    ),
)


def write(folder: Path, names: Iterable[str]) -> None:
    """Write the page of those named experiments whose tables are in the folder."""
    there = {name for name in names if (folder / f"{name}.csv").exists()}
    made = json.loads((folder / manifest.FILE).read_text(encoding="utf-8"))
    letters = drawing.Letters()
    steps = [(step, [name for name in step.names if name in there]) for step in STEPS]
    steps = [(step, shown) for step, shown in steps if shown]
    sections = "\n".join(
        part
        for step, shown in steps
        for part in (_step(step), *(_section(folder, name, made[name], letters) for name in shown))
    )
    parts = {
        "style": _source("style.css"),
        "script": _source("panel.js"),
        "contents": "\n".join(_entry(step, shown) for step, shown in steps),
        "sections": sections,
        "words": words.glossary(),
        "letters": letters.svg(),
    }
    part = folder / f".{FILE}.part"
    part.write_text(Template(_source("page.html")).substitute(parts), encoding="utf-8")
    os.replace(part, folder / FILE)


def _source(name: str) -> str:
    """A file of the page's own."""
    return (SOURCE / name).read_text(encoding="utf-8").strip()


def _entry(step: Step, names: Iterable[str]) -> str:
    """A step and its figures in the list of contents."""
    figures = "".join(
        f'\n<li><a href="#{name}">{html.escape(_experiment(name).TITLE)}</a></li>' for name in names
    )
    return f'<li><a href="#step-{step.id}">{step.title}</a><ul>{figures}\n</ul></li>'


def _step(step: Step) -> str:
    """What a step is about, above its figures."""
    return f"""<div class="step" id="step-{step.id}">
<h2>{html.escape(step.title)}</h2>
<p>{words.linked(step.advice, set())}</p>
</div>"""


def _section(folder: Path, name: str, made: Mapping[str, Any], letters: drawing.Letters) -> str:
    """An experiment's question, figure, reading, table and circumstances."""
    experiment, path = _experiment(name), folder / f"{name}.csv"
    data = table.read(path, experiment.COLUMNS)
    told: set[str] = set()
    title, setting = html.escape(experiment.TITLE), words.linked(experiment.SETTING, told)
    reading = words.linked(experiment.reading(data), told)
    labels = f'role="img" aria-labelledby="{name}-title" aria-describedby="{name}-reading"'
    svg = drawing.inline((folder / f"{name}.svg").read_bytes(), name, letters, labels)
    return f"""<section id="{name}" aria-labelledby="{name}-title">
<h3 id="{name}-title">{title}</h3>
<p class="setting">{setting}</p>
<p id="{name}-reading">{reading}</p>
<div class="drawing" tabindex="0" role="region" aria-label="Figure: {title}">
{svg}
</div>
<details>
<summary>The table: {len(data):,} rows</summary>
{_table(name, path, title, data)}
</details>
<p class="made">{_made(made)}</p>
</section>"""


def _experiment(name: str) -> Any:
    """The experiment's module."""
    return importlib.import_module(f"experiments.{name}")


def _table(name: str, path: Path, title: str, data: table.Table) -> str:
    """The first rows of a CSV under headings for readers, and a link that saves all of it."""
    text = path.read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    sides = {column: ' class="text"' * (data[column].dtype.kind == "U") for column in header}
    head = "".join(
        f'<th scope="col"{sides[column]}>{html.escape(columns.heading(name, column, header))}'
        f" <code>{column}</code></th>"
        for column in header
    )
    body = "\n".join(f"<tr>{''.join(_cells(row))}</tr>" for row in rows[:ROWS])
    shown = f"the first {ROWS} rows" if len(rows) > ROWS else "all rows"
    link = f"data:text/csv;charset=utf-8,{quote(text, safe=',;:+=/*')}"
    return f"""<p><a href="{link}" download="{path.name}">Save {path.name}</a>, with all digits;
here are {shown}, in five digits, with the column's name in the file under each heading.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Table: {title}">
<table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table>
</div>"""


def _cells(row: Iterable[str]) -> Iterator[str]:
    """Cells of a table: numbers in five digits, text to the left."""
    for cell in row:
        try:
            number = float(cell)
        except ValueError:
            yield f'<td class="text">{html.escape(cell)}</td>' if cell else "<td></td>"
        else:
            whole = number.is_integer() and abs(number) < 1e9
            yield f"<td>{f'{number:,.0f}' if whole else f'{number:.5g}'}</td>"


def _made(made: Mapping[str, Any]) -> str:
    """Seed, size and versions, from the manifest; a table without its run has the last only."""
    versions = {**made.get("versions", {}), **made["drawn_with"]}
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    if "seed" in made:
        named = f"Seed {made['seed']}; {made['trials']:,} trials; {made['device']}; {named}"
    return html.escape(f"{named}.")
