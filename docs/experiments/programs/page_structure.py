#!/usr/bin/env python3
"""What can be wrong of a page by itself, Python's standard library being enough: `python page_structure.py`.

- Links, their anchors and pictures lead to files that are there, and to headings of them.
- Paths, and names of tests, between backticks are there, as are the programs, benchmarks and make targets of command lines.
- What command lines of the program read is there, seen from the project's root, is written by a line above, or is the reader's: capitals.
- A table has one heading, and as many cells in every row; no blank line cuts it in two.
- Files of rows that pages link are in git.

Prints every breach as PAGE:LINE: what is wrong, and ends with status 1 if there is one. check_pages.py runs it too."""
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The site's first page is read from the folder above, where the others then lie.
SITE = ROOT / "docs" / "site" / "index.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`+[^`]*`+")
FOLDERS = "bench|cmake|data|docs|examples|include|python|scripts|src|tests"
PATH = re.compile(rf"`((?:\.ci|{FOLDERS})/[\w./*-]+)`")
# docs/engine.md says that its paths begin in src/kernel, and three of them further down.
ENGINE = {"plan/": "", "backends/": "", "run/": "", "inputs/": "", "range/": "", "laws/": "", "readouts/": "",
          "planes/": "backends/cpu/", "pair_rows/": "backends/cpu/", "backward/": "backends/cpu/"}
TEST = re.compile(r"`(?:[\w/]*/)?(\w+_test)(?:\.cpp)?`|`(?:[\w/]*/)?(test_\w+)\.py`")
PROGRAM = re.compile(rf"(?:^|\s)((?:{FOLDERS})/[\w./-]+\.(?:py|sh))\b")
# Options of the program that name what is read, and those that name what is written.
READS = re.compile(r"--(?:path|x|x2|config|csv|texts|lengths|mask|vectors|graphs|inputs-from|run|model|init)[ =]([\w./-]+)(?![\w./-]|:)")
FILE = re.compile(r"(?<![\w./-])([\w./-]+\.(?:json|npy|csv|txt))\b")
WRITES = re.compile(r"(?:--(?:out|block|save|plot|store|gram)[ =]|> ?)([\w./-]+)")


def pages():
    tops = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    folders = (".github", "docs", "examples", "data", "tests", "bench")
    return [*tops, *(page for folder in folders for page in sorted((ROOT / folder).rglob("*.md")))]


def lines_of(page):
    """(number, line, kind) of a page; the kind is text, code (a block between fences) or shown (an indented block)."""
    fence, comment = None, False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r" *(```+|~~~+)", line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = None
            yield number, line, "code"
        elif mark:
            fence = mark[1]
            yield number, line, "code"
        elif line.startswith("<!--") or comment:
            comment = "-->" not in line
            yield number, line, "comment"
        else:
            yield number, line, "shown" if line.startswith("    ") else "text"


def anchors(page):
    """Those of its headings, as GitHub and the site make them."""
    found = {}
    for _, line, kind in lines_of(page):
        if kind == "text" and re.match(r"#+ ", line):
            name = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip().lower())
            name = re.sub(r"[^\w\- ]", "", name.replace("`", "")).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
            if found[name]:
                found[f"{name}-{found[name]}"] = 0
    return found


def link_breaches(page):
    home = ROOT if page == SITE else page.parent
    for number, line, kind in lines_of(page):
        if kind not in ("text", "comment"):
            continue
        for target in LINK.findall(CODE.sub("", line)):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = urllib.parse.unquote(target).partition("#")
            to = (home / file).resolve() if file else page
            if page == SITE and file == "python/index.md":  # which docs/site/python_reference.py makes
                continue
            if not to.exists():
                yield number, f"the link {target} leads to no file"
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                yield number, f"the link {target} leads to no heading"


def path_exists(path, *roots):
    return any(any(root.glob(name)) for root in roots for name in (path, path + "*"))


def is_registered(name):
    """Whether CTest has a test of this name that is no file."""
    return any(f"NAME {name} " in file.read_text() for file in (ROOT / "tests").rglob("CMakeLists.txt"))


def is_test(name):
    return any((ROOT / "tests").rglob(f"{name}.cpp")) or any((ROOT / "tests").rglob(f"{name}.py"))


def path_breaches(page):
    if page.name == "CHANGELOG.md":  # which says what once was
        return
    for number, line, kind in lines_of(page):
        if kind != "text":
            continue
        for path in PATH.findall(line):
            if not path_exists(path.rstrip("/"), ROOT, page.parent, page.with_suffix("")) and not re.search(r"[A-Z]{4}", path) and not is_registered(path):
                yield number, f"there is no `{path}`"
        for pair in TEST.findall(line):
            name = "".join(pair)
            if not is_test(name):
                yield number, f"there is no test `{name}`"
        if page.name in ("engine.md", "engine-notes.md"):
            for path in re.findall(r"`([\w./*]+)`", line):
                folder = next((name for name in ENGINE if path.startswith(name)), None)
                if folder and not path_exists(ENGINE[folder] + path, ROOT / "src" / "kernel"):
                    yield number, f"there is no `{path}` in src/kernel"


def make_targets():
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def is_benchmark(name):
    return any((ROOT / "bench").rglob(f"{name}.cpp")) or name in (ROOT / "bench" / "CMakeLists.txt").read_text()


def command_breaches(page):
    """Of command lines between backticks or indented."""
    if page.name == "CHANGELOG.md":
        return
    whole = page.read_text(encoding="utf-8")
    for number, line, kind in lines_of(page):
        if kind not in ("text", "shown"):
            continue
        commands = [line.strip()] if kind == "shown" else [code.strip("`") for code in CODE.findall(line)]
        for command in commands:
            for program in PROGRAM.findall(command):
                if not path_exists(program, ROOT, page.parent):
                    yield number, f"there is no {program}"
            for name in re.findall(r"build/release/bench/(\w+)", command):
                if not is_benchmark(name):
                    yield number, f"there is no benchmark {name}"
            for target in re.findall(r"^make ([a-z][\w-]*)", command):
                if target not in make_targets():
                    yield number, f"make has no target {target}"
            if kind == "shown" and re.search(r"(?:^|[ /])widelimit(?:-mpi)? [a-z]", command):
                yield from ((number, f"there is no {file} to read (capitals are the reader's)") for file in unknown_files(command, number, whole))


def read_words(command):
    """What the options of a command read; fit makes the model that it names."""
    return [match[1] for match in READS.finditer(command) if not (match[0].startswith("--model") and " fit " in command)]


def unknown_files(command, number, whole):
    """Of those that the program reads: by an option, or files of networks that stand by themselves."""
    known = set()
    for line in whole.splitlines()[:number - 1]:
        if not line.startswith("|"):
            known |= set(re.split(r"[\s\"'/{}`]+", line)) - {pathlib.PurePath(file).parts[0] for file in read_words(line)}
    own = {pathlib.PurePath(name).parts[0] for name in WRITES.findall(command) if name != "/"}
    for file in [*read_words(command), *FILE.findall(WRITES.sub("", READS.sub("", command)))]:
        first = pathlib.PurePath(file).parts[0]
        if not (ROOT / file).exists() and not re.search("[A-Z]", file) and first not in known | own:
            yield file


def cells(row):
    """How many cells a row has; vertical bars in code and behind a backslash are text."""
    inner = re.sub(r"\\\|", "", row.strip())
    inner = inner.removeprefix("|").removesuffix("|")
    return inner.count("|") + 1


def table_breaches(page):
    table = []
    for number, line, kind in [*lines_of(page), (0, "", "text")]:
        if kind == "text" and re.match(r"\|.*\|$", line):
            table.append((number, line))
            continue
        if table:
            first, heading = table[0]
            if len(table) < 2 or not re.fullmatch(r"\|(?: *:?-+:? *\|)+", table[1][1].strip()):
                yield first, "a table begins without a heading: a blank line cuts it, or |---| is missing"
            else:
                yield from ((at, f"a row of {cells(row)} cells in a table of {cells(heading)}") for at, row in table if cells(row) != cells(heading))
            table = []


def row_files():
    """Files of rows in the repository's history, or None where this is no checkout."""
    found = subprocess.run(["git", "-C", str(ROOT), "ls-files", "docs/experiments/data"], capture_output=True, text=True)
    return {ROOT / name for name in found.stdout.split()} if found.returncode == 0 and found.stdout else None


def row_breaches(page):
    known = row_files()
    if known is None:
        return
    for number, line, kind in lines_of(page):
        for target in LINK.findall(line) if kind == "text" else ():
            file = (page.parent / target.partition("#")[0]).resolve()
            if file.suffix == ".csv" and file.exists() and ROOT / "docs" / "experiments" in file.parents and file not in known:
                yield number, f"the rows {target} are not in git"


def missing():
    """"PAGE:LINE: what is wrong", of all pages."""
    for page in pages():
        for check in (link_breaches, path_breaches, command_breaches, table_breaches, row_breaches):
            yield from (f"{page.relative_to(ROOT)}:{number}: {what}" for number, what in check(page))


def main():
    found = list(missing())
    for line in found:
        print(line)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
