"""data/ holds what its script writes, and little of it."""

import pathlib
import subprocess
import sys

DATA = pathlib.Path(__file__).parent.parent.parent / "data"


def files_of(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_the_script_writes_these_files(tmp_path):
    subprocess.run([sys.executable, "-I", "-B", DATA / "make.py", tmp_path], check=True)
    kept = files_of(DATA)
    written = files_of(tmp_path)
    assert len(written) > 50
    assert sorted(written) == sorted(set(kept) - {"README.md", "make.py"})
    assert [name for name in written if written[name] != kept[name]] == []


def test_it_is_small():
    assert sum(map(len, files_of(DATA).values())) < 2_000_000
