#!/usr/bin/env python3
"""Prints the sources of the project that a run of the program enters, in the order in which it enters them first.

    entered-files.py BUILD ARGUMENTS...

The functions of the program in the folder BUILD get a breakpoint each, which is removed as soon as it is met. Functions that
the compiler put into others are not seen, and neither are those of headers. The program's own output is dropped. Needs nm and
c++filt (binutils) on Linux with x86-64; prints `skipped: ` and what is missing where it cannot trace, and exits with 1 if the
program fails.
"""
import collections
import ctypes
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACE_ME, CONTINUE, GET_REGISTERS, SET_REGISTERS, SET_OPTIONS = 0, 7, 12, 13, 0x4200
TRACE_CLONE, KILL_WITH_TRACER = 1 << 3, 1 << 20
WAIT_FOR_THREADS = 0x40000000
BREAKPOINT = b"\xcc"
INSTRUCTION_POINTER, REGISTERS = 16, 27  # Of struct user_regs_struct.


def output_of(*command, text=""):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()


def sources_of_objects(build):
    """(library, object file) -> the sources that it is compiled from."""
    table = {}
    for unity in build.glob("src/**/Unity/*.cxx"):
        target = unity.parent.parent.stem
        table["lib" + target, unity.name + ".o"] = [
            pathlib.Path(path) for path in re.findall(r'#include "([^"]+[.]cpp)"', unity.read_text())]
    by_name = collections.defaultdict(list)
    for source in (ROOT / "src").rglob("*.cpp"):
        by_name[source.name + ".o"].append(source)
    return table, by_name


def sources_of_symbols(build):
    """symbol -> the sources, one of which defines it."""
    table, by_name = sources_of_objects(build)
    found = collections.defaultdict(set)
    for library in build.glob("src/**/*.a"):
        member = None
        for line in output_of("nm", str(library)):
            if line.endswith(".o:"):
                member = line[:-1]
            fields = line.split()
            if len(fields) == 3 and fields[1] in "tTW":
                found[fields[2]].update(table.get((library.stem, member), by_name[member]))
    return found


def scope_and_name(demangled):
    """("widelimit", "gram") of "widelimit::GramResult<float> widelimit::gram<float>(...)"; "" twice for other code."""
    name, depth = "", 0
    for letter in demangled.replace("(anonymous namespace)", "").split("{lambda")[0].split(" [clone")[0]:
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            break
        if depth == 0 and letter != ">":
            name += letter
    name = name.strip().rsplit(" ", 1)[-1]
    if not name.startswith("widelimit") and name != "main":
        return "", ""
    parts = ["", *filter(None, name.split("[")[0].split("::"))]
    return parts[-2], parts[-1]


CLASS = re.compile(r"^(?:class|struct) (?:\[\[\w+\]\] )?(\w+)[^;]*$")
DEFINITION = re.compile(r"^( {0,2})(?:[^\s(/#][^()]*?[ &*])?(?:(\w+)(?:<[\w, ]+>)?::)*(~?\w+)\(.*[^;]$")


def definitions_in(source):
    """(template or not, class or "", name) of the functions that a source defines."""
    found, in_class, before = set(), "", ""
    for line in source.read_text().splitlines():
        begin = CLASS.match(line)
        in_class = begin[1] if begin else "" if line.startswith("}") else in_class
        definition = DEFINITION.match(line)
        if definition:
            indent, scope, name = definition.groups("")
            found.add((before.startswith("template <"), scope or (in_class if indent else ""), name))
        before = line
    return found


def defines(definitions, kind, scope, name):
    """Whether a symbol of this kind can be one of the definitions; the weak ones of sources are templates."""
    scope = scope if scope[:1].isupper() else ""
    return any((template, scope, name) in definitions for template in ((True,) if kind == "W" else (True, False)))


def functions_of(build, program):
    """address in the program -> the source of the function that begins there."""
    sources = sources_of_symbols(build)
    symbols = [line.split() for line in output_of("nm", str(program))]
    symbols = [(int(fields[0], 16), fields[1], fields[2]) for fields in symbols
               if len(fields) == 3 and fields[1] in "tTW" and (sources.get(fields[2]) or fields[2] == "main")]
    names = output_of("c++filt", text="\n".join(symbol for *_, symbol in symbols))
    defined = {source: definitions_in(source) for source in set().union(*sources.values())}
    functions = {}
    for (address, kind, symbol), demangled in zip(symbols, names):
        scope, name = scope_and_name(demangled)
        source = next((one for one in sorted(sources[symbol]) if defines(defined[one], kind, scope, name)), None)
        if name == "main":
            source = ROOT / "src/cli/program/main.cpp"
        if source:
            functions[address] = source.resolve().relative_to(ROOT)
    return functions


class Tracer:
    """Runs a program and notes which of some addresses it comes to, in this order."""

    def __init__(self, addresses):
        self.addresses = addresses
        self.ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        self.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.ptrace.restype = ctypes.c_long
        self.met = []

    def run(self, command):
        """The exit code, or None where nothing can be traced."""
        child = os.fork()
        if child == 0:
            sink = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(2):
                os.dup2(sink, descriptor)
            os._exit(126 if self.ptrace(TRACE_ME, 0, None, None) < 0 else os.execv(command[0], command))
        status = os.waitpid(child, 0)[1]
        if not os.WIFSTOPPED(status):
            return None
        self.ptrace(SET_OPTIONS, child, None, TRACE_CLONE | KILL_WITH_TRACER)
        with open(f"/proc/{child}/maps") as maps:
            base = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(command[0]))
        memory = os.open(f"/proc/{child}/mem", os.O_RDWR)
        self.replaced = {base + address: os.pread(memory, 1, base + address) for address in self.addresses}
        for address in self.replaced:
            os.pwrite(memory, BREAKPOINT, address)
        self.ptrace(CONTINUE, child, None, None)
        return self.follow(child, memory, base)

    def follow(self, child, memory, base):
        registers = (ctypes.c_ulonglong * REGISTERS)()
        waiting = set(self.replaced)
        while True:
            thread, status = os.waitpid(-1, WAIT_FOR_THREADS)
            if not os.WIFSTOPPED(status):
                if thread == child:
                    return os.waitstatus_to_exitcode(status)
                continue
            stop = os.WSTOPSIG(status)
            if stop == signal.SIGTRAP and status >> 16 == 0:
                self.ptrace(GET_REGISTERS, thread, None, ctypes.addressof(registers))
                address = registers[INSTRUCTION_POINTER] - 1
                if address in waiting:
                    waiting.remove(address)
                    os.pwrite(memory, self.replaced[address], address)
                    self.met.append(address - base)
                # Another thread may have met it at the same time: it goes back as well.
                if address in self.replaced:
                    registers[INSTRUCTION_POINTER] = address
                    self.ptrace(SET_REGISTERS, thread, None, ctypes.addressof(registers))
            passed_on = 0 if stop in (signal.SIGTRAP, signal.SIGSTOP) else stop
            self.ptrace(CONTINUE, thread, None, passed_on)


def entered_files(build, arguments):
    """The sources in order, or a text that says why there are none."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "skipped: only Linux on x86-64 is traced"
    program = (pathlib.Path(build) / "widelimit").resolve()
    functions = functions_of(pathlib.Path(build).resolve(), program)
    tracer = Tracer(functions)
    code = tracer.run([str(program), *arguments])
    if code is None:
        return "skipped: this machine lets no process trace another"
    if code != 0:
        return f"widelimit {' '.join(arguments)} ends with {code}"
    return list(dict.fromkeys(str(functions[address]) for address in tracer.met))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    found = entered_files(sys.argv[1], sys.argv[2:])
    if isinstance(found, str):
        print(found)
        return 0 if found.startswith("skipped") else 1
    for number, path in enumerate(found, 1):
        print(number, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
