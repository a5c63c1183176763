#!/bin/sh
# make-docs.sh PROGRAM SPHINX_BUILD FOLDER PYTHON: the site into FOLDER: the pages of the repository, the reference of the
# Python package, which PYTHON can import, the commands' help, and the reference of the headers in FOLDER/reference. Any
# warning is an error.
set -eu
cd "$(dirname "$0")/.."

program=$(realpath "$1")
sphinx=$2
folder=$3
python=$4
source=$folder-source

# The pages in the folders of the repository, so that their links hold.
rm -rf "$folder"
mkdir -p "$folder"
scripts/tracked-files.sh "$source" README.md CHANGELOG.md CONTRIBUTING.md docs data/README.md examples/README.md
mv "$source/docs/site/index.md" "$source/index.md"
python3 docs/site/command_reference.py "$program" "$source/commands"
"$python" docs/site/python_reference.py "$source/python"

"$sphinx" -q -W --keep-going -j auto -b html -c docs/site -d "$folder-trees" "$source" "$folder"

version=$(sed -n 's/^set(WIDELIMIT_VERSION \(.*\))/\1/p' CMakeLists.txt)
{ cat docs/site/Doxyfile; echo "PROJECT_NUMBER = $version"; echo "OUTPUT_DIRECTORY = $folder"
  echo "HTML_OUTPUT = reference"; } | doxygen -
echo "$folder/index.html"
