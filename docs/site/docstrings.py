"""Docstrings in the code's own style, turned into what Sphinx reads.

A paragraph of lines `name : what it is` becomes a list, an indented one stays as it is (a formula, or code), and all
others are text. In these a word in `backquotes` is code, and public names and pages of docs/ become links.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pele_ocl

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

BACKLINK = re.compile(r'<a class="viewcode-back" [^>]*>.*?</a>')
ENTRY = re.compile(r"(\w+(?:, \w+)*) : (.*)", re.DOTALL)
ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
CLASSES = [name for name in pele_ocl.__all__ if re.search(r"[a-z][A-Z]", name)]  # Atoms and Energy are words, too
MARK = re.compile(rf"`(?P<code>[^`]+)`|docs/(?P<page>[\w/-]+)\.md|(?P<name>\b(?:{'|'.join(CLASSES)})\b)")


def inline(text: str) -> str:
    """Text with its marks as reStructuredText has them, and nothing else that means anything there."""
    done, at = "", 0
    for mark in MARK.finditer(text):
        done += escaped(text[at : mark.start()]) + marked(mark)
        at = mark.end()
    return done + escaped(text[at:])


def marked(mark: re.Match[str]) -> str:
    """A link where there is a page or a public name, else code; a letter may stand close to either."""
    if mark["page"]:
        return rf"\ :doc:`/{mark['page']}`\ "
    name = mark["code"] or mark["name"]
    return rf"\ :py:obj:`{name}`\ " if name in pele_ocl.__all__ else rf"\ ``{name}``\ "


def escaped(text: str) -> str:
    """Text in which no character is markup."""
    return re.sub(r"([\\*|_<>`])", r"\\\1", text)


def entries(block: str) -> list[str]:
    """Split a block into lines, each with the indented ones below it."""
    return re.split(r"\n(?! )", block)


def translated(block: str) -> list[str]:
    """Write the lines of reStructuredText for a block between blank lines."""
    if block.startswith(" "):
        return ["::", "", *(f"    {line}" for line in block.splitlines())]
    matches = [ENTRY.fullmatch(entry) for entry in entries(block)]
    if all(matches):
        return [line for match in matches if match for line in entry_lines(*match.groups())]
    if "   " in block:  # columns, as of a formula and its source
        return [f"| {inline(line)}" for line in block.splitlines()]
    return inline(block).splitlines()


def entry_lines(names: str, text: str) -> list[str]:
    """An entry of a list: its names, and what they are."""
    words = " ".join(line.strip() for line in text.splitlines())
    return [", ".join(f"``{name}``" for name in names.split(", ")), f"    {inline(words)}"]


def translate(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring."""
    blocks = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    lines[:] = [line for block in blocks if block.strip() for line in (*translated(block), "")]


def plain_names(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """A signature in which names for types, such as Floats, stand as they are in the code."""
    return tuple(text and ALIAS.sub(r"\1", text) for text in (signature, returned))


def public_or_plain(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Link an annotation: classes live in modules of their own and are documented by their public names.

    Names that are not public, NumPy's among them, stay text.
    """
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    if name not in pele_ocl.__all__:
        return content
    domain = env.get_domain("py")
    for full in (f"pele_ocl.{name}", f"pele_ocl.{name}.{name}"):
        found = domain.resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, content)
        if found is not None:
            return found
    return None


def without_backlinks(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Take the links from pages of code to the reference away: of inherited members they lead nowhere."""
    if page.startswith("_modules/"):
        context["body"] = BACKLINK.sub("", context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", translate)
    app.connect("autodoc-process-signature", plain_names)
    app.connect("missing-reference", public_or_plain)
    app.connect("html-page-context", without_backlinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
