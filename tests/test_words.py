"""Plain words: docstrings, comments of kernels and help texts keep the rules of docs/contributing.md, "Write"."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import click
import pytest

from pele_ocl import cli
from pele_ocl.cli.mmpbsa import mmpbsa
from pele_ocl.cli.pele_run import pele_run

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pele_ocl"
MODULES = sorted(PACKAGE.rglob("*.py"))
KERNELS = sorted((ROOT / "cl").rglob("*.cl*"))

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Pages that are not plain yet, with the number of their faults, which only goes down; all others have none.
FAULTS_LEFT = {
    "docs/performance": 123,
    "docs/theory/": 240,
    "docs/variants": 70,
}

MOST_WORDS = 20  # of a sentence; what stands in parentheses or code counts as none or one
# The first word is a verb that says what is done, or the noun that the thing is: none of these.
NO_NOUN = "The That Those This These There Whether As What Where When Of Which How Why By From So Its It They".split()
NO_BEGINNING = [*NO_NOUN, *"In For Into Within With After Behind Before If To Not Some".split()]  # of a docstring
NO_SENTENCE = re.compile(r"(That of|Those|The same|Whether|As|What|Of|Where)\b")
NOWHERE = re.compile(r"\b(of which|of whom|that of|those|behind)\b", re.IGNORECASE)
PARAMETER = re.compile(r"""[\w*.,"'\- /()]+ : """)


def faults(
    text: str, beginnings: Collection[str], ends: str = r"(?<=;)|(?<=[.!?])(?=\s+[-\dA-Z`(\"])"
) -> Iterator[str]:
    """Yield what is wrong with a paragraph; beginnings : words that it must not begin with; ends : of sentences"""
    if beginnings and (found := re.match(rf"({'|'.join(beginnings)})\b(?! ?=)", text)):
        yield f"begins with {found[1]}"
    if found := NOWHERE.search(text):
        yield f"says {found[1]!r}"
    for sentence in re.split(ends, without_asides(text)):
        if found := NO_SENTENCE.match(sentence.strip()):
            yield f"has a sentence that begins with {found[1]}"
        count = len(re.findall(r"\S*\w\S*", sentence))
        if count > MOST_WORDS:
            yield f"has a sentence of {count} words: {' '.join(sentence.split())}"


def without_asides(text: str) -> str:
    """Return a text without parentheses and brackets, and with one word for each piece of code."""
    text = re.sub(r"``?[^`]*``?", "Code", text)
    while (shorter := re.sub(r"\([^()]*\)|\[[^][]*\]", "", text)) != text:
        text = shorter
    return text


def paragraphs(docstring: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring, each parameter for itself; code, tables and grammars are left out."""
    lines: list[str] = []
    for line in [*docstring.split("\n"), ""]:
        is_parameter, in_parameter = PARAMETER.match(line), bool(lines) and PARAMETER.match(lines[0])
        if lines and (not line.strip() or is_parameter or (in_parameter and not line.startswith(" "))):
            text = " ".join(map(str.strip, lines))
            if not re.match(r">>>|[|]|[-*] |\w+ += |\s", lines[0]) and ">>>" not in text:
                yield text
            lines = []
        if line.strip():
            lines.append(line)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def faults_of(path: Path) -> Iterator[str]:
    """Yield the faults in the docstrings of a module, a line each."""
    for line, text in docstrings(path):
        for number, paragraph in enumerate(paragraphs(text)):
            name, _, words = paragraph.partition(" : ") if PARAMETER.match(paragraph) else ("", "", paragraph)
            for fault in faults(words, [] if number or name else NO_BEGINNING):
                yield f"{path.relative_to(ROOT)}:{line}: {fault}"


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comment of a kernel file, without lists and tables in columns."""
    lines: list[str] = []
    for number, line in enumerate([*path.read_text().split("\n"), ""], 1):
        if found := re.match(r" *// ?(.*)$", line):
            lines.append(found[1])
        elif lines:
            if not any(re.search(r"\s{3,}|^\s*[-|*]|^ ", each) for each in lines):
                yield number - len(lines), " ".join(lines)
            lines = []


def sentences_of(page: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each paragraph and item of a page, without code, tables, headings and addresses."""
    text = re.sub(r"```.*?```", lambda code: "\n" * code[0].count("\n"), page.read_text(), flags=re.DOTALL)
    lines: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        item = re.match(r"\s*([-*+]|\d+\.) ", line)
        is_prose = line.strip() and not re.match(r"\s*(#|\||<|!?\[!|!\[|:::|\()", line)
        if lines and (item or not is_prose):
            yield number - len(lines), " ".join(lines)
            lines = []
        if is_prose and (lines or item or not line.startswith("    ")):
            lines.append(line[item.end() :] if item else line.strip())


def plain(text: str) -> str:
    """Return the words of Markdown: links without addresses, code as one word, no marks."""
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "Code", text))
    return re.sub(r"[*_]{1,2}([^*_]+)[*_]{1,2}", r"\1", text)


def test_pages_are_plain():
    """A colon or a semicolon ends a sentence there, as in comments of kernels."""
    ends = r"(?<=[;:])(?=\s)|(?<=[.!?])(?=\s)"
    found: dict[str, list[str]] = {}
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        group = next((group for group in FAULTS_LEFT if name.startswith(group)), name)
        told = (
            f"{name}:{line}: {fault}" for line, text in sentences_of(page) for fault in faults(plain(text), [], ends)
        )
        found.setdefault(group, []).extend(told)
    more = {group: told for group, told in found.items() if len(told) > FAULTS_LEFT.get(group, 0)}
    assert not more, "\n".join(f"{group}: {len(told)} faults\n" + "\n".join(told) for group, told in more.items())


def test_docstrings_are_plain():
    found = [fault for path in MODULES for fault in faults_of(path)]
    assert not found, "\n".join(found)


def test_comments_of_kernels_are_plain():
    """A colon ends a sentence there, too: names of arguments are explained so."""
    ends = r"(?<=[;:])|(?<=[.!?])(?=\s)"
    found = [
        f"{path.relative_to(ROOT)}:{line}: {fault}"
        for path in KERNELS
        for line, text in comments(path)
        for fault in faults(text, NO_NOUN, ends)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("The charges.", "begins with The"),
        ("Charges, those of a file.", "says 'those'"),
        ("Read charges. Whether they are whole counts.", "has a sentence that begins with Whether"),
        ("Read " + 20 * "one ", "has a sentence of 21 words"),
    ],
)
def test_what_is_not_plain_is_found(text, fault):
    assert next(faults(text, NO_BEGINNING)).startswith(fault)
    assert not list(faults("Read the charges (n,) of `a b`; " + 20 * "one ", NO_BEGINNING))


def options_of(command: click.Command) -> Iterator[click.Parameter]:
    """Yield the options of a command and of all commands below it."""
    yield from command.params
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from options_of(below)


def test_help_texts_are_plain():
    """A list of choices after a colon or a semicolon counts by itself; names in capitals are no words."""
    helps = {" ".join(of.help.split()) for of in options_of(cli.main) if isinstance(of, click.Option) and of.help}
    ends = r"(?<=[;:])|(?<=[.!?])(?=\s)"
    beginnings = [word for word in NO_NOUN if word != "How"]
    plain = {text: re.sub(r"\b[A-Z\d]+\b,?", "", text) for text in helps}
    found = [f"{text}: {fault}" for text in helps for fault in faults(plain[text], beginnings, ends)]
    assert len(helps) > 150
    assert not found, "\n".join(sorted(found))


def test_each_sentence_of_a_help_text_is_written_once():
    """An option that several commands have is one function or value: `pele_ocl/cli/options.py` and its neighbours."""
    trees = {path: ast.parse(path.read_text()) for path in (ROOT / "pele_ocl" / "cli").rglob("*.py")}
    docstrings = {id(node.body[0].value) for tree in trees.values() for node in ast.walk(tree)
                  if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)}  # fmt: skip
    written = [
        (node.value, f"{path.relative_to(ROOT)}:{node.lineno}")
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]
    commands = cli.main, pele_run, mmpbsa
    helps = {of.help for each in commands for of in options_of(each) if isinstance(of, click.Option) and of.help}
    split = [re.split(r"(?<=\.)\s", text) for text in helps]
    long = {each for _, *more in split for each in more if each.count(" ") > 5}
    sentences = {first for first, *_ in split if first.count(" ") > 1} | long
    assert len(sentences) > 200
    places = {each: [place for text, place in written if each in text] for each in sentences}
    assert not {sentence: found for sentence, found in places.items() if len(found) > 1}
