"""The page of figures: valid, whole, without network; its panel's numbers against the library's."""

import csv
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import html5lib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from dpjax import crossover, curves, theory
from dpjax.accounting import exact, gaussian, rdp
from experiments import NAMES, page, style
from experiments.page import columns, drawing, words

FIGURES = Path(__file__).parent.parent / "figures"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
POSITIONS = 200


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The page made anew from the committed tables and figures."""
    folder = tmp_path_factory.mktemp("page")
    for path in FIGURES.iterdir():
        if path.suffix in (".csv", ".svg", ".json"):
            shutil.copy(path, folder)
    page.write(folder, NAMES)
    return (folder / page.FILE).read_text(encoding="utf-8")


def test_the_committed_page_is_that_of_the_committed_figures(written):
    assert written == (FIGURES / page.FILE).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tree(written):
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(written)


def test_page_is_valid_html_with_every_figure_once(tree):
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    pictures = [svg for svg in tree.iter(drawing.SVG + "svg") if svg.get("aria-labelledby")]
    assert len(pictures) == len(NAMES)
    for name in NAMES:
        assert ids.count(name) == 1
    for svg in pictures:
        assert svg.get("role") == "img"
        assert {svg.get("aria-labelledby"), svg.get("aria-describedby")} <= set(ids)


def test_every_name_that_something_refers_to_is_there(tree, written):
    ids = {element.get("id") for element in tree.iter()}
    inside = set(re.findall(r"href=\"#([^\"]*)\"", written))
    clips = set(re.findall(r"url\(#([^)$]*)\)", written))
    assert len(inside) > 100
    assert len(clips) > 20
    assert inside | clips <= ids


def test_page_needs_no_network(written):
    links = re.findall(r"(?:src|href)=\"([^\"]*)\"", written)
    assert links
    beside = [link for link in links if not link.startswith(("data:", "#"))]
    assert all((FIGURES / link).is_file() for link in beside)
    assert set(re.findall(r"url\(.", written)) == {"url(#"}


def test_page_is_light(written):
    assert len(written.encode()) < 1.5e6


def test_steps_have_every_figure_once():
    assert sorted(name for step in page.STEPS for name in step.names) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_column_has_a_heading_of_its_own(name):
    with (FIGURES / f"{name}.csv").open() as file:
        header = next(csv.reader(file))
    headings = [columns.heading(name, column, header) for column in header]
    assert len(set(headings)) == len(header)
    bases = {column.removesuffix("_standard_error").removesuffix("_theory") for column in header}
    assert set(columns.UNITS[name]) <= bases


def test_words_are_linked_once_and_only_where_they_stand_alone():
    told = set()
    text = words.linked("Epsilon and epsilons < epsilon-like, basic composition at 1e-05", told)
    assert text.count("<a ") == 2
    assert text.startswith('<a class="word" href="#word-epsilon"')
    assert "and epsilons &lt; epsilon-like" in text
    assert "10<sup>−5</sup>" in text
    assert told == {"epsilon", "basic"}
    assert words.linked("epsilon", told) == "epsilon"


def test_drawing_keeps_every_mark_and_shares_letters():
    letters = drawing.Letters()
    for name in ("budget", "clipping"):
        svg = (FIGURES / f"{name}.svg").read_text()
        inside = drawing.inline(svg.encode(), name, letters, 'role="img"')
        outlines = set(re.findall(r'<path id="(DejaVu[^"]*)"', svg))
        assert outlines <= set(letters.names())
        assert inside.count("<use") == svg.count("<use")
        assert inside.count("<path") == svg.count("<path") - len(outlines)
        assert len(inside) < len(svg) / 2
    assert letters.svg().count("<path") == len(letters.names())


def test_names_in_figures_are_legible_on_white():
    def luminance(colour):  # WCAG 2.1, relative luminance
        channels = np.asarray(to_rgb(colour))
        linear = np.where(channels <= 0.04, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    for colour in (style.LAPLACE, style.CUSTOMARY, style.shade(style.GAUSSIAN, 0.4), "white"):
        darker = style.legible(colour)
        assert 4.5 <= 1.05 / (luminance(darker) + 0.05) < 4.8
        # one hue: the channels keep their ratios
        np.testing.assert_allclose(
            np.asarray(darker) / max(darker), np.asarray(to_rgb(colour)) / max(to_rgb(colour))
        )
    assert style.legible(style.GAUSSIAN) == to_rgb(style.GAUSSIAN)


def browse(path, width, height, *options):
    """What headless chromium prints."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = f"--window-size={width},{height}"
    run = subprocess.run(
        [*command, size, *options, path.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return run.stdout


def driven(written, folder, script):
    """The JSON that a script, run in the page after its own, makes."""
    path = folder / "driven.html"
    # the panel alone, sooner
    written = re.sub(r'<section id="(?!panel|glossary).*?</section>', "", written, flags=re.DOTALL)
    tail = f"<script>document.title = JSON.stringify((() => {{ {script} }})())</script></body>"
    path.write_text(written.replace("</body>", tail), encoding="utf-8")
    shown = re.search("<title>(.*?)</title>", browse(path, 1280, 900, "--dump-dom"), re.DOTALL)
    assert shown is not None
    return json.loads(html.unescape(shown.group(1)))


@needs_browser
def test_panel_has_the_library_s_numbers_wherever_the_sliders_stand(written, tmp_path):
    fractions = np.random.default_rng(1).uniform(size=(POSITIONS, 4)).round(4).tolist()
    rows = driven(
        written,
        tmp_path,
        f"""
        return {fractions}.map((row) => {{
          row.forEach((fraction, i) => {{
            const slider = document.getElementById(SLIDERS[i]);
            const [low, high] = [Number(slider.min), Number(slider.max)];
            slider.value = low + fraction * (high - low);
          }});
          document.getElementById("k").dispatchEvent(new Event("input"));
          const texts = [...document.querySelectorAll("#panel [id]")];
          return Object.fromEntries(texts.map((element) => [element.id, element.textContent]));
        }});
        """,
    )
    at = {
        name: np.array([float(row[f"{name}-value"]) for row in rows])
        for name in ("epsilon", "delta", "sensitivity", "k")
    }
    assert all(len(np.unique(values)) > 100 for values in at.values())
    exact = gaussian.noise_multiplier(at["epsilon"], at["delta"])
    classic = curves.gaussian(
        at["epsilon"], at["delta"], accountant=lambda loss, delta: rdp.epsilon(
            loss, delta, conversion="classic"
        ),
    )(1.0)  # fmt: skip
    expected = {}
    for name, law, scale in (
        ("laplace", theory.Laplace, at["k"] / at["epsilon"]),
        ("exact", theory.Gaussian, exact * np.sqrt(at["k"])),
        ("classic", theory.Gaussian, classic * np.sqrt(at["k"])),
    ):
        noise = law(scale * at["sensitivity"])
        expected[f"{name}-scale"] = noise.scale
        expected[f"{name}-rmse"] = noise.rmse
        expected[f"{name}-mae"] = noise.mae
        expected[f"{name}-within"] = noise.abs_quantile(0.95)
    expected["exact-crossing"] = (exact * at["epsilon"]) ** 2 / 2
    expected["classic-crossing"] = (classic * at["epsilon"]) ** 2 / 2
    for name, values in expected.items():
        seen = np.array([float(row[name]) for row in rows])
        np.testing.assert_allclose(seen, values, rtol=5.1e-4, err_msg=name)
    for row, exact_leads in zip(rows, at["k"] > expected["exact-crossing"], strict=True):
        assert ("Gaussian noise has" in row["verdict"]) == exact_leads


@needs_browser
def test_crossing_of_the_panel_is_that_of_the_curves(written, tmp_path):
    seen = driven(written, tmp_path, "return crossing(noiseMultiplier(1, 1e-5), 1)")
    found = crossover(
        curves.laplace_basic(1.0), curves.gaussian(1.0, 1e-5, accountant=exact.epsilon), up_to=100
    )
    assert seen == pytest.approx(found.k_star, rel=1e-9)


@needs_browser
def test_nothing_is_wider_than_a_phone_or_a_desk(written, tmp_path):
    path, widths = tmp_path / "sized.html", (390, 1280)
    # in frames, since a window of chromium is never narrower than 500
    frames = "".join(
        f'<iframe style="width: {width}px; border: 0" srcdoc="{html.escape(written)}"></iframe>'
        for width in widths
    )
    script = """<script>addEventListener("load", () => {
      const pages = [...document.querySelectorAll("iframe")].map((frame) => frame.contentDocument);
      document.title = JSON.stringify(pages.map((page) => page.documentElement.scrollWidth));
    })</script>"""
    path.write_text(f"<!DOCTYPE html><title></title>{frames}{script}", encoding="utf-8")
    shown = re.search("<title>(.*?)</title>", browse(path, 1400, 900, "--dump-dom"))
    assert shown is not None
    assert json.loads(shown.group(1)) == list(widths)


@needs_browser
def test_every_slider_is_reached_by_keyboard_and_named(written, tmp_path):
    seen = driven(
        written,
        tmp_path,
        """
        return SLIDERS.map((name) => {
          const slider = document.getElementById(name);
          slider.focus();
          return [document.activeElement === slider, slider.labels[0].innerText,
                  slider.getAttribute("aria-valuetext"), slider.tabIndex];
        });
        """,
    )
    for focused, label, value, tab in seen:
        assert focused
        assert tab == 0
        assert label.endswith(value)
