#!/bin/sh
# tracked-files.sh FOLDER [PATH...]: copies what git tracks here, or below the PATHs, into FOLDER as it stands in the working
# tree, changes included. What is packed for others is made from such a copy: whatever else lies in the tree (models, outputs,
# keys) stays at home.
set -eu
cd "$(dirname "$0")/.."
folder=$1
shift
if ! [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
  echo "tracked-files.sh: $(pwd) is no checkout of git, which knows what belongs to the project: what is for others is made from a clone" >&2
  exit 1
fi
rm -rf "$folder"
mkdir -p "$folder"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
# Files that were deleted and not yet committed are tracked, too.
git ls-files -z --deduplicate -- "$@" | xargs -0 -n 1 sh -c '[ ! -e "$0" ] && [ ! -L "$0" ] || printf "%s\\0" "$0"' >"$list"
tar --create --no-recursion --null --files-from "$list" | tar --extract --directory "$folder"
