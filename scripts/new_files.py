"""What scripts/new-layer, new-nonlinearity and new-experiment share: names, and changes that are written all at once or not at all."""
import keyword
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_LETTERS = 40
# Words of C++ that look like names; those of Python are in its library.
WORDS_OF_CPP = set("""alignas alignof and asm auto bool break case catch char class compl concept const constexpr continue decltype default
    delete do double else enum explicit export extern false final float for friend goto if inline int long mutable namespace new noexcept
    not nullptr operator or override private protected public register requires return short signed sizeof static struct switch template
    this throw true try typedef typeid typename union unsigned using virtual void volatile while xor std widelimit layers numerics
    """.split())


class Refusal(Exception):
    """Why nothing was written."""


def checked_name(name, what):
    """The name of a new thing, or why it cannot be one: it becomes one of files, of C++ and of Python."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise Refusal(f"expected the name of {what}: lower-case letters and digits, words joined by single underscores, a letter first; got {name!r}")
    if len(name) > MOST_LETTERS:
        raise Refusal(f"expected the name of {what} to have at most {MOST_LETTERS} letters, got {len(name)}: {name}")
    if name in WORDS_OF_CPP or keyword.iskeyword(name):
        raise Refusal(f"expected the name of {what}, got {name}, a word of C++ or Python")
    return name


def refuse_known(name):
    """A kind of layer, or a function that stands beside those that make layers."""
    for file in sorted((ROOT / "src/layers").glob("*.cpp")):
        if re.search(rf'(?:\.name = |by_quadrature\()"{name}"', file.read_text()):
            raise Refusal(f"there is a layer {name} already: {file.relative_to(ROOT)}")
    for folder in ("layers", "numerics"):
        for file in sorted((ROOT / "include/widelimit" / folder).glob("*.hpp")):
            if re.search(rf"\b{name}\(", re.sub(r"//.*", "", file.read_text())):
                raise Refusal(f"there is a function {name} already: {file.relative_to(ROOT)}")


class Changes:
    """New files and changed ones. Nothing is written before write(), so that a refusal leaves the tree as it was."""

    def __init__(self):
        self.texts = {}
        self.added = []

    def add(self, path, text):
        if (ROOT / path).exists():
            raise Refusal(f"{path} is there already")
        self.added.append(path)
        self.texts[path] = text

    def text(self, path):
        if path not in self.texts and not (ROOT / path).exists():
            raise Refusal(f"there is no {path}: {pathlib.Path(sys.argv[0]).name} knows an older tree")
        return self.texts.get(path) or (ROOT / path).read_text()

    def insert(self, path, pattern, text, after=False):
        """Puts `text` before (or after) the only place of `path` that `pattern`, in which ^ is the beginning of a line, matches."""
        whole = self.text(path)
        places = list(re.finditer(pattern, whole, re.MULTILINE))
        if len(places) != 1:
            raise Refusal(f"{path}: expected one place that matches {pattern}, found {len(places)}: {pathlib.Path(sys.argv[0]).name} knows an older file")
        at = places[0].end() if after else places[0].start()
        self.texts[path] = whole[:at] + text + whole[at:]

    def list_line(self, path, begin, line):
        """Puts a line into the list that follows the only line `begin` in `path`, before the first one that sorts behind it."""
        lines = self.text(path).splitlines(keepends=True)
        starts = [number for number, other in enumerate(lines) if re.match(begin, other)]
        if len(starts) != 1:
            raise Refusal(f"{path}: expected one line that matches {begin}, found {len(starts)}: {pathlib.Path(sys.argv[0]).name} knows an older file")
        at = starts[0] + 1
        while not re.match(r"\)|$", lines[at].rstrip("\n")) and lines[at] < line + "\n":
            at += 1
        lines.insert(at, line + "\n")
        self.texts[path] = "".join(lines)

    def write(self):
        for path, text in self.texts.items():
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(text)
        sources = [path for path in self.texts if path.endswith((".hpp", ".cpp"))]
        if sources and shutil.which("clang-format"):
            subprocess.run(["clang-format", "-i", *sources], cwd=ROOT, check=True)
        for path in self.texts:
            print(f"{'new    ' if path in self.added else 'changed'} {path}")
        if sources and not shutil.which("clang-format"):
            print("clang-format is not installed: run make format where it is")


def words_of(name):
    """CamelCase, as classes are called."""
    return "".join(word.capitalize() for word in name.split("_"))


def run(make, documentation, options=()):
    """Calls make() with the arguments of the command line; says why where nothing is written."""
    program = pathlib.Path(sys.argv[0]).name
    arguments = sys.argv[1:]
    if arguments in (["-h"], ["--help"]):
        print(documentation.strip())
        return 0
    try:
        names = arguments[1:] if arguments and arguments[0] in options else arguments
        if len(names) != 1:
            raise Refusal(f"expected one NAME, got {len(names)} arguments; --help says more")
        make(*arguments)
    except Refusal as refusal:
        print(f"{program}: {refusal}", file=sys.stderr)
        return 1
    return 0
