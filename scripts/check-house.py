#!/usr/bin/env python3
"""Checks how the house is built; `make house` and the test headers/house run it.

    check-house.py PROJECT

- Folders include each other only as the table of CONTRIBUTING.md says, every entry of which is used, and in no circle.
- Folders below the top include each other in no circle, but for those that stand in KNOWN_CIRCLES, which only shrinks.
- Files of the Python package import each other in no circle, imports within functions included.
- The program includes public headers of the library only, and those of `distributed`, which has none. It starts no shell, and prints by `cli/output/` alone, which takes
  out what a terminal would obey (a few files print constants).
- A test has the path and name of the public header or the source that it tests, or says in its first line what it is about.
- No source has more than 460 lines, no class of the library more than 13 data members, and no comment more than 120
  columns (the formatter sees to code).
- No line of prose of a page has more than 160 columns: tables, code and links may.
- Nothing stands at the top but what belongs there: what a command wrote into a checkout is not added by mistake.
- No more files know a primitive operation, or a nonlinearity, than the tables of docs/engine.md say, and every primitive
  has a row there.

Prints every breach, as FILE:LINE: what is wrong, and exits with 1 if there is one.
"""
import ast
import collections
import pathlib
import re
import shutil
import subprocess
import sys

TOP = {".ci", ".clang-format", ".clang-tidy", ".github", ".gitignore", ".pre-commit-config.yaml", "bench", "cmake", "data", "docs", "examples", "include", "licences",
       "python", "scripts", "src", "tests", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CMakePresets.json",
       "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "pyproject.toml"}
# Folders of src that include each other in a circle today. What leaves one is taken out here.
KNOWN_CIRCLES = [
    {"cli/options", "cli/output", "cli/plots", "cli/program"},
    {"cli/gp", "cli/grams", "cli/models", "cli/quality", "cli/report", "cli/tasks"},
]
MOST_LINES = 460
MOST_MEMBERS = 13
MOST_COLUMNS = 120
MOST_PAGE_COLUMNS = 160
INCLUDE = re.compile(r'#include "([^"]+)"')
SHELL = re.compile(r"\b(?:popen|(?<!::)system|std::system|exec[lv]p?e?)\(")
PRINT = re.compile(r"\b(?:fmt::print|f?puts|f?printf|fwrite)\(|std::c(?:out|err)\b")
PRINTERS = {"output/result_text.cpp", "output/progress_bar.cpp", "program/interrupt.cpp", "program/program_main.cpp",
            "program/help_text.cpp", "program/completion_command.cpp"}
CLASS = re.compile(r"^\s*(?:class|struct) (?:\[\[\w+\]\] )?(\w+)[^;]*\{")
# A row of a table: a primitive or a nonlinearity, and how many files know it.
KNOWN_BY = re.compile(r"^\| `(\w+)` \| (\d+) \|", re.MULTILINE)
NONLINEARITY_FOLDERS = ("include/widelimit/numerics/", "include/widelimit/layers/", "src/numerics/", "src/layers/")
MEMBER = re.compile(r"^[\w:<>,&*\s()\[\]]*?\b\w+_(?:\s*=[^;]*|\{[^;]*\})?(?:, \*?\w+_(?:\s*=[^;,]*|\{[^;]*\})?)*;")


def sources(project):
    folders = ("include", "src", "python/src", "examples", "bench", "tests")
    return sorted(path.relative_to(project) for folder in folders for path in (project / folder).rglob("*.[ch]pp"))


def library_folder(path):
    """The folder of the library that a file belongs to; None for the rest, and for headers that stand above all folders."""
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return parts[2] if parts[0] == "include" and len(parts) > 3 else None


def allowed_includes(project):
    """The table of CONTRIBUTING.md: folder -> the folders that it may include."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", (project / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    return {folder: set(re.findall(r"`(\w+)`", others)) for folder, others in rows}


def circle(graph):
    """A list of folders or files that use each other in a circle, or None."""
    done = set()

    def visit(folder, above):
        if folder in above:
            return above[above.index(folder):] + [folder]
        if folder not in done:
            for other in sorted(graph.get(folder, ())):
                found = visit(other, above + [folder])
                if found:
                    return found
            done.add(folder)
        return None

    return next(filter(None, (visit(folder, []) for folder in sorted(graph))), None)


def include_breaches(project, lines_of):
    allowed = allowed_includes(project)
    used = collections.defaultdict(set)
    for path, lines in lines_of.items():
        folder = library_folder(path)
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line) if folder else None
            header = found[1] if found else ""
            target = header.removeprefix("widelimit/").split("/")
            if len(target) < 2 or target[0] == folder:
                continue
            used[folder].add(target[0])
            if target[0] not in allowed.get(folder, ()):
                yield f"{path}:{number}: `{folder}` may not include `{target[0]}` (CONTRIBUTING.md)"
            # `distributed` has no public headers: it is not part of the library, but of the programs.
            if folder == "cli" and not header.startswith("widelimit/") and target[0] != "distributed":
                yield f'{path}:{number}: the program includes the private header "{header}"'
    for folder, others in allowed.items():
        for other in sorted(others - used[folder]):
            yield f"CONTRIBUTING.md: `{folder}` is allowed to include `{other}`, which it does not"
    found = circle(used)
    if found:
        yield "folders include each other in a circle: " + " -> ".join(found)


def circles(graph):
    """The sets of folders of which each reaches every other, as sets of more than one."""
    def reached(folder):
        found, open_ends = set(), [folder]
        while open_ends:
            new = graph.get(open_ends.pop(), set()) - found
            found |= new
            open_ends += new
        return found

    reaches = {folder: reached(folder) for folder in graph}
    sets = {frozenset(other for other in reaches[folder] if folder in reaches.get(other, ())) for folder in graph}
    return [each for each in sets if len(each) > 1]


def deep_circle_breaches(project, lines_of):
    """Of folders at any depth of src."""
    used = collections.defaultdict(set)
    for path, lines in lines_of.items():
        if path.parts[0] != "src":
            continue
        folder = path.parent.relative_to("src").as_posix()
        for found in filter(None, map(INCLUDE.match, lines)):
            target = pathlib.PurePosixPath(found[1])
            if target.parent.as_posix() != folder and (project / "src" / target).exists():
                used[folder].add(target.parent.as_posix())
    found = circles(used)
    for circle_of in found:
        if circle_of not in KNOWN_CIRCLES:
            yield "folders of src include each other in a circle that KNOWN_CIRCLES has not: " + ", ".join(sorted(circle_of))
    for known in KNOWN_CIRCLES:
        if frozenset(known) not in found:
            yield "KNOWN_CIRCLES has a circle that is there no longer: " + ", ".join(sorted(known))


def python_imports(project):
    """file -> the files of the Python package that it imports, also within functions."""
    root = project / "python" / "widelimit"
    files = {path: path.relative_to(root).with_suffix("").parts for path in root.rglob("*.py")}
    known = {parts[:-1] if parts[-1] == "__init__" else parts: path for path, parts in files.items()}
    graph = {}
    for path, parts in files.items():
        found = graph[str(path.relative_to(project))] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            base = parts[:len(parts) - node.level] + tuple((node.module or "").split(".") if node.module else ())
            for name in node.names:
                # Of `from . import x` the file x, which may be the compiled half; of `from .x import y` the file x.
                target = known.get((*base, name.name)) or (known.get(base) if node.module else None)
                if target is not None and target != path:
                    found.add(str(target.relative_to(project)))
    return graph


def python_breaches(project):
    found = circle(python_imports(project))
    if found:
        yield "files of the Python package import each other in a circle: " + " -> ".join(found)


def member_breaches(path, lines):
    """Counts the data members of classes: their names end in an underscore, at the depth of the class's own braces."""
    depth, open_classes = 0, []
    for number, line in enumerate(lines, 1):
        code = re.sub(r'"(?:\\.|[^"\\])*"|//.*', "", line)
        found = CLASS.match(code)
        if found and not code.rstrip().endswith(";"):
            open_classes.append([found[1], number, depth + 1, 0])
        elif open_classes and depth == open_classes[-1][2] and MEMBER.match(code.strip()):
            open_classes[-1][3] += len(re.findall(r"\b\w+_(?=\s*[;,={])", code))
        depth += code.count("{") - code.count("}")
        while open_classes and depth < open_classes[-1][2]:
            name, begin, _, members = open_classes.pop()
            if members > MOST_MEMBERS:
                yield f"{path}:{begin}: {name} has {members} data members, more than {MOST_MEMBERS}"


def test_breaches(project, path, lines):
    """Tests of the program are named after its commands."""
    if path.parts[0] != "tests" or path.parts[1] in ("cli", "fuzz") or not path.name.endswith("_test.cpp"):
        return
    tested = pathlib.Path(*path.parts[1:-1], path.name.removesuffix("_test.cpp"))
    mirrored = any((project / root / tested).with_suffix(suffix).exists()
                   for root, suffix in (("include/widelimit", ".hpp"), ("src", ".hpp"), ("src", ".cpp")))
    if not mirrored and not lines[0].startswith("//"):
        yield f"{path}:1: no file of the library has this path: expected a comment that says what is tested"


def size_breaches(path, lines):
    if len(lines) > MOST_LINES and path.parts[0] != "tests":
        yield f"{path}: {len(lines)} lines, more than {MOST_LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > MOST_COLUMNS and line.lstrip().startswith("//") and "://" not in line:
            yield f"{path}:{number}: a comment of {len(line)} columns, more than {MOST_COLUMNS}"


def output_breaches(path, lines):
    prints = path.parts[:2] == ("src", "cli") and "/".join(path.parts[2:]) not in PRINTERS
    for number, line in enumerate(lines, 1):
        code = re.sub(r'"(?:\\.|[^"\\])*"|//.*', "", line)
        if SHELL.search(code):
            yield f"{path}:{number}: a shell: start programs by their words (cli/program/child_process.hpp)"
        if prints and PRINT.search(code):
            yield f"{path}:{number}: a direct print: texts go through cli/output/result_text.hpp"


def pages(project):
    """README.md and its neighbours, docs/ and .github/: not what a build or a virtual environment has of others."""
    found = [*project.glob("*.md"), *(path for folder in ("docs", ".github") for path in (project / folder).rglob("*.md"))]
    return sorted(path.relative_to(project) for path in found)


def page_breaches(path, lines):
    in_code = in_comment = False
    for number, line in enumerate(lines, 1):
        in_comment = line.startswith("<!--") or in_comment
        in_code ^= line.lstrip().startswith("```")
        # A formula in a line may need more.
        free = in_code or in_comment or "$" in line or line.startswith(("|", "    ", "[", "!"))
        if not free and len(line) > MOST_PAGE_COLUMNS:
            yield f"{path}:{number}: a line of {len(line)} columns, more than {MOST_PAGE_COLUMNS}"
        in_comment = in_comment and "-->" not in line


def code_of(lines):
    return "\n".join(re.sub(r"//.*", "", line) for line in lines)


def knowing_breaches(project, lines_of):
    """What a reader has to touch who adds a primitive or a nonlinearity: the files whose code names one."""
    page = pathlib.Path("docs/engine.md")
    most = {name: int(count) for name, count in KNOWN_BY.findall((project / page).read_text())}
    operations = re.search(r"using Operation =\s*std::variant<([^>]*)>",
                           (project / "src/network/graph.hpp").read_text())[1]
    for name in re.findall(r"\w+", operations):
        if name not in most:
            yield f"{page}: no row says how many files know {name}"
    code = {path: code_of(lines) for path, lines in lines_of.items() if path.parts[0] in ("include", "src")}
    for name, count in most.items():
        word = name if name.endswith("Node") else f"(?:{name}|{name.capitalize()}\\w*)"
        folders = ("",) if name.endswith("Node") else NONLINEARITY_FOLDERS
        files = [str(path) for path, text in code.items()
                 if str(path).startswith(folders) and re.search(rf"\b{word}\b", text)]
        if len(files) > count:
            yield f"{page}: {len(files)} files know {name}, not {count}: {', '.join(files)}"
        if not files:
            yield f"{page}: no file knows {name}"


def top_breaches(project):
    """What git tracks at the top; a folder without git has what was packed."""
    if shutil.which("git") is None:
        return
    found = subprocess.run(["git", "-C", project, "ls-tree", "--name-only", "HEAD"], capture_output=True, text=True)
    for name in sorted(set(found.stdout.split("\n")) - TOP - {""}):
        yield f"{name}: stands at the top of the project, where check-house.py knows nothing of it"


def main():
    project = pathlib.Path(sys.argv[1])
    lines_of = {path: (project / path).read_text().splitlines() for path in sources(project)}
    breaches = [*top_breaches(project), *include_breaches(project, lines_of),
                *deep_circle_breaches(project, lines_of), *python_breaches(project),
                *knowing_breaches(project, lines_of)]
    for path, lines in lines_of.items():
        breaches += size_breaches(path, lines)
        breaches += test_breaches(project, path, lines)
        breaches += member_breaches(path, lines) if path.parts[0] in ("include", "src") else ()
        breaches += output_breaches(path, lines) if path.parts[0] in ("include", "src") else ()
    for path in pages(project):
        breaches += page_breaches(path, (project / path).read_text().splitlines())
    print("\n".join(breaches) or f"{len(lines_of)} files: nothing to complain of")
    sys.exit(bool(breaches))


if __name__ == "__main__":
    main()
