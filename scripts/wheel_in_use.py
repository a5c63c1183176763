"""wheel_in_use.py FOLDER: whether an installed wheel computes by itself: no library of the system but C's and C++'s, the bits of
one thread with many, in forked and spawned processes, beside NumPy's own OpenBLAS, and in the program. FOLDER has the networks,
the images and the guide of the repository, whose Python blocks run."""

import contextlib
import io
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import numpy as np
import threadpoolctl
import widelimit

FOLDER = pathlib.Path(sys.argv[1])


def kernels(threads=0):
    network = widelimit.Network.read(FOLDER / "data" / "networks" / "images.json")
    return widelimit.gram(network, np.load(FOLDER / "data" / "images" / "x.npy"), threads=threads)


def sent(connection):
    connection.send_bytes(kernels().ntk.tobytes())


def check_libraries():
    maps = {line.split(maxsplit=5)[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    bundled = sorted(pathlib.Path(path).name for path in maps if "widelimit.libs" in path)
    assert len(bundled) >= 8, bundled
    outside = [path for path in maps if "site-packages" not in path and re.search(r"blas|lapack|tbb|fmt|nlopt|hwy|gfortran", path)]
    assert not outside, outside
    print(f"{len(bundled)} libraries of the wheel's own: {', '.join(bundled)}")


def check_threads():
    one = kernels(1)
    np.linalg.eigvalsh(one.ntk.astype(float))  # NumPy's OpenBLAS has begun.
    pools = threadpoolctl.threadpool_info()
    own = [pool for pool in pools if "widelimit.libs" in pool["filepath"]]
    theirs = [pool for pool in pools if "numpy" in pool["filepath"]]
    assert own and theirs, pools
    before = len(os.listdir("/proc/self/task"))
    for threads in (2, 0):
        many = kernels(threads)
        assert (many.ntk == one.ntk).all() and (many.nngp == one.nngp).all()
    with threadpoolctl.threadpool_limits(1):
        assert (kernels().ntk == one.ntk).all()
    product = np.random.default_rng(0).normal(size=(300, 300))
    expected = product @ product
    kernels()
    assert (product @ product == expected).all()
    cores = len(os.sched_getaffinity(0))
    after = len(os.listdir("/proc/self/task"))
    assert after <= before + 2 * cores + 2, (before, after)
    print(f"{len(pools)} pools of threads; {after} threads on {cores} cores; equal bits for any number of threads")


def check_requirements():
    from importlib import metadata

    asked = [line for line in metadata.requires("widelimit") if "extra ==" not in line]
    assert len(asked) == 1 and asked[0].startswith("numpy"), asked
    print(f"asks for {asked[0]} alone")


def check_program():
    """That of the environment's bin, with the library's bits."""
    program = pathlib.Path(sys.executable).with_name("widelimit")
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    assert widelimit.__version__ in version, version
    again = subprocess.run([sys.executable, "-I", "-m", "widelimit_program", "--version"], check=True, capture_output=True, text=True)
    assert again.stdout == version
    loaded = subprocess.run([sys.executable, "-I", "-c", "import sys, widelimit_program; print(*sys.modules)"],
                            check=True, capture_output=True, text=True).stdout.split()
    assert "widelimit_program" in loaded and not {"numpy", "widelimit"} & set(loaded), loaded
    subprocess.run([program, "gram", FOLDER / "data" / "networks" / "images.json", "--x", FOLDER / "data" / "images" / "x.npy",
                    "--out", FOLDER / "of_the_program"], check=True, capture_output=True)
    assert (np.load(FOLDER / "of_the_program" / "ntk.npy") == kernels().ntk).all()
    written = subprocess.run([program, "gp", "--data", "sample", "--network", "conv-gap", "--train", "20",
                              "--validation", "10", "--test", "10"], check=True, capture_output=True, text=True).stdout
    assert "accuracy" in written, written
    failed = subprocess.run([program, "no-such-command"], capture_output=True, text=True)
    assert failed.returncode != 0 and failed.stderr
    print(f"{version.splitlines()[0]}: the program of the wheel, with the same bits")


def check_processes():
    expected = kernels().ntk.tobytes()
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        receiver, sender = context.Pipe(False)
        process = context.Process(target=sent, args=(sender,))
        process.start()
        assert receiver.recv_bytes() == expected, method
        process.join(60)
        assert process.exitcode == 0, method
    print("equal bits in forked and spawned processes")


def check_guide():
    text = (FOLDER / "guide.md").read_text()
    ran = 0
    for block, printed in re.findall(r"^```python\n(.*?)^```\n(?:\nprints\n\n((?:(?:    [^\n]*)?\n)+))?", text, re.M | re.S):
        if re.search(r"^(import|from) (torch|jax|sklearn|matplotlib)|widelimit\.(torch|jax|sklearn)", block, re.M):
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(block, f"guide.md block {ran}", "exec"), {"__name__": "page"})
        if printed:
            assert output.getvalue() == textwrap.dedent(printed).strip("\n") + "\n", output.getvalue()
        ran += 1
    assert ran > 0
    print(f"{ran} blocks of the guide run")


if __name__ == "__main__":
    # Some blocks make files.
    os.chdir(FOLDER)
    check_threads()
    check_libraries()
    check_processes()
    check_requirements()
    check_program()
    check_guide()
    print(widelimit.__version__, widelimit.__file__)
