#!/bin/sh
# find-pythons.sh: the CPythons of this machine for which an extension can be compiled, from 3.9 on, the oldest first:
# lines "MINOR PATH". Looks at the system's, at python3.N in PATH, and at pyenv's.
set -eu
for python in /usr/bin/python3 python3 $(seq -f 'python3.%g' 9 20) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
  command -v "$python" >/dev/null 2>&1 || continue
  # pyenv has names of versions that are not chosen: those fail.
  "$python" - 2>/dev/null <<'PYTHON' || true
import os
import sys
import sysconfig

has_headers = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
if sys.implementation.name == "cpython" and sys.version_info >= (3, 9) and has_headers and not is_free_threaded:
    print(sys.version_info.minor, os.path.realpath(sys.executable))
PYTHON
done | sort -s -n -k 1,1 | awk '!found[$0]++'
