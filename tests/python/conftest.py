import os

import numpy as np
import pytest

# Before JAX is imported, here and in programs that tests start: XLA's optimiser takes longer than what it makes runs, and
# what is under test is called by its code, not compiled by it.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")


@pytest.fixture
def random():
    return np.random.default_rng(1)


@pytest.fixture
def in_double():
    """JAX computes in double on all threads: it may call back on others, which contexts do not reach."""
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


SKIPPED = []


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        SKIPPED.append((report.nodeid, str(report.longrepr[2])))


def pytest_collectreport(report):
    if report.skipped:
        SKIPPED.append((report.nodeid, str(report.longrepr[2])))


def pytest_sessionfinish(session):
    """Where all tests are required (scripts/run-tests.sh), one that is skipped has failed; PyTorch and PyArrow, which are
    large, may be missing."""
    missing = [f"{test}: {reason}" for test, reason in SKIPPED if not any(large in reason.lower() for large in ("torch", "pyarrow"))]
    if os.environ.get("WIDELIMIT_PYTHON_TESTS") == "required" and missing:
        print("\nSkipped, and required:", *missing, sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
