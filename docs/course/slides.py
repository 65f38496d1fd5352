"""Slides made from the chapters of the course: one HTML file a chapter, which needs no network.

    python docs/course/slides.py                  all chapters, into the folder `slides` beside this file
    python docs/course/slides.py 3 -o talk        chapter 3, into the folder talk
    python docs/course/slides.py 3 --answers      with the answer after the question, for whoever teaches

A heading begins a slide; so does what would be too much for the last one. Of a paragraph a slide shows the first
sentence, and the whole paragraph is in its notes: press n. Arrows, space and a swipe turn the pages; the browser's
print makes a PDF of 16:9 pages. After `course.py run 3` its charts stand behind the cells that drew them. Formulas are
set by MathJax if the extra `site` is installed, else they are shown as TeX. Needs markdown-it-py (extra `teach`).
"""

from __future__ import annotations

import argparse
import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

HERE = Path(__file__).resolve().parent
CHAPTERS = sorted(HERE.glob("[0-9]-*.md"))
ROOM, FEW = 24, 5  # lines of text that a slide holds; so few stay with what follows, which is set smaller
SENTENCE = re.compile(r".+?[.?!]\)?(?=\s|$)", re.DOTALL)
CLAUSE = re.compile(r".{40,}?:(?=\s)", re.DOTALL)  # that may stand for a long sentence
KINDS = {".png": "image/png", ".svg": "image/svg+xml"}

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: light-dark(#1b1f24, #e6e8eb); --paper: light-dark(#fff, #15181c);
  --soft: light-dark(#f2f4f7, #22272e); --accent: light-dark(#1558a0, #79b8ff); }}
html {{ scroll-snap-type: y mandatory; background: var(--paper); color: var(--ink); }}
body {{ margin: 0; font: 1em/1.45 system-ui, sans-serif; }}
section {{ box-sizing: border-box; height: 100vh; height: 100dvh; padding: 5vmin 7vmin;
  scroll-snap-align: start; overflow: hidden; display: flex; flex-direction: column; position: relative;
  font-size: max(3.1vmin, 13px); }}
section > div {{ flex: 1; min-height: 0; display: flex; flex-direction: column; overflow: auto; }}
section > div > * {{ flex-shrink: 0; }} section > div > :first-child {{ margin-top: 0; }}
h1 {{ font-size: 2em; }} h2 {{ font-size: 1.4em; margin: 0 0 0.6em; color: var(--accent); }}
pre {{ background: var(--soft); padding: 0.7em 0.9em; font-size: 0.78em; line-height: 1.35; border-radius: 6px;
  overflow: auto; margin: 0.5em 0; }}
code {{ font-family: ui-monospace, monospace; }}
.math {{ overflow-x: auto; overflow-y: hidden; }}
p code, li code, td code {{ background: var(--soft); padding: 0 0.2em; }}
img {{ max-width: 100%; max-height: 55vh; align-self: center; background: #fff; }}
table {{ border-collapse: collapse; font-size: 0.85em; }} td, th {{ padding: 0.25em 0.8em; text-align: left;
  border-bottom: 1px solid var(--soft); }}
aside {{ display: none; background: var(--soft); font-size: 0.62em; padding: 0.8em; max-height: 38%; overflow: auto; }}
.notes aside {{ display: block; }}
footer {{ position: absolute; right: 2vmin; bottom: 1.5vmin; font-size: 0.5em; opacity: 0.6; }}
@media print {{ @page {{ size: 12.8in 7.2in; margin: 0; }} section {{ height: 7.2in; break-after: page; }} }}
</style>{mathjax}</head>
<body>
{slides}
<script>
const slides = [...document.querySelectorAll("section")];
const fit = () => slides.forEach(slide => {{
  const body = slide.querySelector("div");
  slide.style.fontSize = "";
  const least = Math.max(12, 0.012 * Math.min(innerWidth, innerHeight));  // of a phone, where code scrolls
  for (let size = parseFloat(getComputedStyle(slide).fontSize); size > least
       && (body.scrollHeight > body.clientHeight + 1
       || [...body.querySelectorAll("pre")].some(of => of.scrollWidth > of.clientWidth + 1)); size -= 0.5)
    slide.style.fontSize = size + "px";
}});
const at = () => slides.findIndex(slide => slide.getBoundingClientRect().bottom > innerHeight / 2);
const go = n => slides[Math.max(0, Math.min(slides.length - 1, n))].scrollIntoView();
addEventListener("keydown", event => {{
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (["ArrowRight", "ArrowDown", "PageDown", " "].includes(event.key)) go(at() + 1);
  else if (["ArrowLeft", "ArrowUp", "PageUp"].includes(event.key)) go(at() - 1);
  else if (event.key === "Home") go(0);
  else if (event.key === "End") go(slides.length - 1);
  else if (event.key === "n") {{ document.body.classList.toggle("notes"); fit(); }}
  else return;
  event.preventDefault();
}});
addEventListener("resize", fit);
addEventListener("load", fit);
</script>
</body></html>
"""


@dataclass
class Slide:
    """What a slide shows, and its notes. lines : of text that it has so far"""

    heading: str
    parts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: float = 0

    def html(self, number: int, of: int) -> str:
        """The slide as a section."""
        notes = f"<aside>{''.join(self.notes)}</aside>" if self.notes else ""
        return (
            f'<section id="{number}">{self.heading}<div>{"".join(self.parts)}</div>{notes}'
            f"<footer>{number} / {of}</footer></section>"
        )


def without_links(text: str) -> str:
    """Leave the words of links that are no pictures."""
    return re.sub(r"(?<!!)\[([^\]]*)\]\([^)]*\)", r"\1", text)


def lead(text: str, most: int = 170) -> str:
    """Begin a paragraph: its first sentence, and a second one if both are short."""
    sentences = SENTENCE.findall(text) or [text]
    first = sentences[0].strip()
    if len(first) > most and (clause := CLAUSE.match(first)):
        first = clause[0]
    if len(sentences) > 1 and ((first.startswith("**") and len(first) < 60) or len(first + sentences[1]) < most):
        first = f"{first} {sentences[1].strip()}"
    return f"{first[:-1]}." if first.endswith(":") and "`" not in first[-3:] else first


def picture(path: Path, about: str) -> str:
    """A picture, inside the page."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(about)}" src="data:{KINDS[path.suffix]};base64,{data}">'


def blocks(text: str) -> Iterator[tuple[str, list[Token]]]:
    """Split a chapter into its blocks: the type of the first token, and all tokens of each."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    block: list[Token] = []
    depth = 0
    for token in MarkdownIt("commonmark").enable("table").parse(without_links(text)):
        block.append(token)
        depth += token.nesting
        if depth == 0:
            yield block[0].type, block
            block = []


def slides_of(chapter: Path, answer: str = "") -> list[Slide]:
    """Make the slides of a chapter; answer : Markdown that follows the question, if any."""
    markdown = MarkdownIt("commonmark").enable("table")
    slides: list[Slide] = []
    cell, question, title = 0, False, ""

    def add(html: str, lines: float, note: str = "") -> None:
        if slides[-1].lines > FEW and slides[-1].lines + lines > ROOM:
            slides.append(Slide(slides[-1].heading or title))
        slides[-1].parts.append(html)
        slides[-1].lines += lines
        if note:
            slides[-1].notes.append(note)

    def close_question() -> None:
        if question and answer:
            slides.append(Slide("<h2>Answer</h2>"))
            add(markdown.render(without_links(answer)), 10)

    for kind, tokens in blocks(chapter.read_text(encoding="utf-8")):
        first, whole = tokens[0], markdown.renderer.render(tokens, markdown.options, {})
        if kind == "heading_open":
            close_question()
            question = tokens[1].content == "Question"
            is_title = first.tag == "h1"
            slides.append(Slide("" if is_title else whole))
            title = whole.replace("h1>", "h2>") if is_title else title
            if is_title:
                add(whole, 4)
        elif kind == "fence" and first.info.strip() == "math":
            add(f"<p class='math'>\\[{escape(first.content)}\\]</p>", 5)
        elif kind in ("fence", "code_block"):
            add(f"<pre><code>{escape(first.content)}</code></pre>", 1 + 0.9 * first.content.count("\n"))
            if first.info.startswith("{code-cell}"):
                cell += 1
                for number, drawn in enumerate(charts_of(chapter, cell)):
                    add(picture(drawn, f"chart {number + 1} of this cell"), ROOM)
        elif kind == "paragraph_open":
            inline = tokens[1].children or []
            images = [token for token in inline if token.type == "image"]
            for image in images:
                add(picture(chapter.parent / str(image.attrs["src"]), image.content), 14)
            if not images:
                shown = tokens[1].content if question else lead(tokens[1].content)
                add(markdown.render(shown), 1 + len(shown) / 75, "" if question else whole)
        else:
            add(whole, 1 + 1.3 * sum(token.type in ("list_item_open", "tr_open") for token in tokens))
    close_question()
    return slides


def charts_of(chapter: Path, cell: int) -> list[Path]:
    """Charts of a cell that `course.py run` saved, which numbers the values of cells."""
    of = {number: index for index, number in enumerate(shown_cells(chapter), 1)}
    if cell not in of:
        return []
    drawn = HERE / "drawn" / f"{chapter.stem}-{of[cell]}-light.png"
    return [drawn] if drawn.is_file() else []


def shown_cells(chapter: Path) -> list[int]:
    """Cells whose last line is a chart, or another value, by number."""
    from course import cells

    return [
        n for n, cell in enumerate(cells(chapter), 1) if re.match(r"[a-z]\w*\.\w+\(", cell.rstrip().splitlines()[-1])
    ]


def answers() -> dict[str, str]:
    """Answers by the number of their chapter; none where answers.md is kept apart."""
    file = HERE / "answers.md"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return {number: words for number, words in re.findall(r"^\*\*(\d)\. [^*]*\*\* (.*)$", text, re.MULTILINE)}


def page(chapter: Path, answer: str, mathjax: str) -> str:
    """Make the page of a chapter."""
    slides = slides_of(chapter, answer)
    title = re.findall(r"^# (.+)$", chapter.read_text(encoding="utf-8"), re.MULTILINE)[0]
    body = "\n".join(slide.html(number, len(slides)) for number, slide in enumerate(slides, 1))
    has_math = "\\[" in body and mathjax
    return PAGE.format(title=escape(title), slides=body, mathjax=mathjax if has_math else "")


def main(words: Sequence[str] | None = None) -> int:
    """Write the pages that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapter", type=int, nargs="*", help="its number; by default all")
    parser.add_argument("-o", "--output", type=Path, default=HERE / "slides", help="folder")
    parser.add_argument("--answers", action="store_true", help="the answer after each question")
    asked = parser.parse_args(words)
    if unknown := [number for number in asked.chapter if not 0 < number <= len(CHAPTERS)]:
        parser.error(f"there is no chapter {unknown[0]}; chapters are 1 to {len(CHAPTERS)}")
    asked.output.mkdir(parents=True, exist_ok=True)
    mathjax = ""
    if (package := find_spec("mathjax")) and package.origin:  # of django-static-mathjax
        script = Path(package.origin).parent / "static" / "mathjax" / "es5" / "tex-svg.js"
        (asked.output / script.name).write_bytes(script.read_bytes())
        mathjax = f'<script defer src="{script.name}"></script>'
    known = answers() if asked.answers else {}
    for chapter in CHAPTERS:
        if asked.chapter and int(chapter.stem[0]) not in asked.chapter:
            continue
        path = asked.output / f"{chapter.stem}.html"
        path.write_text(page(chapter, known.get(chapter.stem[0], ""), mathjax), encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
