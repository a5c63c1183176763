"""Reference numbers of Gaussian-process regression by scikit-learn 1.9.1, for tests/gp/model_reference_test.cpp.

The kernel is the NNGP of network.json in NumPy (Cho & Saul 2009), handed to GaussianProcessRegressor; nothing of
widelimit is used. Run in this folder: python3 make.py
"""

import json

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

WEIGHT, BIAS, DEPTH = 1.7, 0.15, 2
NOISE = 0.03


def covariances(a, b):
    cross, qa, qb = a @ b.T / a.shape[1], (a * a).mean(1), (b * b).mean(1)
    for _ in range(DEPTH):
        cross, qa, qb = (WEIGHT * k + BIAS for k in (cross, qa, qb))
        scale = np.sqrt(np.outer(qa, qb))
        cosine = np.clip(cross / scale, -1, 1)
        angle = np.arccos(cosine)
        cross = scale * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)
        qa, qb = qa / 2, qb / 2
    return cross, qa


class Nngp(Kernel):
    hyperparameters = []
    theta = np.empty(0)

    def __init__(self):
        pass

    def __call__(self, x, y=None, eval_gradient=False):
        k = covariances(x, x if y is None else y)[0]
        if y is None:
            np.fill_diagonal(k, self.diag(x))
        return (k, np.empty(k.shape + (0,))) if eval_gradient else k

    def diag(self, x):
        return covariances(x, x[:1])[1]

    def is_stationary(self):
        return False


def posterior(x, y):
    return GaussianProcessRegressor(Nngp(), alpha=NOISE, optimizer=None).fit(x, y)


random = np.random.default_rng(22)
x, x_test = random.normal(size=(24, 5)), random.normal(size=(9, 5))
y = np.stack([np.sin(x[:, 0] * x[:, 1]), x[:, 2] - 0.3 * x[:, 3]], 1) + 0.1 * random.normal(size=(24, 2))
gp = posterior(x, y)
mean, std = gp.predict(x_test, return_std=True)
_, covariance = gp.predict(x_test, return_cov=True)

left_out_mean, left_out_variance = np.empty_like(y), np.empty(len(x))
for i in range(len(x)):
    rest = np.arange(len(x)) != i
    m, s = posterior(x[rest], y[rest]).predict(x[i : i + 1], return_std=True)
    left_out_mean[i], left_out_variance[i] = m[0], s.flat[0] ** 2 + NOISE

np.save("x.npy", x)
np.save("y.npy", y)
np.save("x_test.npy", x_test)
np.save("mean.npy", mean)
np.save("standard_deviation.npy", std[:, 0])
np.save("covariance.npy", np.ascontiguousarray(covariance[:, :, 0]))
np.save("left_out_mean.npy", left_out_mean)
np.save("left_out_variance.npy", left_out_variance)
layers = []
for _ in range(DEPTH):
    layers += [{"layer": "dense", "weight_variance": WEIGHT, "bias_variance": BIAS}, {"layer": "relu"}]
layers += [{"layer": "dense", "weight_variance": 1.0, "bias_variance": 0.0}]
with open("network.json", "w") as file:
    json.dump({"widelimit": 1, "name": "regression", "layers": layers}, file, indent=1)
with open("evidence.json", "w") as file:
    # Of both outputs together; scikit-learn sums over them.
    json.dump({"noise_variance": NOISE, "log_marginal_likelihood": gp.log_marginal_likelihood_value_}, file, indent=1)
