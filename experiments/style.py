"""The look of the figures, and how they become the same bytes every time."""

import io
import math
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display, and the same pixels everywhere the versions agree

from matplotlib.axes import Axes
from matplotlib.axes._secondary_axes import SecondaryAxis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

INK, MUTED, GRID = "#1f2328", "#656c79", "#e6e8eb"
# A light and a dark hue, apart in grey and under colour blindness; markers and line styles tell
# the designs apart once more.
LAPLACE = "#dd7a1c"
GAUSSIAN, MIDDLE, CUSTOMARY = "#173f70", "#2f6fb0", "#5a97cf"  # from tight to loose

RC: dict[Any, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.hashsalt": "dpjax",
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelsize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
}


matplotlib.rcParams.update(RC)
SMALL: dict[str, Any] = {"fontsize": 8, "color": MUTED, "va": "top"}


def figure(width: float, height: float, mosaic, **options) -> tuple[Figure, dict[str, Axes]]:
    """An empty figure of a fixed size in inches, laid out by name."""
    canvas = Figure(figsize=(width, height), layout="constrained")
    return canvas, canvas.subplot_mosaic(mosaic, **options)


def points(colour: str, marker: str, size: float) -> dict[str, Any]:
    """Simulated points with their standard errors, for errorbar."""
    return {
        "fmt": marker,
        "ms": size,
        "mfc": "white",
        "mec": colour,
        "mew": 0.9,
        "ecolor": colour,
        "elinewidth": 0.9,
        "zorder": 3,
    }


def name(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    colour: str,
    slope: float | None = None,
    **options: Any,
) -> None:
    """A curve's name beside it, in its colour, in place of a legend; along dy/dx if given."""
    if slope is not None:
        angle = math.degrees(math.atan(slope))
        options |= {"rotation": angle, "transform_rotates_text": True, "rotation_mode": "anchor"}
    ax.text(*at, text, color=legible(colour), **({"fontweight": "bold", "fontsize": 9} | options))


def note(ax: Axes, text: str) -> None:
    """What the marks mean, in the upper right corner of a plot."""
    ax.text(0.99, 0.98, text, transform=ax.transAxes, ha="right", **SMALL)


def shade(colour: str, strength: float) -> tuple[float, float, float]:
    """The colour thinned with white: 0 is white, 1 the colour."""
    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def legible(colour: Any) -> tuple[float, float, float]:
    """The colour, darkened to what small text on white needs: a contrast of 4.5 (WCAG 2.1)."""

    def luminance(rgb: tuple[float, float, float]) -> float:
        linear = (part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb)
        return sum(w * part for w, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    red, green, blue = to_rgb(colour)
    while 1.05 / (luminance((red, green, blue)) + 0.05) < 4.5:
        red, green, blue = 0.98 * red, 0.98 * green, 0.98 * blue
    return red, green, blue


def power(number: float) -> str:
    """A number as a power of ten where it is one."""
    exponent = round(math.log10(number))
    return f"$10^{{{exponent}}}$" if number == 10**exponent else f"{number:,.0f}"


def log_axis(ax: Axes | SecondaryAxis, which: str, ticks: Sequence[float]) -> None:
    """Make the "x" or "y" axis logarithmic, with the given ticks as plain numbers."""
    getattr(ax, f"set_{which}scale")("log")
    axis = getattr(ax, f"{which}axis")
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def files(drawing: Figure, name: str) -> dict[str, bytes]:
    """The figure as NAME.png and NAME.svg, without dates, versions or paths inside."""
    return {
        f"{name}.png": _bytes(drawing, "png", {"Software": None}),
        f"{name}.svg": _bytes(drawing, "svg", {"Date": None, "Creator": None}),
    }


def _bytes(drawing: Figure, form: str, metadata: dict[str, None]) -> bytes:
    """The file's content; written to memory, for the SVG writer notes the name of a file."""
    buffer = io.BytesIO()
    drawing.savefig(buffer, format=form, metadata=metadata)
    return buffer.getvalue()
