"""Pictures of README.md and the pages that are made of computed data: python docs/figures/make.py [NAME ...]

Each PNG holds, as its texts Command, Date and Made, the command that drew it, the day, and figures of what was drawn,
computed for a small peptide too, by which tests/test_docs.py sees that the code behind it has changed. Pages
are photographed with chromium.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pele_ocl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STRUCTURES = ROOT / "data" / "structures"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
sys.path.append(str(ROOT / "tests" / "benchmarks"))


class Picture(NamedTuple):
    """A picture: the command that one would type, what draws it into a file, and figures of the code behind it."""

    command: str
    draw: Callable[[Path], None]
    made: Callable[[], Any]


def texts(path: Path) -> dict[str, str]:
    """Read the texts of a PNG."""
    data, at, found = path.read_bytes(), len(SIGNATURE), {}
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        if kind == b"tEXt":
            key, _, text = data[at + 8 : at + 8 + length].partition(b"\0")
            found[key.decode("latin-1")] = text.decode("latin-1")
        at += 12 + length
    return found


def add_texts(path: Path, more: dict[str, str]) -> None:
    """Write texts into a PNG, before its end."""
    data = path.read_bytes()
    end = data.rindex(b"IEND") - 4
    chunks = b""
    for key, text in more.items():
        body = b"tEXt" + key.encode("latin-1") + b"\0" + text.encode("latin-1")
        chunks += struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    path.write_bytes(data[:end] + chunks + data[end:])


def of_view() -> dict[str, float]:
    """Figures of the surface of a peptide and of its potential, as `view` has them."""
    record = pele_ocl.view(STRUCTURES / "hexapeptide.pdb").to_json()
    return {name: record[name] for name in ("n_triangles", "area", "min", "max")}


def of_chart() -> dict[str, float]:
    """Ratios of the chart."""
    import readme_chart

    return {bar.what: bar.ratio for bar in readme_chart.bars()}


def draw_chart(path: Path) -> None:
    """Draw the chart of README.md."""
    import readme_chart

    readme_chart.draw(path)


def draw_surface(path: Path) -> None:
    """Draw both sides of ubiquitin."""
    pele_ocl.view(STRUCTURES / "ubiquitin.pdb", path, color_max=3.0)


def save_dark(figure: Figure, path: Path) -> None:
    """Save a picture of surfaces for dark pages: letters light, what is white around the surface transparent."""
    import numpy as np
    from matplotlib.text import Text
    from scipy import ndimage

    for text in figure.findobj(Text):
        text.set_color("#e6e6e6")
    for axes in figure.axes:
        axes.tick_params(color="#e6e6e6")
        for line in axes.lines:
            line.set_color("#e6e6e6")
        for image in axes.images:
            pixels = np.asarray(image.get_array())
            parts, _ = ndimage.label((pixels == 1).all(axis=2))
            around = np.isin(parts, np.unique([*parts[0], *parts[-1], *parts[:, 0], *parts[:, -1]])) & (parts > 0)
            image.set_data(np.dstack([pixels, ~around]))
    figure.savefig(path, dpi=160, facecolor="#131416", metadata={"Software": "pele-ocl"})


def draw_dark_surface(path: Path) -> None:
    """Draw both sides of ubiquitin for dark pages."""
    from pele_ocl.painting.picture import picture_of

    shown = pele_ocl.view(STRUCTURES / "ubiquitin.pdb", color_max=3.0).shown
    save_dark(picture_of(shown.atoms, shown.surface, shown.colouring, shown.title, shown.about), path)


def sides() -> Figure:
    """Both sides of ubiquitin one above the other, with few words, for a place half as wide as a page."""
    import numpy as np
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

    from pele_ocl.painting.orientation import principal_axes
    from pele_ocl.painting.rendering import Frame, render

    shown = pele_ocl.view(STRUCTURES / "ubiquitin.pdb", color_max=3.0).shown
    surface, colouring, end = shown.surface, shown.colouring, shown.colouring.end
    axes = principal_axes(shown.atoms.positions)
    figure = Figure(figsize=(5.2, 4.3))
    figure.text(0.02, 0.955, "Ubiquitin, Poisson-Boltzmann potential", size=11, weight="bold", va="center")
    for number, turn in enumerate((np.eye(3), np.diag([-1.0, 1.0, -1.0]))):  # the second turned about the vertical
        view = turn @ axes
        frame = Frame.around(surface.vertices @ view[:2].T, 700)
        box = figure.add_axes((0.06, 0.47 - 0.45 * number, 0.7, 0.45))
        box.imshow(render(surface, colouring.rgb(), view, frame), origin="lower", interpolation="antialiased")
        box.set_axis_off()
    colours = LinearSegmentedColormap.from_list("ramp", colouring.colours)
    bar = figure.add_axes((0.82, 0.1, 0.035, 0.75))
    figure.colorbar(ScalarMappable(Normalize(-end, end), colours), cax=bar, ticks=[-end, 0, end], format="%g")
    bar.set_ylabel("kT/e, 1.4 Å outside the surface", size=9.5)
    bar.tick_params(labelsize=9.5)
    return figure


def draw_sides(path: Path) -> None:
    """Draw ubiquitin for the README and the front page."""
    sides().savefig(path, dpi=160, facecolor="white", metadata={"Software": "pele-ocl"})


def draw_dark_sides(path: Path) -> None:
    """Draw the same for dark pages."""
    save_dark(sides(), path)


def draw_page(path: Path) -> None:
    """Photograph the page of ubiquitin."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        pele_ocl.view(STRUCTURES / "ubiquitin.pdb", page, color_max=3.0)
        options = "--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--hide-scrollbars"
        options += "--enable-unsafe-swiftshader", "--window-size=1280,760", "--virtual-time-budget=20000"
        command = [chromium, *options, f"--screenshot={path}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=300)


DRAW = "python docs/figures/make.py"
VIEW = "pele-ocl view data/structures/ubiquitin.pdb --color-max 3 -o"
PICTURES = {
    "ubiquitin-surface.png": Picture(f"{VIEW} surface.png", draw_surface, of_view),
    "ubiquitin-surface-dark.png": Picture(f"{DRAW} ubiquitin-surface-dark.png", draw_dark_surface, of_view),
    "ubiquitin-sides.png": Picture(f"{DRAW} ubiquitin-sides.png", draw_sides, of_view),
    "ubiquitin-sides-dark.png": Picture(f"{DRAW} ubiquitin-sides-dark.png", draw_dark_sides, of_view),
    "ubiquitin-page.png": Picture(f"{VIEW} page.html", draw_page, of_view),
    "beside.png": Picture("python tests/benchmarks/readme_chart.py", draw_chart, of_chart),
}


def main() -> None:
    """Draw the pictures that are named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *PICTURES], metavar="NAME")
    for name in parser.parse_args().names or PICTURES:
        picture = PICTURES[name]
        picture.draw(HERE / name)
        day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        made = json.dumps({key: float(f"{value:.6g}") for key, value in picture.made().items()})
        add_texts(HERE / name, {"Command": picture.command, "Date": day, "Made": made})
        print(f"{name}: {picture.command}, {day}, {made}")


if __name__ == "__main__":
    main()
