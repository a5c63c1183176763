#!/bin/sh
# make-python-environment.sh FOLDER: a virtual environment of the system's Python with what the Python package needs to be
# built and tested (python-packages.txt beside this script). Does nothing when all is there.
set -eu

folder=$1
list=$(dirname "$0")/python-packages.txt
stamp=$folder/installed-packages.txt
cmp -s "$list" "$stamp" && exit 0

echo "Making the Python environment $folder"
/usr/bin/python3 -m venv "$folder" 2>/dev/null || python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$list"
cp "$list" "$stamp"
