#!/bin/sh
# make-python-environment.sh FOLDER [LIST [PYTHON]]: a virtual environment of PYTHON, the system's if none is given, with the
# packages of a list, python-packages.txt beside this script (what the Python package needs to be built and tested) if none
# is given. Does nothing when all is there.
set -eu

folder=$1
list=${2:-$(dirname "$0")/python-packages.txt}
stamp=$folder/installed-packages.txt
cmp -s "$list" "$stamp" && exit 0

echo "Making the Python environment $folder"
if [ -n "${3:-}" ]; then
  "$3" -m venv "$folder"
else
  /usr/bin/python3 -m venv "$folder" 2>/dev/null || python3 -m venv "$folder"
fi
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 -r "$list"
cp "$list" "$stamp"
