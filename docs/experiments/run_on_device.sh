#!/bin/sh
# run_on_device.sh MINUTES: the experiments for a machine with a device, most telling first, as many as MINUTES allow. Every program
# estimates its time before it begins and leaves out a cell that does not fit; tiles and rows are kept, so that the next call goes on.
#
# A machine without a network needs this folder, the wheel of `make wheel` (installed with `pip install --no-index --no-deps`), NumPy,
# SciPy and the data. Afterwards bring the files of ROWS back.
#
#   PYTHON   an interpreter with the package widelimit, NumPy and SciPy [python3]
#   DEVICE   as `widelimit devices` prints it [gpu]
#   CIFAR    folder of CIFAR-10's binary files; REVIEWS, VECTORS: aclImdb and its word vectors (left out: no reviews)
#   WORK     folder for tiles [work];  ROWS: folder for the files of rows [docs/experiments/data], begun as a copy of these
#   TRIAL    1: a few images of 8 x 8 in every place, to try the programs; needs ROWS
#
# Ends with 1 if a program failed, else with 75 if something had no time and a further call goes on, else with 0, and says what was
# done, what had no time and what the device cannot compute.
set -u
[ $# = 1 ] || { sed -n '2,3p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3} device=${DEVICE:-gpu} work=${WORK:-work} rows=${ROWS:-$here/data}
: "${CIFAR:?is the folder of the binary files of CIFAR-10}"
end=$(awk "BEGIN {printf \"%d\", $(date +%s) + $1 * 60}")
if [ "${TRIAL:-0}" = 1 ]; then
  : "${ROWS:?must be another folder for a trial}"
  small="--size 8 --train 20 --test 10"
  figure="--size 8 --train 20 --validation 10 --test 10"
  table="--size 8 --train 30 --validation 10 --test 10"
  search="--size 8 --train 20 --validation 10 --settings 3 --depth 2"
  reviews="--train 12 --validation 8 --test 8 --search 6 4"
  draws="0" depths="1 2"
else
  small="--train 320 --test 2000"
  figure="--size 32 --train 2000 --validation 4000 --test 2000"
  table="--size 32 --train 5000 --validation 1000 --test 1000"
  search="--size 8 --train 500 --validation 1000 --settings 300 --depth 8"
  reviews="--train 3200 --validation 1600 --test 1600"
  draws="0 1 2 3 4" depths="1 2 4 8"
fi
mkdir -p "$work" "$rows"
for file in "$here"/data/*.csv; do [ -e "$rows/$(basename "$file")" ] || cp "$file" "$rows/"; done
"$python" -c 'import sys, numpy, scipy, widelimit
with widelimit.device(sys.argv[1]): pass' "$device" || exit 1

unable="" late="" failed="" done=0
run() {
  left=$((end - $(date +%s)))
  what="$*"
  if [ $left -lt 5 ]; then late="$late\n  $what"; return; fi
  program=$1; shift
  "$python" "$here/programs/$program.py" "$@" --work "$work" --out "$rows" --device "$device" --threads 0 \
    --minutes "$(awk "BEGIN {print $left / 60}")"
  case $? in
    0) done=$((done + 1)) ;;
    69) unable="$unable\n  $what" ;;
    75) late="$late\n  $what" ;;
    *) failed="$failed\n  $what" ;;
  esac
}

# (a) small-data CIFAR-10
for draw in $draws; do run small_cifar10 conv-gap-14 "$draw" --data "$CIFAR" $small; done
# (b) figure 4 of infinite attention: cheap cells first
for depth in $depths; do
  for head in flatten gap lap vanilla struct residual; do run attention_depth $head $depth 0 --data "$CIFAR" $figure; done
done
# (c) its table 2, in part
for head in struct residual gap lap flatten; do run attention_depth $head 8 0 --data "$CIFAR" $table; done
# (d) its appendix A.1, at 8 x 8: 300 settings at the paper's size are 4 billion pairs
run hyperparameters search --data "$CIFAR" $search
# (e) its table 3
if [ -n "${REVIEWS:-}" ] && [ -n "${VECTORS:-}" ]; then
  for family in struct-cnn struct; do run reviews $family --data "$REVIEWS" --vectors "$VECTORS" $reviews; done
else
  echo "No reviews: REVIEWS and VECTORS are not set"
fi
# (f) Myrtle networks, with mirror images
for network in myrtle5 myrtle10; do
  for draw in $draws; do run small_cifar10 $network "$draw" --flips --data "$CIFAR" $small; done
done

printf '%s cases are done; rows are in %s\n' "$done" "$rows"
[ -z "$late" ] || printf 'No time for:%b\n' "$late"
[ -z "$unable" ] || printf 'Cannot be computed on %s:%b\n' "$device" "$unable"
[ -z "$failed" ] || { printf 'Failed:%b\n' "$failed"; exit 1; }
[ -z "$late" ] || exit 75
