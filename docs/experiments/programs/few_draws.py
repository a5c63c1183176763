"""Standard errors of few draws: where a page has a ±, of how many draws it is, and whether the page says by how many of them an interval
of 95 % reaches to either side where there are fewer than ten. A section with a ± that is not listed here is a breach, too."""
import re

from page_structure import ROOT, lines_of, pages
from tables import standard_errors

FEW = 10
# Errors over inputs and over few draws at once, whose degrees of freedom are the rows' own.
SATTERTHWAITE = None
# (page, heading): the fewest draws that an error of the section is over.
SECTIONS = {
    ("data.md", "How categories are coded"): 8, ("inference.md", "How noise and amplitude are chosen"): 10,
    ("experiments.md", "Learning curves at 8 x 8"): SATTERTHWAITE,
    ("infinite-attention.md", "Accuracy against depth (figure 4)"): SATTERTHWAITE,
    ("infinite-attention.md", "Residual attention: the rows of R"): 5, ("reviews.md", "The protocol of table 3"): 1600,
    ("finite-networks.md", "Every layer"): 256, ("head-specialization.md", "What came out"): 5,
    ("shaped-transformer.md", "Figure 1 left: correlations through depth"): 64,
    ("shaped-transformer.md", "Gradients against depth: shaped, Pre-LN, Post-LN"): 4,
    ("shaped-transformer.md", "Training (figures 5 and 6, tables 1 and 2)"): 3,
    ("signal-propagation.md", "Figures 4 to 6: networks against theory, point by point"): 64, ("signal-propagation.md", "Beyond 64 tokens"): 32,
    ("signal-propagation.md", "Copies, width 32"): 3, ("signal-propagation.md", "Images, width 64"): 3,
    ("signal-propagation.md", "CIFAR-10 and reviews, width 64"): 3, ("signal-propagation.md", "Other blocks"): 3,
    ("signal-propagation.md", "Is the gap log-normal (section 4.3)?"): 20,
    ("tables.md", "Errors"): 10, ("tables.md", "Densities"): 10, ("tables.md", "Where we lose"): 10,
    ("tables.md", "What learning the inputs gains"): 5, ("tables.md", "The network that auto chooses"): 10}
ERROR = re.compile(r"±|\d\)? \+- \.?\d")


def told(draws):
    """What a section says of errors over so few draws, up to what they are of."""
    return f"an interval of 95 % reaches {standard_errors(draws - 1):.1f} standard errors to either side (t, {draws} "


def sections(page):
    """(heading, line, text) of the sections of a page that have errors; the line is that of the first one."""
    heading, first, words = "", 0, []
    for number, line, kind in [*lines_of(page), (0, "# ", "text")]:
        if kind == "text" and re.match(r"#+ ", line):
            if first:
                yield heading, first, " ".join(" ".join(words).split())
            heading, first, words = line.lstrip("#").strip(), 0, []
        if kind == "text":
            words.append(line)
            first = first or (number if ERROR.search(line) else 0)


def breaches(page):
    for heading, line, text in sections(page):
        key = page.name, heading
        if key not in SECTIONS:
            yield line, f"errors under the heading {heading} of which few_draws.py does not know over how many draws they are"
        elif SECTIONS[key] is SATTERTHWAITE:
            if "Satterthwaite" not in text:
                yield line, "errors over inputs and few draws; say that their intervals are Student's t with the degrees of Satterthwaite"
        elif SECTIONS[key] < FEW and told(SECTIONS[key]) not in text:
            yield line, f'errors over {SECTIONS[key]} draws; say: "{told(SECTIONS[key])}DRAWS)"'


def missing():
    for page in pages():
        yield from (f"{page.relative_to(ROOT)}:{line}: {what}" for line, what in breaches(page))
