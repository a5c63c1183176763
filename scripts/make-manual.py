#!/usr/bin/env python3
"""make-manual.py PROGRAM FOLDER: manual pages from the program's --help: one for it, and one for each command, also of
those below others (widelimit-sde-simulate.1). They are named after the program's file."""

import datetime
import os
import pathlib
import re
import subprocess
import sys

DESCRIPTIONS = 30  # The column where the help describes options.
EXAMPLE_WIDTH = 72  # What an 80-column terminal leaves of an indented line.

LONGEST_TITLE = 29


def output(program, *arguments, columns=999_999):
    environment = {**os.environ, "COLUMNS": str(columns)}
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True, env=environment).stdout


def escaped(text):
    """Text that groff prints as it is: hyphens are those of options, which people copy."""
    for character, name in {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}.items():
        text = text.replace(character, name)
    return text


def filled(text):
    """A line of a paragraph. Words too long for a line may be broken after these marks."""
    words = [re.sub(r"([|,/])(?=.)", r"\1\\:", escaped(word)) if len(word) > 20 else escaped(word) for word in text.split()]
    line = " ".join(words)
    return rf"\&{line}" if line.startswith(".") else line


def bold(text):
    return rf"\fB{escaped(text)}\fR"


def tagged(tag, lines):
    return [".TP", tag, *lines]


class Section:
    """What stands under one heading of the help: its lines, or paragraphs if it has no heading."""

    def __init__(self, heading):
        self.heading = heading
        self.lines = []

    def rows(self):
        """(name, lines of the description) of each row of a table."""
        rows = []
        for line in self.lines:
            if not line.startswith("   "):
                name, _, description = line[2:].partition("  ")
                rows.append((name, [description.strip()] if description else []))
            else:
                rows[-1][1].append(line[DESCRIPTIONS:])
        return rows


def sections_of(help_text):
    """Purpose, usage and sections of a help."""
    purpose, usage, *lines = help_text.splitlines()
    sections = []
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line.endswith(":") and not line.startswith(" ") and following.startswith("  "):
            sections.append(Section(line[:-1]))
        elif line and not line.startswith(" "):
            sections.append(Section(None))
            sections[-1].lines.append(line)
        elif line:
            sections[-1].lines.append(line)
    return purpose, usage.removeprefix("Usage: "), sections


def description(lines):
    """Text, and the choices below it ("npy: arrays") as a list of their own."""
    text = [line for line in lines if not re.match(r"[a-z0-9-]+: ", line)] if len(lines) > 1 else lines
    choices = [line.partition(": ") for line in lines if line not in text]
    listed = [part for word, _, meaning in choices for part in tagged(bold(word), [filled(meaning)])]
    return [filled(line) for line in text] + ([".RS", ".PD 0", *listed, ".PD", ".RE"] if listed else [])


def option_tag(name):
    """Names in bold, what they take in italics, and whether they must be given."""
    names, *rest = name.replace(" REQUIRED", " (required)").replace(" Needs: ", " needs ").split(" ")
    shown = ", ".join(bold(one) for one in names.split(","))
    return " ".join([shown, *(rf"\fI{filled(word)}\fR" if word.isupper() else filled(word) for word in rest)])


def top_level(text, separator):
    """Parts around the first separator outside of brackets."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if depth <= 0 and text.startswith(separator, place):
            return text[:place], text[place + len(separator) :]
    return text, ""


def configuration(section):
    """A field an item: what it may be and its default, then what it means."""
    page = [".SH CONFIGURATION", "Fields without a default must be given."]
    for line in section.lines:
        name, _, rest = line.strip().partition(": ")
        values, meaning = top_level(rest, "; ")
        page += tagged(f"{bold(name)}: {filled(values)}", [filled(meaning)])
    return page


def verbatim(section):
    heading = [] if section.heading.startswith("Example") else [".PP", filled(section.heading + ":")]
    return [*heading, ".PP", ".EX", *(escaped(line.removeprefix("  ")) for line in section.lines), ".EE"]


def is_table(section):
    """Descriptions stand in their column."""
    return any(line[DESCRIPTIONS - 2 : DESCRIPTIONS] == "  " and line[DESCRIPTIONS : DESCRIPTIONS + 1].strip() for line in section.lines)


def table(section):
    names = {"Positionals": "ARGUMENTS", "Subcommands": "COMMANDS"}
    page = [f".SH {names.get(section.heading, section.heading.upper())}"]
    for name, lines in section.rows():
        page += tagged(option_tag(name), description(lines) or [r"\&"])
    return page


def page_of(name, version, purpose, usage, wide, narrow, related):
    """`wide` has every line whole; from `narrow` come the examples, which are broken for a shell."""
    date = datetime.date.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp())))
    purpose = purpose.removesuffix(".")
    first, _, rest = usage.partition(" [")
    # The title stands twice in a line, beside the words between.
    title = name.upper() if len(name) <= LONGEST_TITLE else "WIDELIMIT"
    page = [f'.TH {title} 1 {date:%Y-%m-%d} "widelimit {version}" "User Commands"', ".nh", ".ad l"]
    page += [".SH NAME", rf"{escaped(name)} \- {filled(purpose)}", ".SH SYNOPSIS", f"{bold(first)} {filled('[' + rest)}"]
    page += [".SH DESCRIPTION", filled(purpose) + "."]
    for section in wide:
        if section.heading is None and "COMMAND --help" not in section.lines[0]:
            page += [".PP", filled(" ".join(section.lines))]
    for section in wide:
        if section.heading is not None and section.heading.startswith("Configuration"):
            page += configuration(section)
        elif section.heading is not None and is_table(section):
            page += table(section)
    examples = [section for section in narrow if section.heading and not section.heading.startswith("Configuration") and not is_table(section)]
    if examples:
        page += [".SH EXAMPLES", *(line for section in examples for line in verbatim(section))]
    if related:
        page += [".SH SEE ALSO", *(rf".BR \%{escaped(one)} (1){',' if one != related[-1] else ''}" for one in related)]
    return "\n".join(page) + "\n"


def write_pages(program, folder, version, command=(), parent=None):
    """The page of one command, and those of the commands below it."""
    name = "-".join([program.name, *command])
    wide = output(program, *command, "--help")
    purpose, usage, sections = sections_of(wide)
    narrow = sections_of(output(program, *command, "--help", columns=EXAMPLE_WIDTH))[2]
    below = [row for section in sections if section.heading == "Subcommands" for row, _ in section.rows()]
    related = ([parent] if parent else []) + [f"{name}-{one}" for one in below]
    (folder / f"{name}.1").write_text(page_of(name, version, purpose, usage, sections, narrow, related))
    for one in below:
        write_pages(program, folder, version, (*command, one), name)


def main():
    program, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    # Without what --version tells of the machine that builds.
    version = output(program, "--version").splitlines()[0].split()[-1]
    write_pages(program, folder, version)


if __name__ == "__main__":
    main()
