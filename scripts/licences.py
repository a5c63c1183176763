#!/usr/bin/env python3
"""The licences of what is compiled into the library, the program and the Python package, and lists of it.

    licences.py check PROJECT
    licences.py write PROJECT PART FOLDER [LIBRARY...]

licences/components.json lists the libraries whose headers become part of what is built (compiled_in) and those that are only
linked (those that are both are shared); their licences are the texts beside it. `check` fails if a source includes a header of no library of the list, if a
library of the list is included by nobody, and if a licence lacks its text. `write` makes of one PART (library, program, mpi,
python) in FOLDER:

    copyright      in Debian's machine-readable format: of this project, and of each library that is compiled in
    sbom.spdx.json the same libraries and those that are linked as SPDX 2.3, with the versions of this machine; LIBRARY...,
                   shared libraries that stand beside the part, are listed, too
    licences/      the licences' texts, and those of the LIBRARYs, by the Debian packages that they are of

Versions are those of Debian's packages here, of nanobind that of the Python which runs this.
"""
import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

PARTS = ("library", "program", "mpi", "python")
INCLUDE = re.compile(r"^\s*#\s*include <([^>]+)>", re.MULTILINE)
# Of C++ and of the system.
CXX_HEADERS = set("""algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits clocale cmath
    compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype
    deque exception execution filesystem format forward_list fstream functional future initializer_list iomanip ios iosfwd iostream istream
    iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
    scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream
    system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version""".split())
SYSTEM_FOLDERS = ("sys/",)
SYSTEM_HEADERS = {"dlfcn.h", "fcntl.h", "immintrin.h", "link.h", "malloc.h", "nmmintrin.h", "poll.h", "pthread.h", "sched.h", "signal.h", "spawn.h",
                  "termios.h", "unistd.h", "stdlib.h", "string.h", "Python.h", "elf.h", "x86intrin.h"}
# Debian has these texts on every machine.
COMMON = {"MPL-2.0.txt": "MPL-2.0", "Apache-2.0.txt": "Apache-2.0"}
FORMAT = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"


class Table:
    def __init__(self, project):
        self.folder = project / "licences"
        table = json.loads((self.folder / "components.json").read_text())
        self.compiled_in, self.linked = table["compiled_in"], table["linked"]

    def of(self, part, linked=False):
        return [one for one in (self.linked if linked else self.compiled_in) if part in one["parts"]]

    def text(self, name):
        return (self.folder / name).read_text()


def owns(component, header):
    return any(header == one or one.endswith("/") and header.startswith(one) for one in component["headers"])


def is_system(header):
    return header in CXX_HEADERS | SYSTEM_HEADERS or header.startswith(SYSTEM_FOLDERS)


def check(project):
    table = Table(project)
    breaches, used = [], set()
    components = table.compiled_in + table.linked
    for folder in ("include", "src", "python/src"):
        for source in sorted((project / folder).rglob("*.[ch]pp")):
            for header in INCLUDE.findall(source.read_text()):
                owners = [one["name"] for one in components if owns(one, header)]
                used.update(owners)
                if not owners and not is_system(header):
                    breaches.append(f"{source.relative_to(project)}: <{header}> is of no library of licences/components.json: enter it there, "
                                    "with its licence, so that packages and wheels carry it")
    # They come with others of the list: no source of ours names them.
    carried = {"xtl", "robin-map", "ScaLAPACK"}
    for one in components:
        if one["name"] not in used | carried:
            breaches.append(f"licences/components.json: {one['name']}: no source includes it: take it out")
        if not set(one["parts"]) <= set(PARTS):
            breaches.append(f"licences/components.json: {one['name']}: expected parts {', '.join(PARTS)}")
    for one in table.compiled_in:
        for name in one["texts"]:
            if not (table.folder / name).is_file() or len(table.text(name)) < 500:
                breaches.append(f"licences/{name}: expected the text of a licence of {one['name']}")
    known = {name for one in table.compiled_in for name in one["texts"]}
    breaches += [f"licences/{path.name}: is the licence of nothing in components.json" for path in sorted(table.folder.glob("*.txt"))
                 if path.name not in known]
    return breaches


def debian_version(package):
    """None where Debian's package is not installed."""
    try:
        found = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}\n", package], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return found.stdout.split("\n")[0] if found.returncode == 0 and found.stdout.strip() else None


def version_of(component):
    if "debian" in component:
        version = debian_version(component["debian"])
        # Without the epoch and the revision of Debian.
        return version and re.sub(r"^\d+:|\+(ds|dfsg).*|-[^-]*$", "", version)
    try:
        return importlib.metadata.version(component["python"]) if "python" in component else None
    except importlib.metadata.PackageNotFoundError:
        return None


def project_version(project):
    return re.search(r"^set\(WIDELIMIT_VERSION (\S+)\)", (project / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)


def indented(text):
    return "".join(f" {line}\n" if line.strip() else " .\n" for line in text.rstrip().splitlines())


def copyright_text(project, part):
    """https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"""
    table = Table(project)
    own = (project / "LICENSE").read_text()
    holders = re.findall(r"^Copyright \(c\) (.*)$", own, re.MULTILINE)
    text = f"Format: {FORMAT}\nUpstream-Name: widelimit\nComment:\n"
    text += indented("Headers of the libraries below are compiled into what this package holds; each stands here with its licence.")
    text += "\nFiles: *\nCopyright: " + "\n           ".join(holders) + "\nLicense: MIT-widelimit\n"
    licences = {"MIT-widelimit": own[own.index("Permission"):]}
    for one in table.of(part):
        names = [f"{one['licence']}-{one['name']}".replace(" ", "-").replace("/", "-") if not shared_text(name) else name[:-4]
                 for name in one["texts"]]
        version = version_of(one)
        source = f"of Debian's package {one['debian']}" if "debian" in one else "of its Python package" if "python" in one else one["note"]
        text += f"\nFiles: compiled-in/{one['name'].replace(' ', '-')}/*\nCopyright: " + "\n           ".join(one["copyright"]) + "\n"
        names = [re.sub(r"-AND-[^-]*-[\d.]+", "", name.replace(" ", "-")) for name in names]
        text += f"License: {' and '.join(names)}\nComment:\n"
        text += indented(f"{one['name']}{' ' + version if version else ''}, {one['url']}, {source}, which has the source.")
        for name, file in zip(names, one["texts"]):
            licences[name] = (f"On Debian systems the text is in /usr/share/common-licenses/{COMMON[file]}." if file in COMMON
                              else table.text(file))
    for name, body in licences.items():
        text += f"\nLicense: {name}\n{indented(body)}"
    return text


def shared_text(name):
    return name in COMMON or name == "BSL-1.0.txt"


def package_of(library):
    """The Debian package that a shared library is of; auditwheel puts a hash into its name."""
    name = re.sub(r"-[0-9a-f]{8}(?=\.|$)", "", library.name)
    name = re.sub(r"\.so.*", "", name)
    found = subprocess.run(["dpkg-query", "--search", f"*/{name}.so*"], capture_output=True, text=True).stdout
    lines = [line for line in found.splitlines() if "-dev:" not in line.split(" ")[0] and not line.startswith("diversion")]
    # Not those for 32 bits, and for other processors.
    lines.sort(key=lambda line: f"/{platform.machine()}-linux-gnu/" not in line)
    packages = [line.split(":")[0] for line in lines]
    if not packages:
        sys.exit(f"licences.py: {library.name}: no package that says its licence")
    return packages[0]


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def spdx_package(name, version, licence, copyright, url, purl):
    package = {"SPDXID": spdx_id(name), "name": name, "versionInfo": version or "NOASSERTION", "downloadLocation": url, "filesAnalyzed": False,
               "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": copyright}
    if purl:
        package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
    return package


def debian_purl(package):
    version = debian_version(package)
    return f"pkg:deb/debian/{package}@{version}" if version else None


def created(project):
    """The time of the last commit, so that the same sources give the same list; SOURCE_DATE_EPOCH if it is set."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if not seconds:
        found = subprocess.run(["git", "-C", str(project), "log", "-1", "--format=%ct"], capture_output=True, text=True)
        seconds = found.stdout.strip() if found.returncode == 0 and found.stdout.strip() else (project / "CMakeLists.txt").stat().st_mtime
    return datetime.datetime.fromtimestamp(int(float(seconds)), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def sbom(project, part, libraries):
    table, version = Table(project), project_version(project)
    own = (project / "LICENSE").read_text()
    packages = [spdx_package("widelimit", version, "MIT", "\n".join(re.findall(r"^Copyright.*$", own, re.MULTILINE)), "NOASSERTION", None)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-widelimit")]

    def add(package, relation):
        packages.append(package)
        relations.append(("SPDXRef-widelimit", relation, package["SPDXID"]))

    for linked in (False, True):
        for one in table.of(part, linked):
            found = version_of(one)
            purl = debian_purl(one["debian"]) if "debian" in one else f"pkg:pypi/{one['python']}@{found}" if "python" in one and found else None
            add(spdx_package(one["name"], found, one["licence"], "\n".join(one.get("copyright", [])) or "NOASSERTION", one["url"], purl),
                "DYNAMIC_LINK" if linked else "CONTAINS")
            if one.get("shared"):
                relations.append(("SPDXRef-widelimit", "DYNAMIC_LINK", spdx_id(one["name"])))
    for library in libraries:
        package = package_of(library)
        entry = spdx_package(library.name, debian_version(package), "NOASSERTION", "NOASSERTION", "NOASSERTION", debian_purl(package))
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(library.read_bytes()).hexdigest()}]
        add(entry, "CONTAINS")
    body = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"widelimit-{part}-{version}",
            "creationInfo": {"created": created(project), "creators": [f"Tool: widelimit-licences-{version}"]}, "packages": packages,
            "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations]}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
    body["documentNamespace"] = f"https://spdx.org/spdxdocs/widelimit-{part}-{version}-{digest}"
    return body


def write(project, part, folder, libraries):
    table = Table(project)
    texts = folder / "licences"
    texts.mkdir(parents=True, exist_ok=True)
    (folder / "copyright").write_text(copyright_text(project, part))
    (folder / "sbom.spdx.json").write_text(json.dumps(sbom(project, part, libraries), indent=1, ensure_ascii=False) + "\n")
    for one in table.of(part):
        for name in one["texts"]:
            shutil.copyfile(table.folder / name, texts / name)
    lines = []
    for library in libraries:
        package = package_of(library)
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", texts / f"{package}.txt")
        lines.append(f"{library.name}  {package} {debian_version(package)}\n")
    if lines:
        (texts / "LIBRARIES.txt").write_text("".join(lines))


def main(arguments):
    if arguments[:1] == ["check"] and len(arguments) == 2:
        breaches = check(pathlib.Path(arguments[1]))
        print("\n".join(breaches), end="\n" if breaches else "")
        return 1 if breaches else 0
    if arguments[:1] == ["write"] and len(arguments) >= 4 and arguments[2] in PARTS:
        write(pathlib.Path(arguments[1]), arguments[2], pathlib.Path(arguments[3]), [pathlib.Path(one) for one in arguments[4:]])
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
