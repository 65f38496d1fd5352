"""Words: the sentences of help texts, each written in one place, and messages without lost or odd pieces."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
from test_architecture import parsed

from pele_ocl import cli

ROOT = Path(__file__).parent.parent


def options_of(command: click.Command) -> Iterator[click.Parameter]:
    """Yield the options of a command and of all commands below it."""
    yield from command.params
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from options_of(below)


def test_each_sentence_of_a_help_text_is_written_once():
    """An option that several commands have is one function or value: `pele_ocl/cli/options.py` and its neighbours."""
    trees = {path: parsed(path) for path in (ROOT / "pele_ocl" / "cli").rglob("*.py")}
    docstrings = {id(node.body[0].value) for tree in trees.values() for node in ast.walk(tree)
                  if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)}  # fmt: skip
    written = [
        (node.value, f"{path.relative_to(ROOT)}:{node.lineno}")
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]
    helps = {of.help for of in options_of(cli.main) if isinstance(of, click.Option) and of.help}
    split = [re.split(r"(?<=\.)\s", text) for text in helps]
    long = {each for _, *more in split for each in more if each.count(" ") > 5}
    sentences = {first for first, *_ in split if first.count(" ") > 1} | long
    assert len(sentences) > 200
    places = {each: [place for text, place in written if each in text] for each in sentences}
    assert not {sentence: found for sentence, found in places.items() if len(found) > 1}


BRITISH = re.compile(r"[Mm]inimis(?:e|ed|es|er|ers|ing|ation|ations)\b")
ASKED = ("minimise'", '"minimise"', "optimize minimise", "pele_ocl.minimise")  # what others may type, and its answers


def test_minimize_is_spelled_one_way():
    """With z in pages, help texts, messages, docstrings and kernels."""
    kinds = {".py", ".md", ".cl", ".clh", ".toml", ".txt", ".html", ".yaml", ".cff"}
    files = [file for folder in ("pele_ocl", "cl", "docs", "tests", ".conda") for file in (ROOT / folder).rglob("*")]
    files += [ROOT / "README.md", ROOT / "pyproject.toml", ROOT / "CITATION.cff", ROOT / "Makefile"]
    wrong = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files
        if (file.suffix in kinds or file.name == "Makefile") and file != Path(__file__)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if BRITISH.search(line) and not any(asked in line for asked in ASKED)
    ]
    assert not wrong


JOINED = re.compile(r"""[\w;,.:})](?<!\\n)["']\n\s*f?["'][a-z]{2}""")  # pieces of a text without a blank between them


def test_no_piece_of_a_message_is_lost():
    """A piece on a line of its own is a statement without effect if parentheses are missing."""
    lost = list[str]()
    for path in (ROOT / "pele_ocl").rglob("*.py"):
        source = path.read_text()
        lost += [f"{path}:{source.count(chr(10), 0, of.start()) + 1}" for of in JOINED.finditer(source)]
        for node in ast.walk(parsed(path)):
            may_have_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            docstring = node.body[0] if may_have_docstring and node.body else None
            texts = filter(_is_text, ast.iter_child_nodes(node))
            lost += [f"{path}:{of.lineno}" for of in texts if of is not docstring]
    assert not lost


def _is_text(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))


ODD = re.compile(r"\S [,;](?: |$)|[\w,;] {2,}(?=[a-z\ufffc])")  # a blank before a comma, or several blanks
HEAD = 14  # width of the heads of lines in printed results


def test_blanks_of_messages_are_single_and_not_before_commas():
    wrong = [
        f"{path}:{node.lineno}: {text!r}"
        for path in (ROOT / "pele_ocl").rglob("*.py")
        for node, text in _messages(parsed(path))
        if any(of.end() != HEAD for of in ODD.finditer(text))
    ]
    assert not wrong


def _messages(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield the texts of several words that are not docstrings, with U+FFFC for what is formatted into them."""
    pieces = {id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for piece in node.values}
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant | ast.JoinedStr) or id(node) in pieces | docstrings:
            continue
        values = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(of.value) if isinstance(of, ast.Constant) else "\ufffc" for of in values)
        if re.search(r"[a-z] [a-z]+ [a-z]", text) and "\n" not in text:
            yield node, text
