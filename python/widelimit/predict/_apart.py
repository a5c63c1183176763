"""Runs long NumPy computations so that Ctrl-C does not have to wait for them."""

import threading

import numpy as np

from ._live import library_of

_SMALL = 1 << 18  # Arrays of up to this many numbers never take long.


def apart(function, *arrays):
    """function(*arrays), computed by another thread if it may take long. At Ctrl-C that thread is left to end by itself, and
    the caller continues with KeyboardInterrupt."""
    if sum(array.size for array in arrays) < _SMALL or threading.current_thread() is not threading.main_thread():
        return function(*arrays)
    found, errors, done = [], [], threading.Event()

    def compute():
        try:
            found.append(function(*arrays))
        except BaseException as error:  # Passed on to the caller.
            errors.append(error)
        done.set()

    threading.Thread(target=compute, daemon=True).start()
    while not done.wait(0.05):  # Signals are handled in between.
        pass
    if errors:
        raise errors[0]
    return found[0]


def product(*matrices):
    """The product of matrices from the left to the right, [..., n, m] as NumPy multiplies them."""
    library = library_of(*matrices)
    if library is not None:
        matrices = [library.array(matrix) for matrix in matrices]
    result = matrices[0]
    for matrix in matrices[1:]:
        result = apart(np.matmul, result, matrix) if library is None else result @ matrix
    return result
