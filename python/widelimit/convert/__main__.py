"""python -m widelimit.convert model.onnx network.json"""

from __future__ import annotations

import argparse
import sys
import warnings

from .. import Error
from . import from_onnx


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m widelimit.convert", description="Writes the infinite-width limit of a network in an ONNX file as a network file, "
                                                        "which the "
        "program, C++ and Python read, and prints what rule of initialisation each tensor follows.")
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("network", help="the network file to write (.json)")
    parser.add_argument("--parametrisation", choices=("standard", "ntk", "mup"), default="standard",
                        help="of the NTK: of the file's own parameters at their widths, of parameters times their deviations, or with the "
                        "learning rates of muP; default: %(default)s")
    parser.add_argument("--width-multiplier", type=float, default=1.0, metavar="M", help="for mup: the width over the base width")
    parser.add_argument("--layout", choices=("auto", "first", "last"), default="auto", help="where the inputs have their channels")
    parser.add_argument("--fixed", action="append", default=[], metavar="TENSOR",
                        help="a tensor that is no parameter (a graph's matrix, sinusoids)")
    parser.add_argument("--untie", action="store_true", help="take a parameter that is used at several places as different ones")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """0, or 1 after a line that says what is wrong."""
    given = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            network = from_onnx(given.model, parametrisation=given.parametrisation, width_multiplier=given.width_multiplier,
                                layout=given.layout, fixed=given.fixed, untie=given.untie)
        network.write(given.network)
    except (Error, ImportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not given.quiet:
        print(network.report)
        for warning in caught:
            if issubclass(warning.category, UserWarning) and "tensors follow no rule" in str(warning.message):
                print(f"warning: {warning.message}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
