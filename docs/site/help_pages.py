"""Help texts of docs/cli as pages: a title, and the text as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers import Parser

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class HelpParser(Parser):
    """A text whose first line is `$ pele-ocl energy --help`."""

    supported: ClassVar[tuple[str, ...]] = ("help",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Make a section of the text."""
        self.setup_parse(inputstring, document)
        name = inputstring.partition("\n")[0].removeprefix("$ ").removesuffix(" --help")
        section = nodes.section(ids=[nodes.make_id(name)])
        section += nodes.title(name, name)
        section += nodes.literal_block(inputstring, inputstring, language="none")
        document += section
        self.finish_parse()


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_source_suffix(".txt", "help")
    app.add_source_parser(HelpParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
