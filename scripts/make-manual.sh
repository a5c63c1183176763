#!/bin/sh
# make-manual.sh PROGRAM FOLDER: manual pages from the program's --help: one for it, and one for each command, also of
# those below others (widelimit-sde-simulate.1).
set -eu

program=$(realpath "$1")
folder=$2
mkdir -p "$folder"
links=$(mktemp -d)
trap 'rm -r "$links"' EXIT
# Without what --version tells of the machine that builds.
version=$("$program" --version | sed -n '1s/.* //p')

# page "sde simulate" PURPOSE: help2man takes a page's name from the file that it runs.
page() {
  name=widelimit$(printf '%s' "${1:+ $1}" | tr ' ' -)
  ln -s "$program" "$links/$name"
  help2man --no-info --section 1 --name "$2" --version-string "$version" --help-option "$1 --help" \
    --output "$folder/$name.1" "$links/$name"
}

# pages_below "sde": of all commands below it.
pages_below() {
  # shellcheck disable=SC2086
  "$program" $1 --help | awk '/^Subcommands:/ { found = 1; next } /^$/ { found = 0 } found' |
    while read -r command purpose; do
      page "${1:+$1 }$command" "$purpose"
      pages_below "${1:+$1 }$command"
    done
}

page "" "kernels of wide neural networks, predictions with them, limit theories of transformers"
pages_below ""
