#!/bin/bash
# card.sh --device NAME [--seconds 480] [--out card] [--small] [--peer WHAT] [--networks "NAME..."]: what a machine with a card is
# wanted for, most telling first, within so many seconds; a second call goes on where the first one was.
#
#   --device    as `widelimit devices` prints it
#   --seconds   all steps end within them: each has a share at most, and the last one what is left [480]
#   --out       folder of all files [card]
#   --small     one reference case, and 3 inputs of 8 x 8 in every place: a rehearsal, as on PoCL
#   --peer      a Python that has neural-tangents, or a folder that holds the package for PYTHON (left out: not measured)
#   --networks  those of bench/devices.py to time [all]
#
#   PYTHON      an interpreter with the package widelimit, NumPy and SciPy [python3]
#   CIFAR       folder of the binary files of CIFAR-10 (left out: no tables); REVIEWS, VECTORS as in
#               docs/experiments/run_on_device.sh, which computes the tables
#   PROGRAM     the program widelimit, which times the forms of kernels (widelimit devices --tune); times of networks are taken
#               in the usual form and in the fastest [widelimit]
#
# No network is needed, only this repository's bench, docs/experiments and tests/reference, and the wheel of `make wheel`.
# Files of rows in the folder: cases.csv (reference cases), times.csv, limits.csv and shares.csv (parts of the device's
# peak), tables/*.csv, and steps.csv (a row for each step and call); what a step prints is in STEP.log.
#
# Ends with 0 if every step is done, 1 if one failed, 75 if there was no time for all (call it again), 2 if it was called wrongly.
set -u
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '2,3p' "$0" >&2; echo "card.sh: $1" >&2; exit 2; }
device="" seconds=480 out=card small=0 peer="" networks=""
while [ $# -gt 0 ]; do
  case $1 in
    --small) small=1; shift; continue ;;
    --device | --seconds | --out | --peer | --networks) [ $# -gt 1 ] || usage "$1: a value is missing" ;;
    *) usage "unknown argument $1" ;;
  esac
  case $1 in
    --device) device=$2 ;; --seconds) seconds=$2 ;; --out) out=$2 ;; --peer) peer=$2 ;; --networks) networks=$2 ;;
  esac
  shift 2
done
[ -n "$device" ] || usage "--device: expected a name that \`widelimit devices\` lists"
[[ $seconds =~ ^[1-9][0-9]*$ ]] || usage "--seconds: expected a whole number above 0, got $seconds"
begin=$(date +%s)
end=$((begin + seconds))
python=${PYTHON:-python3}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
[ -e "$out/steps.csv" ] || echo "step,outcome,status,seconds,limit" > "$out/steps.csv"
made="device $device, small $small, networks ${networks:-all}"
[ -e "$out/options" ] || echo "$made" > "$out/options"
[ "$(cat "$out/options")" = "$made" ] || usage "--out: $out was begun with $(cat "$out/options"); choose another folder than for $made"
failed="" unfinished=""

say() { printf '%-8s %s\n' "$1" "$2"; }

# step NAME PERCENT COMMAND...: within PERCENT of all seconds, and what is left less what stopping takes.
step() {
  local name=$1 limit=$((seconds * $2 / 100)) left=$((end - $(date +%s) - 3)) start status outcome
  shift 2
  if grep -q "^$name,done," "$out/steps.csv"; then say "$name" "is done already"; return; fi
  [ "$limit" -le "$left" ] || limit=$left
  if [ "$limit" -lt 2 ]; then
    unfinished="$unfinished $name"
    say "$name" "no time was left"
    echo "$name,no time,,0,0" >> "$out/steps.csv"
    return
  fi
  start=$(date +%s)
  LIMIT=$limit timeout --kill-after=2 "$limit" "$@" >> "$out/$name.log" 2>&1
  status=$?
  case $status in
    0) outcome="done" ;;
    75 | 124 | 137) outcome=unfinished; unfinished="$unfinished $name" ;;
    *) outcome=failed; failed="$failed $name" ;;
  esac
  echo "$name,$outcome,$status,$(($(date +%s) - start)),$limit" >> "$out/steps.csv"
  say "$name" "$outcome after $(($(date +%s) - start)) s (status $status)"
  [ $outcome != failed ] || tail -n 3 "$out/$name.log" | sed 's/^/         /'
}

# left_out NAME WHY: a step that was not asked for.
left_out() { say "$1" "left out: $2"; }

cases=() tuned=(conv-gap:depth=8 struct) input=32,32,3 sizes=(--quick) precision=(float double) bytes=$((1 << 30)) trial=0 images=${CIFAR:-}
if [ $small = 1 ]; then
  cases=(fcn-relu) tuned=(conv-gap:depth=1) input=8,8,3 sizes=(--count 3 --size 8) precision=(float) bytes=$((1 << 24)) trial=1
fi
read -r -a chosen <<< "$networks"
[ ${#chosen[@]} -gt 0 ] || chosen=(gap8 struct conv-flatten dense gap14 myrtle5)
times=("$python" "$here/devices.py" "${chosen[@]}" --device "$device" --rows "$out/times.csv" --precision "${precision[@]}" "${sizes[@]}" --form usual)
if [ -n "$peer" ] && [ -d "$peer" ]; then
  # A Python that looks for packages there first.
  printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s" "$@"\n' "$(cd "$peer" && pwd)" "$(command -v "$python")" > "$out/peer"
  chmod +x "$out/peer"
  peer=$out/peer
fi

step device 10 "$python" -c 'import sys, widelimit
print(widelimit.__version__, widelimit._core.device_in_full(sys.argv[1]) or sys.exit("card.sh: the CPU is no card"))' "$device"
step cases 20 "$python" "$here/device_cases.py" "${cases[@]}" --device "$device" --rows "$out/cases.csv" --precision "${precision[@]}"
# Forms are kept in the folder: what this machine's user has remembered changes no time.
export WIDELIMIT_CACHE=$out/forms
step times 25 env WIDELIMIT_DEVICE_FORM=usual "${times[@]}"
step tune 10 "${PROGRAM:-widelimit}" devices --tune "${tuned[@]}" --input "$input" --device "$device"
# What is not yet remembered is measured in the first call of each network, which is not timed.
step tuned 20 env WIDELIMIT_DEVICE_FORM=tuned "${times[@]}" --form tuned
if [ -n "$peer" ]; then
  step peer 20 env WIDELIMIT_DEVICE_FORM=usual "${times[@]}" --peer "$peer"
else
  left_out peer "no --peer"
fi
step limits 10 "$python" "$here/device_limits.py" --device "$device" --rows "$out/limits.csv" --bytes "$bytes" \
  --times "$out/times.csv" --shares "$out/shares.csv"
if [ -n "$images" ]; then
  # The programs estimate what fits into the minutes that are left.
  # shellcheck disable=SC2016
  step tables 100 env PYTHON="$python" DEVICE="$device" CIFAR="$images" WORK="$out/work" ROWS="$out/tables" TRIAL=$trial \
    sh -c 'exec sh "$0" "$(awk "BEGIN {print $LIMIT / 60}")"' "$here/../docs/experiments/run_on_device.sh"
else
  left_out tables "CIFAR is not set"
fi

echo "Files are in $out; $(($(date +%s) - begin)) s"
[ -z "$unfinished" ] || echo "No time for all of:$unfinished"
[ -z "$failed" ] || { echo "Failed:$failed"; exit 1; }
[ -z "$unfinished" ] || exit 75
