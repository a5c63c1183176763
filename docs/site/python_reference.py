#!/usr/bin/env python3
"""python_reference.py FOLDER: a page for each module of the Python package, of its docstrings and signatures, with an example
of every name (python_examples.py). The package must be importable."""

import importlib
import inspect
import pathlib
import re
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from python_examples import EXAMPLES, PRELUDE  # noqa: E402

FIRST = """# Python reference

Every public name of the package, from its docstrings, with an example; [docs/python.md](../docs/python.md) is the guide. All examples run after these lines:

```python
{prelude}```

```{{toctree}}
:maxdepth: 1

{pages}
```
"""


def heading_of(name, value):
    """What stands above a docstring: the call, or the name alone."""
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        fields = getattr(value, "_fields", None)
        return f"{kind} {name}" + (f"({', '.join(fields)})" if fields else _signature(value) if kind == "class" else "")
    if callable(value):
        return name + _signature(value)
    return name


def _signature(value):
    if hasattr(value, "__nb_signature__"):
        return _compiled(value)
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        init = getattr(value, "__init__", None)
        return _compiled(init) if hasattr(init, "__nb_signature__") else ""
    # Annotations are texts, defaults are not.
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    return _shorter(text)


def _shorter(text):
    return re.sub(r"\bwidelimit\._core\.|\b_core\.|\bnumpy\.typing\.|\bcollections\.abc\.", "", text)


def _compiled(function):
    """Of a function of the compiled half: as its stub has it."""
    text, _, *rest = function.__nb_signature__[0]
    defaults = rest[0] if rest and rest[0] else ()
    text = re.sub(r"^def \w+", "", text)
    text = re.sub(r"\\(\d+)", lambda found: repr(defaults[int(found[1])]), text)
    return _shorter(re.sub(r"\bself, |\bself\b", "", text))


def doc_of(value):
    """Its docstring; of a function of the compiled half without its signature."""
    if hasattr(value, "__nb_signature__"):
        return inspect.cleandoc(value.__nb_signature__[0][1] or "")
    return inspect.getdoc(value) or ""


def members_of(value):
    """Public methods and properties with a docstring, in their order."""
    for name, member in vars(value).items():
        if name.startswith("_") and name != "__call__":
            continue
        function = getattr(member, "__func__", member)
        text = doc_of(getattr(member, "fget", None) or function) or doc_of(member)
        if text and not isinstance(member, (int, str, tuple)) and type(member).__name__ != "_tuplegetter":
            is_property = isinstance(member, property) or type(member).__name__ in ("nb_static_property",)
            yield name + ("" if is_property or not callable(function) else _signature(function)), text


def block(text, language="text"):
    if language == "text":
        lines = [part for line in text.splitlines() for part in (textwrap.wrap(line, 116, subsequent_indent="    ") or [""])
                 ] if any(len(line) > 120 for line in text.splitlines()) else text.splitlines()
        text = "\n".join(lines)
    return f"```{language}\n{text.rstrip()}\n```\n\n"


def section(module, name, example):
    value = getattr(module, name)
    text = f"## {name}\n\n{block(heading_of(name, value))}"
    documented = doc_of(value) if callable(value) or inspect.ismodule(value) else ""
    if documented and not inspect.ismodule(value):
        text += block(documented)
    if inspect.isclass(value) and getattr(value, "__module__", "").startswith("widelimit"):
        for heading, doc in members_of(value):
            text += block(f"{heading}\n\n{doc}")
    return text + block(example, "python")


def page(name):
    module, examples = importlib.import_module(name), EXAMPLES[name]
    text = f"# {name}\n\n{block(inspect.getdoc(module))}"
    return text + "".join(section(module, each, examples[each]) for each in sorted(examples, key=str.lower))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for name in EXAMPLES:
        try:
            importlib.import_module(name)
        except ImportError as error:  # Optional: PyTorch.
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        (folder / f"{name}.md").write_text(page(name))
        pages.append(name)
    (folder / "index.md").write_text(FIRST.format(prelude=PRELUDE, pages="\n".join(pages)))


if __name__ == "__main__":
    main()
