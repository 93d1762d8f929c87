"""A figure inside the page: matplotlib's SVG without what the page says once for all of them.

Every SVG brings its own outlines of the letters, its marks' looks one by one and six digits after
the point. The page keeps each outline and look once, and two digits: a hundredth of a point.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
PIXELS = 96 / 72  # in a point
_NAMED = (f"{SVG}path", f"{SVG}clipPath")  # what others refer to; groups have names for nobody
_NUMBER = re.compile(r"-?\d+\.\d+")
_SHIFT = re.compile(r"translate\((\S+) (\S+)\)")


class Letters:
    """Outlines of letters that all drawings of a page share, in the order of their first use."""

    def __init__(self) -> None:
        self._outlines: dict[str, tuple[str, str]] = {}  # matplotlib's name: ours, and the path

    def take(self, tree: ElementTree.Element) -> None:
        """Take up the outlines of a drawing."""
        for path in tree.iter(f"{SVG}path"):
            theirs = path.get("id", "")
            if theirs.startswith("DejaVu") and theirs not in self._outlines:
                shape = f'd="{_short(path.get("d", ""))}" transform="{path.get("transform")}"'
                self._outlines[theirs] = f"g{len(self._outlines)}", shape

    def names(self) -> dict[str, str]:
        """The name in the page of each outline."""
        return {theirs: ours for theirs, (ours, _) in self._outlines.items()}

    def svg(self) -> str:
        """An invisible drawing with all the outlines."""
        paths = "\n".join(f'<path id="{ours}" {path}/>' for ours, path in self._outlines.values())
        return f'<svg class="letters" aria-hidden="true"><defs>\n{paths}\n</defs></svg>'


def inline(svg: bytes, name: str, letters: Letters, attributes: str) -> str:
    """The `svg` element of a drawing, the names inside it made unique by the figure's own.

    Args:
        svg: as matplotlib writes it.
        name: of the figure.
        letters: takes up the outlines that it uses.
        attributes: of the element, as text: its role and what it is called.
    """
    tree = ElementTree.fromstring(svg)
    letters.take(tree)
    outlines = letters.names()
    named = (each.get("id", "") for each in tree.iter() if each.tag in _NAMED)
    ids = {theirs: f"{name}-{i}" for i, theirs in enumerate(filter(None, named))} | outlines
    left, top, width, height = (float(part) for part in tree.get("viewBox", "").split())
    size = f'width="{width * PIXELS:.0f}" height="{height * PIXELS:.0f}"'
    body = "".join(_elements(tree, ids, outlines))
    return f'<svg {attributes} viewBox="{left:g} {top:g} {width:g} {height:g}" {size}>{body}</svg>'


def _elements(
    parent: ElementTree.Element, ids: dict[str, str], skipped: dict[str, str]
) -> Iterator[str]:
    """The elements below one, as text."""
    _lift_what_all_share(parent)
    for child in parent:
        tag = child.tag.removeprefix(SVG)
        if tag in ("metadata", "style") or child.get("id") in skipped:
            continue
        inside = "".join(_elements(child, ids, skipped))  # first: it may lift attributes
        given = dict(_attributes(child, ids))
        if tag in ("g", "defs") and not inside:
            continue
        if tag == "g" and not given:
            yield inside
            continue
        text = "".join(f' {key}="{value}"' for key, value in given.items())
        yield f"<{tag}{text}>{inside}</{tag}>" if inside else f"<{tag}{text}/>"


def _lift_what_all_share(parent: ElementTree.Element) -> None:
    """Give a group the look and the clip that all of its marks have; opacity would not descend."""
    if parent.tag != f"{SVG}g" or len(parent) < 2:
        return
    for key in ("style", "clip-path"):
        values = {child.get(key) for child in parent}
        (shared, *others) = values
        if shared and not others and not parent.get(key) and "opacity" not in shared:
            parent.set(key, shared)
            for child in parent:
                del child.attrib[key]


def _attributes(element: ElementTree.Element, ids: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The attributes that say something, in few letters."""
    for key, value in element.items():
        if key == "id":
            if element.tag in _NAMED:
                yield key, ids[value]
        elif key == LINK:
            yield "href", f"#{ids[value.removeprefix('#')]}"
        elif key == "clip-path":
            yield key, f"url(#{ids[value[5:-1]]})"
        elif key == "transform":
            shift = _SHIFT.fullmatch(value)
            if element.tag == f"{SVG}use" and shift:
                for axis, distance in zip("xy", shift.groups(), strict=True):
                    if float(distance):
                        yield axis, _short(distance)
            else:
                yield key, value
        else:
            yield key, _short(value)


def _short(text: str) -> str:
    """Numbers with two digits after the point, and no spaces where none are needed."""
    text = " ".join(_NUMBER.sub(_rounded, text).split())
    return re.sub(r" ?([MLHVQCTSAZz:;,]) ?", r"\1", text)


def _rounded(number: re.Match[str]) -> str:
    """One number."""
    text = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
