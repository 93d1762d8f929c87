"""figures/index.html: every figure with its reading and its table, and a panel of sliders.

One file that needs no network: page.html is its frame, style.css its look, and panel.js the closed
forms that the sliders redraw.
"""

import base64
import csv
import html
import importlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Any

from experiments import manifest, table

FILE = "index.html"
SOURCE = Path(__file__).parent
ROWS = 50  # of a table that are shown; all of them come with the link


def write(folder: Path, names: Iterable[str]) -> None:
    """Write the page of those named experiments whose tables are in the folder."""
    there = [name for name in names if (folder / f"{name}.csv").exists()]
    made = json.loads((folder / manifest.FILE).read_text(encoding="utf-8"))
    parts = {
        "style": _source("style.css"),
        "script": _source("panel.js"),
        "contents": "\n".join(_entry(name) for name in there),
        "sections": "\n".join(_section(folder, name, made[name]) for name in there),
    }
    part = folder / f".{FILE}.part"
    part.write_text(Template(_source("page.html")).substitute(parts), encoding="utf-8")
    os.replace(part, folder / FILE)


def _source(name: str) -> str:
    """A file of the page's own."""
    return (SOURCE / name).read_text(encoding="utf-8").strip()


def _entry(name: str) -> str:
    """An experiment's line in the list of contents."""
    return f'<li><a href="#{name}">{html.escape(_experiment(name).TITLE)}</a></li>'


def _section(folder: Path, name: str, made: Mapping[str, Any]) -> str:
    """An experiment's figure, reading, table and circumstances."""
    experiment, path = _experiment(name), folder / f"{name}.csv"
    data = table.read(path, experiment.COLUMNS)
    title, reading = html.escape(experiment.TITLE), html.escape(experiment.reading(data))
    svg = _data_link("image/svg+xml", (folder / f"{name}.svg").read_bytes())
    return f"""<section id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{title}</h2>
<p>{reading}</p>
<img src="{svg}" alt="{title}. {reading}">
<details>
<summary>The table: {len(data):,} rows</summary>
{_table(path, title)}
</details>
<p class="made">{_made(made)}</p>
</section>"""


def _experiment(name: str) -> Any:
    """The experiment's module."""
    return importlib.import_module(f"experiments.{name}")


def _table(path: Path, title: str) -> str:
    """The first rows of a CSV, and a link that saves all of it."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in header)
    body = "\n".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows[:ROWS]
    )
    link = _data_link("text/csv", path.read_bytes())
    cut = f", of which the first {ROWS} are shown" if len(rows) > ROWS else ""
    return f"""<p><a href="{link}" download="{path.name}">Save {path.name}</a>{cut}</p>
<div class="scroll" tabindex="0" role="region" aria-label="Table: {title}">
<table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table>
</div>"""


def _made(made: Mapping[str, Any]) -> str:
    """Seed, size and versions, from the manifest; a table without its run has the last only."""
    versions = {**made.get("versions", {}), **made["drawn_with"]}
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    if "seed" in made:
        named = f"Seed {made['seed']}; {made['trials']:,} trials; {made['device']}; {named}"
    return html.escape(f"{named}.")


def _data_link(media: str, data: bytes) -> str:
    """A file inside a link."""
    return f"data:{media};base64,{base64.b64encode(data).decode()}"
