#!/usr/bin/env python3
"""Checks that a version says what it is; `make house` and the test headers/release run it.

    check-release.py PROJECT

- The version of CMakeLists.txt is X.Y.Z, of a release, or X.Y.Z.devN, of what comes before it; CITATION.cff says the same, with a
  date if it is a release. CHANGELOG.md begins with "Not released", or with the release and its date.
- The formats of files that this source writes are those of its version's row in docs/releasing.md, where no release is without a
  row: a release keeps its formats, and another format has another version.
- Where git knows: a commit tagged vX.Y.Z is version X.Y.Z, and once there is the tag, no later commit is of that version.

Prints every breach, and exits with 1 if there is one.
"""
import pathlib
import re
import subprocess
import sys

# What is written to disk, and where the source says in which format: the columns of the table.
FORMATS = {
    "networks": ("src/network/network_file.cpp", r"constexpr Index format_version = (\d+)"),
    "models": ("src/gp/inference/model_files.cpp", r'\{"widelimit model", (\d+),'),
    "Gram matrices": ("src/gp/gram_sources/gram_cache.cpp", r'\{"widelimit Gram matrix", (\d+),'),
    "stores": ("src/store/store_facts.hpp", r"int store_format_version = (\d+)"),
}


def table_of_formats(page):
    """Version -> the formats of its row."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    head = ["version", *FORMATS]
    if head not in rows:
        return None
    found = {}
    for row in rows[rows.index(head) + 2:]:
        if len(row) != len(head) or not re.fullmatch(r"\d+\.\d+\.\d+", row[0]):
            break
        found[row[0]] = dict(zip(FORMATS, row[1:]))
    return found


def version_breaches(project, version):
    released = "dev" not in version
    citation = (project / "CITATION.cff").read_text()
    said = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    if not said or said.group(1) != version:
        yield f"CITATION.cff: expected version: {version} as in CMakeLists.txt, found {said.group(1) if said else 'none'}"
    date = re.search(r"^date-released: (\S+)$", citation, re.MULTILINE)
    if released != bool(date):
        yield f"CITATION.cff: expected {'a date-released' if released else 'no date-released, as ' + version + ' is not released'}"
    sections = re.findall(r"^## (.*)$", (project / "CHANGELOG.md").read_text(), re.MULTILINE)
    numbers = version.split(".dev")[0]
    if not released:
        if sections[:1] != ["Not released"]:
            yield f"CHANGELOG.md: expected the section 'Not released' first, as {version} is not released"
        if any(section.split(",")[0] == numbers for section in sections):
            yield f"CHANGELOG.md: has a section of {numbers}, and CMakeLists.txt says {version}: which is next?"
    elif date and f"{version}, {date.group(1)}" not in sections[:2]:
        yield f"CHANGELOG.md: expected the section '{version}, {date.group(1)}' first, or after 'Not released'"


def format_breaches(project, version):
    found = {}
    for name, (file, pattern) in FORMATS.items():
        match = re.search(pattern, (project / file).read_text())
        if not match:
            yield f"{file}: expected the format of {name}, {pattern}: where is it now?"
            return
        found[name] = match.group(1)
    table = table_of_formats((project / "docs/releasing.md").read_text())
    numbers = version.split(".dev")[0]
    if not table or numbers not in table:
        yield f"docs/releasing.md: expected a row of {numbers} in the table of formats: {found}"
        return
    for name, number in found.items():
        if table[numbers][name] != number:
            advice = "change the row" if "dev" in version else "a release keeps its formats: this is another version"
            yield f"docs/releasing.md: {version} writes {name} in format {number}, the table says {table[numbers][name]}: {advice}"


def git(project, *arguments):
    """Its output; None where it fails, as without a repository."""
    try:
        found = subprocess.run(["git", "-C", str(project), *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return found.stdout.strip() if found.returncode == 0 else None


def tag_breaches(project, version):
    if git(project, "rev-parse", "--show-toplevel") != str(project.resolve()):
        return
    for tag in (git(project, "tag", "--points-at", "HEAD") or "").split():
        if re.fullmatch(r"v\d.*", tag) and tag != f"v{version}":
            yield f"git: the commit is tagged {tag}, and CMakeLists.txt says {version}"
    tagged, head = git(project, "rev-parse", "--verify", "--quiet", f"v{version}^{{commit}}"), git(project, "rev-parse", "HEAD")
    if tagged and tagged != head:
        yield f"CMakeLists.txt: {version} was released as {tagged[:8]}; what comes after it is of the next version, with .dev0"
    numbers = version.split(".dev")[0]
    if "dev" in version and git(project, "rev-parse", "--verify", "--quiet", f"v{numbers}"):
        yield f"CMakeLists.txt: {version} comes before {numbers}, which was released"


def breaches(project):
    match = re.search(r"^set\(WIDELIMIT_VERSION (\S*)\)", (project / "CMakeLists.txt").read_text(), re.MULTILINE)
    version = match.group(1) if match else ""
    if not re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", version):
        return [f"CMakeLists.txt: expected set(WIDELIMIT_VERSION X.Y.Z) or X.Y.Z.devN, found {version!r}"]
    return [*version_breaches(project, version), *format_breaches(project, version), *tag_breaches(project, version)]


def main():
    found = breaches(pathlib.Path(sys.argv[1]))
    for breach in found:
        print(breach)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
