#!/bin/sh
# check-sdist.sh ARCHIVE: builds the source archive as pip does for somebody who has the system's compilers and libraries but
# not the repository, library and program included (minutes), and computes with what was installed.
set -eu
archive=$(realpath "$1")
place=$(mktemp -d /tmp/sdist-XXXXXX)
trap 'rm -rf "$place"' EXIT
/usr/bin/python3 -m venv "$place/environment"
"$place/environment/bin/python" -m pip install --quiet --disable-pip-version-check "$archive"
cd "$place"
environment/bin/widelimit --version
environment/bin/python - <<'PYTHON'
import numpy as np
import widelimit

x = np.random.default_rng(0).normal(size=(4, 3))
network = widelimit.Network([widelimit.layers.dense(2), widelimit.layers.relu(), widelimit.layers.dense()])
kernel = widelimit.gram(network, x).nngp
norms = np.linalg.norm(x, axis=1)
angle = np.arccos(np.clip(x @ x.T / np.outer(norms, norms), -1, 1))
expected = np.outer(norms, norms) * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi / 3
assert np.allclose(kernel, expected, rtol=1e-7), (kernel, expected)
print(widelimit.__version__, widelimit.__file__)
PYTHON
