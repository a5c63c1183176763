#!/bin/sh
# make-manual.sh PROGRAM FOLDER: manual pages from the program's --help, one for it and one for each command.
set -eu

program=$1
folder=$2
mkdir -p "$folder"

# NAME and what --help says it is for.
page() {
  help2man --no-info --section 1 --name "$3" --help-option "$2" --output "$folder/$1.1" "$program"
}

page widelimit --help "kernels of wide neural networks, predictions with them, limit theories of transformers"
"$program" --help | awk '/^Subcommands:/ { found = 1; next } /^$/ { found = 0 } found' |
  while read -r command purpose; do
    page "widelimit-$command" "$command --help" "$purpose"
  done
