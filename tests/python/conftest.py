import os

import numpy as np
import pytest


@pytest.fixture
def random():
    return np.random.default_rng(1)


SKIPPED = []


def pytest_runtest_logreport(report):
    if report.skipped:
        SKIPPED.append((report.nodeid, str(report.longrepr[2])))


def pytest_collectreport(report):
    if report.skipped:
        SKIPPED.append((report.nodeid, str(report.longrepr[2])))


def pytest_sessionfinish(session):
    """Where all tests are required (scripts/run-tests.sh), one that is skipped has failed; PyTorch alone may be missing."""
    missing = [f"{test}: {reason}" for test, reason in SKIPPED if "torch" not in reason.lower()]
    if os.environ.get("WIDELIMIT_PYTHON_TESTS") == "required" and missing:
        print("\nSkipped, and required:", *missing, sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
