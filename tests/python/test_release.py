"""What a release says of itself and carries with it: scripts/check-release.py, licences.py and tracked-files.sh."""
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def script(name):
    """The module of a script, whose name need not be one of Python."""
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), PROJECT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release, licences = script("check-release"), script("licences")


def git(folder, *arguments):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path):
    """What the check of releases reads, apart from git."""
    for name in ("CMakeLists.txt", "CITATION.cff", "CHANGELOG.md", "docs/releasing.md", *(file for file, _ in release.FORMATS.values())):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / name, tmp_path / name)
    return tmp_path


def change(project, name, pattern, text):
    file = project / name
    changed, count = re.subn(pattern, text, file.read_text(), count=1, flags=re.MULTILINE)
    assert count == 1, (name, pattern)
    file.write_text(changed)


def as_release(project, version="7.0.0"):
    change(project, "CMakeLists.txt", r"^set\(WIDELIMIT_VERSION .*\)", f"set(WIDELIMIT_VERSION {version})")
    change(project, "CITATION.cff", r"^version: .*", f"version: {version}\ndate-released: 2027-01-02")
    change(project, "CHANGELOG.md", r"^## ", f"## Not released\n\n## {version}, 2027-01-02\n\n## before ")
    row = re.search(r"^\| version \| networks.*\n\|.*\n(?:\| \d.*\n)*", (project / "docs/releasing.md").read_text(), re.MULTILINE).group(0).splitlines()[-1]
    change(project, "docs/releasing.md", re.escape(row), row + "\n" + re.sub(r"^\| \S+ ", f"| {version} ", row))


def test_the_version_formats_and_pages_agree():
    assert release.breaches(PROJECT) == []


@pytest.mark.parametrize("file, pattern, text, message", [
    ("CITATION.cff", r"^version: .*", "version: 0.2.0", "CITATION.cff: expected version"),
    ("CITATION.cff", r"^version: (.*)", r"version: \1\ndate-released: 2027-01-02", "expected no date-released"),
    ("CMakeLists.txt", r"^set\(WIDELIMIT_VERSION .*\)", "set(WIDELIMIT_VERSION 1.2)", "expected set(WIDELIMIT_VERSION X.Y.Z)"),
    ("CMakeLists.txt", r"^set\(WIDELIMIT_VERSION .*\)", "set(WIDELIMIT_VERSION 0.2.0)", "0.2.0 writes models in format"),
    ("CHANGELOG.md", r"^## Not released", "## 9.9.9, 2027-01-02", "expected the section 'Not released' first"),
    ("src/store/store_facts.hpp", r"store_format_version = \d+", "store_format_version = 77", "writes stores in format 77"),
    ("src/store/store_facts.hpp", r"store_format_version = ", "the_version = ", "expected the format of stores"),
    ("docs/releasing.md", r"^\| version \| networks", "| version | nets", "expected a row of"),
])
def test_each_disagreement_is_found(project, file, pattern, text, message):
    assert release.breaches(project) == []
    change(project, file, pattern, text)
    assert any(message in breach for breach in release.breaches(project)), release.breaches(project)


def test_tags_agree_with_versions(project):
    as_release(project)
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "release")
    assert release.breaches(project) == []
    git(project, "tag", "v6.9.0")
    assert any("is tagged v6.9.0" in breach for breach in release.breaches(project))
    git(project, "tag", "-d", "v6.9.0")
    git(project, "tag", "v7.0.0")
    assert release.breaches(project) == []
    git(project, "commit", "-q", "--allow-empty", "-m", "later")
    assert any("7.0.0 was released as" in breach for breach in release.breaches(project))


def test_every_library_that_is_compiled_in_has_its_licence(tmp_path):
    assert licences.check(PROJECT) == []
    shutil.copytree(PROJECT / "licences", tmp_path / "licences")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.cpp").write_text("#include <armadillo>\n#include <vector>\n#include <zlib.h>\n")
    (tmp_path / "licences/MPL-2.0.txt").unlink()
    found = licences.check(tmp_path)
    assert any("<armadillo> is of no library" in breach for breach in found)
    assert any("MPL-2.0.txt: expected the text" in breach for breach in found)
    assert not any("<vector>" in breach or "zlib" in breach for breach in found)


def stanzas(text):
    """Field -> value of each paragraph of Debian's control format."""
    for paragraph in text.strip().split("\n\n"):
        fields, name = {}, None
        for line in paragraph.splitlines():
            if line.startswith(" "):
                fields[name] += "\n" + line
            else:
                name, value = line.split(":", 1)
                assert name not in fields
                fields[name] = value.strip()
        yield fields


@pytest.mark.parametrize("part", licences.PARTS)
def test_copyright_is_what_debian_reads(part):
    header, *rest = stanzas(licences.copyright_text(PROJECT, part))
    assert header["Format"] == "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    files = [fields for fields in rest if "Files" in fields]
    texts = {fields["License"].split("\n")[0]: fields["License"] for fields in rest if "Files" not in fields}
    table = licences.Table(PROJECT)
    assert [fields["Files"] for fields in files] == ["*"] + [f"compiled-in/{one['name'].replace(' ', '-')}/*" for one in table.of(part)]
    for fields in files:
        assert fields["Copyright"]
        for name in fields["License"].split(" and "):
            assert len(texts[name]) > 60 and "\n" in texts[name], name
    assert {name for fields in files for name in fields["License"].split(" and ")} == set(texts)


@pytest.mark.parametrize("part", licences.PARTS)
def test_the_list_of_parts_is_spdx(part, tmp_path):
    licences.write(PROJECT, part, tmp_path, [])
    document = json.loads((tmp_path / "sbom.spdx.json").read_text())
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"])
    identifiers = [package["SPDXID"] for package in document["packages"]]
    assert len(set(identifiers)) == len(identifiers) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", one) for one in identifiers)
    for relation in document["relationships"]:
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= {"SPDXRef-DOCUMENT", *identifiers}
    names = {package["name"]: package for package in document["packages"]}
    expected = {"Eigen", "xtensor", "xtl", "nlohmann/json", "Boost", "Random123", "Highway", "oneTBB", "fmt", "OpenBLAS"}
    expected |= {"CLI11"} if part != "library" else set()
    expected |= {"nanobind", "robin-map"} if part == "python" else set()
    assert expected <= set(names) and names["Eigen"]["licenseDeclared"] == "MPL-2.0"
    assert names["widelimit"]["versionInfo"] == licences.project_version(PROJECT)
    for one in licences.Table(PROJECT).of(part):
        for text in one["texts"]:
            assert (tmp_path / "licences" / text).read_text() == (PROJECT / "licences" / text).read_text()


@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="no checkout of git")
def test_a_source_archive_has_what_git_tracks_and_nothing_else(tmp_path):
    pytest.importorskip("scikit_build_core")
    tree, copy = tmp_path / "a tree", tmp_path / "copy"
    subprocess.run([PROJECT / "scripts/tracked-files.sh", tree], check=True)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    tracked = {path.relative_to(tree) for path in tree.rglob("*") if path.is_file() and ".git" not in path.relative_to(tree).parts}
    strangers = [".env", "out/results.json", "model/model.json", "licences/notes.md", "python/widelimit/key.py", "src/data/key.cpp", "python/widelimit/.env"]
    for name in strangers:
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("secret")
    (tree / "CITATION.cff").unlink()  # tracked, and gone from the tree
    subprocess.run([tree / "scripts/tracked-files.sh", copy], check=True)
    copied = {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()}
    assert copied == tracked - {pathlib.Path("CITATION.cff")}
    made = subprocess.run([sys.executable, "-c", "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))", tmp_path],
                          cwd=copy, check=True, capture_output=True, text=True).stdout.split()[-1]
    with tarfile.open(tmp_path / made) as archive:
        names = {pathlib.PurePosixPath(*pathlib.PurePosixPath(name).parts[1:]) for name in archive.getnames()}
        info = archive.extractfile(next(name for name in archive.getnames() if name.endswith("/PKG-INFO"))).read().decode()
    assert not names & {pathlib.PurePosixPath(name) for name in strangers}
    assert {pathlib.PurePosixPath("licences/MPL-2.0.txt"), pathlib.PurePosixPath("CMakeLists.txt")} <= names
    assert f"\nVersion: {licences.project_version(PROJECT)}\n" in info
    refused = subprocess.run([copy / "scripts/tracked-files.sh", tmp_path / "other"], capture_output=True, text=True)
    assert refused.returncode == 1 and "is no checkout of git" in refused.stderr
