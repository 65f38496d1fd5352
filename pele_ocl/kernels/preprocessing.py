"""C preprocessor for the sources in cl/, which preserves comments and line breaks in macros for readability."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|"(?:\\.|[^"\\])*"'
    r"|\.?\d(?:[eEpP][+-]|[\w.])*"  # numbers
    r"|[A-Za-z_]\w*|\s+|##|.",
    re.DOTALL,
)
NAME = re.compile(r"[A-Za-z_]\w*")
DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)", re.DOTALL)
COMMENTS_AT_END = re.compile(r"(?:^[ \t]*//[^\n]*\n)+\Z", re.MULTILINE)
CHOICE = re.compile(r"\(([^()]*\?[^()]*)\)")  # within the innermost parentheses
KEPT = ("pragma",)  # directives that are not removed
MOST_STEPS = 100_000


@dataclass(frozen=True)
class Macro:
    """A macro. parameters : None for an object-like macro"""

    body: str
    parameters: tuple[str, ...] | None = None


@dataclass
class Preprocessor:
    """Resolve macros and conditions in a source with included headers.

    macros : by name, initially those defined by the host
    """

    macros: dict[str, Macro] = field(default_factory=dict)

    @classmethod
    def with_values(cls, values: Mapping[str, int | str]) -> Preprocessor:
        """Create a preprocessor with the macros defined by the host."""
        return cls({name: Macro(str(value)) for name, value in values.items()})

    def resolve(self, source: str) -> str:
        """Return the source without directives, dead branches and macros. Raises ValueError if a macro is missing."""
        done = list[str]()
        for code in self._parts(source, done):
            done.append(self.expand(code))
        return "".join(done)

    def _parts(self, source: str, done: list[str]) -> Iterator[str]:
        """Yield the code before each directive, and process the directive. done : output so far"""
        code = list[str]()
        taken: list[tuple[bool, bool]] = []  # for each open condition, whether this branch and whether any is taken
        for line in _logical_lines(source):
            found = DIRECTIVE.match(line)
            if found is None:
                if all(now for now, _ in taken):
                    code.append(line)
                continue
            yield "\n".join(code) + "\n" if code else ""
            code = []
            self._obey(found[1], found[2], taken, done)
        yield "\n".join(code)

    def _obey(self, word: str, rest: str, taken: list[tuple[bool, bool]], done: list[str]) -> None:
        """Process a directive."""
        is_live = all(now for now, _ in taken)
        if word in ("if", "ifdef", "ifndef"):
            value = is_live and self._holds(word, rest)
            taken.append((value, value))
        elif word in ("elif", "else"):
            was = taken.pop()[1]
            value = not was and all(now for now, _ in taken) and (word == "else" or self._holds("if", rest))
            taken.append((value, was or value))
        elif word == "endif":
            taken.pop()
        elif not is_live:
            return
        elif word == "define":
            self._define(rest)
            if done:
                done[-1] = COMMENTS_AT_END.sub("", done[-1])  # remove comments about the macro
        elif word == "undef":
            self.macros.pop(rest.split()[0], None)
        elif word == "error":
            raise ValueError(rest)
        elif word in KEPT:
            done.append(f"#{word} {self.expand(rest)}\n")

    def _holds(self, word: str, rest: str) -> bool:
        """Return whether a condition is true."""
        text = _without_comments(rest)
        if word != "if":
            return (text.split()[0] in self.macros) == (word == "ifdef")
        text = re.sub(r"\bdefined\s*\(?\s*(\w+)\s*\)?", lambda of: str(int(of[1] in self.macros)), text)
        return bool(value_of(NAME.sub("0", self.expand(text))))

    def _define(self, rest: str) -> None:
        name = NAME.match(rest)
        assert name is not None, rest
        after, parameters = rest[name.end() :], None
        if after.startswith("("):
            inner, _, after = after[1:].partition(")")
            parameters = tuple(each.strip() for each in inner.split(",") if each.strip())
        self.macros[name[0]] = Macro(_without_line_comments(after).strip(), parameters)

    def expand(self, text: str) -> str:
        """Expand all macros. Raises ValueError for endless recursion."""
        done, at = list[str](), 0
        for _ in range(MOST_STEPS):
            found = TOKEN.match(text, at)
            if found is None:
                return "".join(done)
            token, at = found[0], found.end()
            macro = self.macros.get(token)
            if macro is None:
                done.append(token)
                continue
            replaced = self._replaced(macro, text, at)
            if replaced is None:
                done.append(token)
                continue
            body, at = replaced
            text, at = body + text[at:], 0
        raise ValueError("macros without end")

    def _replaced(self, macro: Macro, text: str, at: int) -> tuple[str, int] | None:
        """Return the expansion of a macro and the index after it; None if a function-like macro is not called."""
        if macro.parameters is None:
            return macro.body, at
        opening = re.compile(r"\s*\(").match(text, at)
        if opening is None:
            return None
        arguments, end = _arguments(text, opening.end())
        arguments = arguments if macro.parameters or arguments != [""] else []
        if len(arguments) != len(macro.parameters):
            raise ValueError(f"{len(arguments)} arguments for {len(macro.parameters)} of {macro.body}")
        given = dict(zip(macro.parameters, arguments, strict=True))
        tokens = TOKEN.findall(macro.body)
        body = list[str]()
        for k, token in enumerate(tokens):
            if token == "##":
                while body and body[-1].isspace():
                    body.pop()
            elif token.isspace() and _joins(tokens, k, -1):
                continue
            elif token in given:
                body.append(given[token] if _is_joined(tokens, k) else self.expand(given[token]))
            else:
                body.append(token)
        return "".join(body), end


def _is_joined(tokens: list[str], k: int) -> bool:
    return _joins(tokens, k, -1) or _joins(tokens, k, 1)


def _joins(tokens: list[str], k: int, step: int) -> bool:
    """Return whether the next token on one side, ignoring spaces, is ##."""
    k += step
    while 0 <= k < len(tokens) and tokens[k].isspace():
        k += step
    return 0 <= k < len(tokens) and tokens[k] == "##"


def _arguments(text: str, at: int) -> tuple[list[str], int]:
    """Return the arguments in parentheses, and the index after them."""
    depth, parts = 0, [""]
    while True:
        found = TOKEN.match(text, at)
        if found is None:
            raise ValueError("a macro's parentheses do not end")
        token, at = found[0], found.end()
        if token == ")" and depth == 0:
            return [part.strip() for part in parts], at
        if token == "," and depth == 0:
            parts.append("")
            continue
        depth += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
        parts[-1] += token


def _logical_lines(source: str) -> Iterator[str]:
    """Yield lines; a directive continued with backslashes is yielded as one line, including its line ends."""
    lines = iter(source.split("\n"))
    for line in lines:
        if DIRECTIVE.match(line):
            while line.endswith("\\"):
                line = line[:-1].rstrip() + "\n" + next(lines)
        yield line


def _without_comments(text: str) -> str:
    """Replace each comment by a space."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def _without_line_comments(text: str) -> str:
    return re.sub(r"[ \t]*//[^\n]*", "", text)


_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def value_of(text: str) -> int:
    """Evaluate a condition. Raises ValueError if it is not an integer."""
    text = _choice(CHOICE.sub(lambda found: f"({_choice(found[1])})", text))
    words = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or ").replace("/", "//"))
    return _of_tree(ast.parse(words.strip(), mode="eval").body)


def _choice(text: str) -> str:
    """Convert `a ? b : c` to Python."""
    condition, is_choice, rest = text.partition("?")
    if not is_choice:
        return text
    value, _, other = rest.partition(":")
    return f"({value}) if ({condition}) else ({_choice(other)})"


def _of_tree(tree: ast.expr) -> int:
    match tree:
        case ast.Constant(value=int(value)):
            return value
        case ast.BoolOp(op=ast.And(), values=values):
            return int(all(map(_of_tree, values)))
        case ast.BoolOp(values=values):
            return int(any(map(_of_tree, values)))
        case ast.IfExp(test=test, body=value, orelse=other):
            return _of_tree(value if _of_tree(test) else other)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not _of_tree(operand))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_of_tree(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_of_tree(left), _of_tree(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return int(_OPERATORS[type(op)](_of_tree(left), _of_tree(right)))
    raise ValueError(f"no condition: {ast.unparse(tree)}")
