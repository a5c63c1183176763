"""Figures of sentences: each is in a table of its page, computed from rows (prose.py, or a line that a program makes), or one of
data/printed/sentences.csv, which says where it is from. check_pages.py looks for others."""
import re

from page_structure import CODE, lines_of
from tables import DATA, EXPERIMENTS, read

# What a program measured: with a decimal point, in percent, or with an error. Settings stand behind an equality sign, or are of a paper.
FIGURE = re.compile(r"(?<![\w.,^/])[+-]?\d*\.\d+(?![\w.]*\.\d)(?:\(\d+\))?|(?<![\w.])\d+(?:\.\d+)? ?%")
SETTING = re.compile(r"arXiv:\S+|version \S+|an interval of 95 % reaches \S+ standard errors to either side|\d+ % (?:interval|quantile)s?|intervals? of 95 %"
                     r"|(?:[=<>]|section|equation|definition|theorem|lemma|[tT]able|[fF]igure) -?\d*\.?\d+")


def said(page):
    """(what has no file of its own, where it is from) of the sentences of a page, by data/printed/sentences.csv."""
    _, _, rows = read(DATA / "printed" / "sentences.csv")
    return [words for name, words, _ in rows if name == page.name]


def of_tables(page):
    """The numbers of a page's tables, without zeros before the point."""
    return {number.lstrip("+-0") for _, line, kind in lines_of(page) if kind == "text" and line.startswith("|")
            for number in re.findall(r"[+-]?\d*\.?\d+", line.replace(",", ""))}


def open_figures(page, computed):
    text = [line for _, line, kind in lines_of(page) if kind == "text" and not line.startswith(("|", "#", "!["))]
    words = " ".join(CODE.sub(" ", re.sub(r"\]\([^)]*\)", "]", " ".join(text))).split())
    whole = " ".join(page.read_text().split())
    for known in (*computed, *said(page)):
        if known not in whole:
            yield f'"{known}", which the page does not say'
        words = words.replace(" ".join(CODE.sub(" ", re.sub(r"\]\([^)]*\)", "]", known)).split()), "*")
    tables = of_tables(page)
    for found in FIGURE.finditer(SETTING.sub("*", words)):
        number = re.match(r"[+-]?(\d*\.?\d+)", found[0])[1].lstrip("0")
        if number not in tables:
            yield "... " + SETTING.sub("*", words)[max(0, found.start() - 60):found.end() + 25]


def missing(computed):
    """(page, figure with the words before it) of every figure of a sentence that is neither in a table of its page, nor in a piece or a
    line that is computed, {page: [words]}, nor said; and what is said and stands on no page."""
    for page in sorted((EXPERIMENTS.parent / "experiments.md", *EXPERIMENTS.glob("*.md"))):
        yield from ((page.name, figure) for figure in open_figures(page, computed.get(page, [])))
