"""Documentation site: its sources hang together, its extensions do what they say, it builds without a warning."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest
from conftest import DEVICES

import pele_ocl

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GALLERY = sorted(page for page in (DOCS / "gallery").glob("*.md") if page.stem != "README")
LONG = {"dihedrals"}  # pages whose cells take a minute


def extension(name: str) -> ModuleType:
    """A module of docs/site."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code(page: Path) -> list[str]:
    """Return the cells of a notebook."""
    return re.findall(r"^```\{code-cell\}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def test_every_page_stands_once_in_the_contents():
    contents, placed = extension("contents"), ["index", "develop"]
    for page in placed:
        source = DOCS / f"{page}.md"
        if source.exists():
            placed += [name for pages in contents.below(source.read_text(), page).values() for name in pages]
    assert len(placed) == len(set(placed))
    sources = [*DOCS.rglob("*.md"), *(DOCS / "cli").glob("*.txt"), *DOCS.rglob("*.ipynb")]
    names = {str(source.relative_to(DOCS).with_suffix("")) for source in sources}
    assert set(placed) == names


def test_the_developers_part_stands_apart():
    """No page for users is below it, and its texts are not searched."""
    contents = extension("contents")
    parts = contents.below((DOCS / "index.md").read_text(), "index")
    assert list(parts) == ["Use", "Learn", "Formats and programs", "Reference"]
    developers = contents.of_developers()
    assert {"develop", "architecture", "extend/README", "extend/kernel", "reliability"} <= developers
    assert not developers & {name for pages in parts.values() for name in pages}
    assert "(develop.md)" in (DOCS / "index.md").read_text()


def test_users_pages_have_60_000_to_80_000_words():
    """Use, Learn, Formats and programs, Reference, as `wc -w` counts, without generated and developers' pages."""
    contents, pages = extension("contents"), ["index"]
    for page in pages:
        source = DOCS / f"{page}.md"
        if source.exists():
            pages += [name for below in contents.below(source.read_text(), page).values() for name in below]
    sources = [DOCS / f"{page}.md" for page in pages if not page.startswith(("api/", "cli/"))]
    words = sum(len(source.read_text().split()) for source in sources if source.exists())
    assert 60_000 < words < 80_000


def test_addresses_of_pages_that_are_gone_lead_on():
    assert not list(extension("redirects").stale())


def test_links_named_as_files_get_titles():
    text = "[solvent.md](theory/solvent.md), [the same](theory/solvent.md), [help](cli/pele-ocl.txt)"
    assert extension("contents").titled(text) == text.replace("[solvent.md]", "[]")


def test_captions_are_the_headings_of_the_first_page():
    text = (DOCS / "index.md").read_text()
    assert list(extension("contents").below(text, "index")) == re.findall(r"^## (.+)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_links_into_pages_meet_a_heading(page):
    for target, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", page.read_text()):
        text = (page.parent / target).read_text() if target else page.read_text()
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


def test_every_public_name_is_in_the_reference_once():
    pages = "".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    named = re.findall(r"^\.\. auto\w+:: pele_ocl\.([\w.]+)$", pages, re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(pele_ocl.__all__) <= {name.rpartition(".")[2] for name in named}


DOCSTRING = """Energy of n atoms; E = k |x|, and *not* `k`.

atoms : as in `energy`, docs/theory/energy.md
    has more; one_four too
first, second : (n,) A

    E = k x

Returns an EnergyResult."""

REST = r"""Energy of n atoms; E = k \|x\|, and \*not\* \ ``k``\ .

``atoms``
    as in \ :py:obj:`energy`\ , \ :doc:`/theory/energy`\  has more; one\_four too
``first``, ``second``
    (n,) A

::

        E = k x

Returns an \ :py:obj:`EnergyResult`\ .
"""


def test_docstrings_become_what_sphinx_reads():
    lines = DOCSTRING.splitlines()
    extension("docstrings").translate(None, "function", "energy", None, None, lines)
    assert "\n".join(lines) == REST


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_formulas_are_typeset(page):
    """No indented block is a formula in plain letters; what opens in TeX closes again."""
    text = page.read_text()
    without_code = re.sub(r"^( *)(```+).*?^ *\2$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"^ {4}\S.*[Σ√∂∇²³ρφΔ·].*$", without_code, re.MULTILINE)
    for formula in re.findall(r"^ *```math\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE):
        assert formula.count("{") == formula.count("}"), formula
        assert len(re.findall(r"\\left(?![a-z])", formula)) == len(re.findall(r"\\right(?![a-z])", formula)), formula
        assert formula.count(r"\begin") == formula.count(r"\end"), formula
    # Indented blocks are code, too.
    prose = re.sub(r"^ {4}.*$", "", re.sub(r"`[^`]*`", "", without_code), flags=re.MULTILINE)
    within_lines = re.findall(r"(?<![`$\\])\$[^$`\n]+\$", prose)
    assert not within_lines, "the site typesets blocks only"


def test_pictures_have_dark_twins():
    """A transparent or themed drawing and a photographed window are no white charts."""
    pictures, figures = extension("pictures"), DOCS / "figures"
    assert pictures.dark_name("folding-light.png") == "folding-dark.png"
    assert pictures.dark_name("ubiquitin-surface.png") == "ubiquitin-surface-dark.png"
    white = {path.name for path in figures.iterdir() if path.suffix in (".png", ".svg") and pictures.is_white(path)}
    assert {"beside.png", "necks.svg"} <= white
    assert not {"cpu-peers.svg", "cutoff-bins.svg", "ubiquitin-page.png"} & white
    for path in figures.glob("*-dark.png"):
        stem = path.name.removesuffix("-dark.png")
        assert (figures / f"{stem}-light.png").exists() or (figures / f"{stem}.png").exists()


@pytest.mark.parametrize("page", GALLERY, ids=lambda page: page.stem)
def test_notebooks_take_what_there_is(page):
    """Their Python is sound, short, and names public things."""
    cells = code(page)
    assert len(cells) >= 2
    assert page.read_text().startswith("---\nfile_format: mystnb\n")
    for cell in cells:
        assert 5 <= len(cell.splitlines()) <= 25
        assert max(map(len, cell.splitlines())) <= 103  # as many as the page has room for
        for node in ast.walk(ast.parse(cell)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pele_ocl":
                assert node.attr in [*pele_ocl.__all__, "ase"]


def test_the_gallery_shows_each_page_small():
    """A thumbnail for each page and no other; a few hundred pixels wide, small files."""
    index = (DOCS / "gallery" / "README.md").read_text()
    thumbnails = sorted((DOCS / "gallery" / "thumbnails").glob("*.png"))
    assert [path.stem for path in thumbnails] == [page.stem for page in GALLERY]
    for path in thumbnails:
        assert f"(thumbnails/{path.name})" in index
        width = int.from_bytes(path.read_bytes()[16:20], "big")
        assert 200 <= width <= 500
        assert path.stat().st_size < 100_000


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=pytest.mark.slow if page.stem in LONG else ()) for page in GALLERY],
)
def test_notebooks_run(page, tmp_path, monkeypatch):
    """Cells of each, one after the other in an empty folder, draw its picture."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("scipy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PELE_OCL_DEVICE", str(DEVICES[0].index))
    pyplot.switch_backend("Agg")
    pyplot.close("all")
    names: dict[str, object] = {}
    for cell in code(page):
        exec(compile(cell, page.name, "exec"), names)
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    assert figures
    assert all(figure.axes for figure in figures)


# Sphinx without Python's search for garbage, which takes a fifth of its time and finds little.
SPHINX = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"

# As `make site` builds it, and without running notebooks and without pages of sources, which take most of the time.
BUILDS = [
    pytest.param(["-t", "quick", "-D", "nb_execution_mode=off", "-D", "suppress_warnings=myst-nb.lexer"], id="text"),
    pytest.param([], marks=pytest.mark.slow, id="run"),
]


@pytest.mark.parametrize("options", BUILDS)
def test_the_site_builds_without_a_warning(tmp_path, options):
    """Every page is there and loads nothing from a network; with its notebooks run, each of them has its picture."""
    for name in ("furo", "myst_nb", "ase", "scipy", "mathjax"):
        pytest.importorskip(name, reason="the extra `site` is not installed")
    command = [sys.executable, "-c", SPHINX, "-n", "-W", "--keep-going", "-q", "-b", "html", *options, DOCS, tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in GALLERY:
        text = (tmp_path / "gallery" / f"{page.stem}.html").read_text()
        assert options or re.search(r'<img [^>]*src="\.\./_images/\w+\.png"', text), page
    assert "binding-residues" in (tmp_path / "notebooks" / "binding.html").read_text()
    for page in tmp_path.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="((?:https?:)?//[^"]+)"', page.read_text())
        assert not loaded, page
    count, faults = extension("links").broken(tmp_path)
    assert count > 25_000
    assert not faults, "\n".join(faults[:20])
    gather = (tmp_path / "kernels" / "potmap" / "ladder" / "gather-cl.html").read_text()
    assert 'href="../law-clh.html"' in gather
    assert 'href="kernels/potmap/ladder/gather-cl.html"' in (tmp_path / "variants-potmap.html").read_text()
    solvent = (tmp_path / "theory" / "solvent.html").read_text()
    assert solvent.count('<div class="math ') == (DOCS / "theory" / "solvent.md").read_text().count("```math") > 10
    assert 'src="../_static/tex-svg.js' in solvent
    assert "Apache License" in (tmp_path / "_static" / "LICENSE").read_text()
    assert 'id="pele_ocl.EnergyResult"' in (tmp_path / "api" / "energies.html").read_text()
    assert (tmp_path / "searchindex.js").stat().st_size > 100_000
    for page, to in extension("redirects").GONE.items():
        assert f"{to}.html" in (tmp_path / f"{page}.html").read_text()
    assert_searches_lead_to_guides(tmp_path)


FIRST = {
    "install": "start",
    "ligand": "ligands",
    "GPU": "start",
    "minimize": "minimizing",
    "APBS": "coming-from-apbs",
    "CUDA": "start",
    "GROMACS": "formats/inputs",
    "docking": "screen",
    "dynamics": "simulating",
    "metadynamics": "sampling",
    "screen": "screen",
    "prmtop": "formats/amber",
}


# A page that searches for all words, each in a frame of its own, and writes the address of its first result.
SEARCHES = """<!DOCTYPE html><body><script>
for (const word of {words}) {{
  const frame = document.createElement("iframe"), line = document.createElement("p");
  frame.src = `search.html?q=${{word}}`;
  document.body.append(line, frame);
  setInterval(() => {{
    const first = frame.contentDocument.querySelector("a[data-score]");
    if (first) line.textContent = `${{word}}: ${{first.getAttribute("href")}}`;
  }}, 100);
}}
</script></body>"""


def assert_searches_lead_to_guides(site: Path) -> None:
    """Words that a newcomer types lead to the page that is about them, by the search that runs in a browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return
    (site / "searches.html").write_text(SEARCHES.format(words=list(FIRST)))
    handler = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/searches.html"
        options = "--headless", "--no-sandbox", "--virtual-time-budget=20000", "--dump-dom"
        found = subprocess.run([chromium, *options, address], capture_output=True, text=True, timeout=300).stdout
        server.shutdown()
    assert dict(re.findall(r"<p>(\S+): ([^<#]+)\.html", found)) == FIRST


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a site, and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


NOTEBOOK = """---
file_format: mystnb
kernelspec:
  name: python3
---
# {title}

```{{code-cell}}
{code}
```
"""


def test_a_notebook_that_fails_costs_its_own_outputs_alone(tmp_path):
    """With the settings of docs/conf.py: all pages are made, and what ran is not run again."""
    pytest.importorskip("myst_nb", reason="the extra `site` is not installed")
    pages, ran = tmp_path / "pages", tmp_path / "ran"
    pages.mkdir()
    conf = (DOCS / "conf.py").read_text()
    settings = re.findall(r"^(nb_execution_(?:mode|raise_on_error|in_temp|show_tb)) = (\S+)", conf, re.MULTILINE)
    assert dict(settings)["nb_execution_mode"] == '"cache"'
    assert re.search(r"^nb_execution_timeout = \d+ ", conf, re.MULTILINE)
    assert "nb_execution_cache_path" in conf
    given = "\n".join(f"{name} = {value}" for name, value in settings)
    kept = f"nb_execution_cache_path = {str(tmp_path / 'kept')!r}"
    (pages / "conf.py").write_text(f'extensions = ["myst_nb"]\n{given}\n{kept}\nnb_execution_timeout = 2\n')
    right = f"with open({str(ran)!r}, 'a') as file:\n    _ = file.write('.')\nprint(6 * 7)"
    codes = {"right": right, "slow": "import time; time.sleep(60)", "wrong": "1 / 0"}
    for name, code in codes.items():
        (pages / f"{name}.md").write_text(NOTEBOOK.format(title=name, code=code))
    (pages / "index.md").write_text("# Index\n\n```{toctree}\nright\nslow\nwrong\n```\n")
    command = [sys.executable, "-c", SPHINX, "-W", "--keep-going", "-q", "-E", "-b", "html", pages, tmp_path / "made"]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "slow.md" in done.stderr
        assert "wrong.md" in done.stderr
        assert all((tmp_path / "made" / f"{name}.html").exists() for name in codes)
        assert "<span></span>42" in (tmp_path / "made" / "right.html").read_text()
    assert ran.read_text() == "."


def test_outputs_are_of_the_code_that_made_them(tmp_path):
    code_key = extension("code_key").code_key
    (tmp_path / "cl").mkdir()
    (tmp_path / "cl" / "a.cl").write_text("kernel void a() {}")
    first = code_key(tmp_path)
    assert code_key(tmp_path) == first
    (tmp_path / "cl" / "a.cl").write_text("kernel void b() {}")
    assert code_key(tmp_path) != first
