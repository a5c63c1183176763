#!/bin/sh
# Redraws the pictures that stand on files of data/, and compares the tables of the pages with these files.
# PYTHON is an interpreter with the package widelimit, NumPy, SciPy and Matplotlib [python3].
set -e
cd "$(dirname "$0")/programs"
for program in learning_curves calibration attention_depth shaped_transformer shaped_curves signal_propagation propagation_maps heads; do
  "${PYTHON:-python3}" $program.py picture
done
"${PYTHON:-python3}" check_pages.py
