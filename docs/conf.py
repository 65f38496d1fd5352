"""Documentation site: `make site` builds it of these pages, into build/site.

Blocks ```math are TeX, which MathJax sets in the reader's browser. Its one file and its licence come from a Python
package and go with the site, so no page loads anything from a network.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))  # where the extensions of our own lie

# Notebooks of the course run in a folder of their own, and import course.py.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE / "course"), os.environ.get("PYTHONPATH")]))

project = "pele-ocl"
author = "The pele-ocl developers"
copyright = author
release = re.findall(r'^NEXT = "(.+)"', (HERE.parent / ".packaging" / "hatch_build.py").read_text(), re.MULTILINE)[0]

from code_key import code_key  # noqa: E402

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
extensions += ["contents", "docstrings", "help_pages", "kernels", "pictures", "redirects", "sidebars"]  # of docs/site
if not tags.has("quick"):  # noqa: F821, Sphinx's own; the tests leave out the pages of sources, which are half of all
    extensions.append("sphinx.ext.viewcode")

nitpicky = True
smartquotes = False  # two hyphens begin an option
highlight_language = "none"  # blocks without a language are drawings and shells

myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]  # the two pictures side by side of the front page
myst_fence_as_directive = ["math"]
# Outputs are kept in build/notebooks-KEY, of the code that they came from: what ran is not run anew after a failure.
# A cell that fails or takes too long costs the outputs of its notebook and is a warning; the pages are made.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / f"notebooks-{code_key(HERE.parent)}")
nb_execution_excludepatterns = ["notebooks/*"]  # which have their outputs: docs/notebooks/run.py
nb_execution_in_temp = True
nb_execution_raise_on_error = False
nb_execution_timeout = 900  # seconds of a cell; on busy machines those of the gallery take minutes
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
MATHJAX = Path(find_spec("mathjax").origin).parent / "static" / "mathjax"  # of django-static-mathjax
html_static_path = ["site/static", str(MATHJAX / "es5" / "tex-svg.js"), str(MATHJAX / "LICENSE")]
mathjax_path = "tex-svg.js"
mathjax3_config = {"svg": {"scale": 0.9}}  # letters as large as those of the text
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "site" / "scorer.js")
html_copy_source = False
html_scaled_image_link = False
html_show_copyright = False
