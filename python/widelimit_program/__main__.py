"""python -m widelimit_program: the program, where the folder of `widelimit` is not in PATH."""

from . import main

main()
