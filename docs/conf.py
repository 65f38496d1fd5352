"""Documentation site: `make site` builds it of these pages, into build/site.

Formulas are text, in the letters of Unicode, so that a browser, an editor and a terminal show the same ones: no library
sets them, and no page of the site loads anything from a network.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))  # where the extensions of our own lie

# Notebooks of the course run in a folder of their own, and import course.py.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE / "course"), os.environ.get("PYTHONPATH")]))

project = "pele-ocl"
author = "The pele-ocl developers"
copyright = author
release = re.findall(r'^version = "(.+)"', (HERE.parent / "pyproject.toml").read_text(), re.MULTILINE)[0]

extensions = ["myst_nb", "sphinx.ext.autodoc", "contents", "docstrings", "help_pages", "kernels"]
if not tags.has("quick"):  # noqa: F821, Sphinx's own; the tests leave out the pages of sources, which are half of all
    extensions.append("sphinx.ext.viewcode")
exclude_patterns = ["performance/cpu-*.md", "performance/h200-*.md"]  # docs/performance.md has their text
nitpicky = True
smartquotes = False  # two hyphens begin an option
highlight_language = "none"  # blocks without a language are formulas, drawings and shells

myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_excludepatterns = ["notebooks/*"]  # of files of the reader's own; a test runs them on made ones
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True

autodoc_default_options = {"members": True, "inherited-members": "BaseException, tuple"}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Floats", "Ints", "Strings", "Progress")}
add_module_names = False
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"pele-ocl {release}"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
