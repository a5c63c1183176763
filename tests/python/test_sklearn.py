"""Estimators for scikit-learn."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.utils.estimator_checks import check_estimator

from widelimit.sklearn import NetworkKernel, WideNetworkClassifier, WideNetworkRegressor


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [WideNetworkRegressor(), WideNetworkClassifier()])
def test_estimators_obey_scikit_learns_rules(estimator):
    failed = [result for result in check_estimator(estimator, on_fail=None) if result["status"] == "failed"]
    assert failed == []


def test_a_network_kernel_in_their_regressor(random):
    x, test = random.normal(size=(12, 3)), random.normal(size=(4, 3))
    y = np.sin(x[:, 0])
    theirs = GaussianProcessRegressor(kernel=NetworkKernel(), alpha=0.01, optimizer=None).fit(x, y)
    mean, deviation = theirs.predict(test, return_std=True)
    kernel = NetworkKernel()
    inverse = np.linalg.inv(kernel(x) + 0.01 * np.eye(12))
    np.testing.assert_allclose(mean, kernel(test, x) @ inverse @ y, rtol=1e-8)
    variance = kernel.diag(test) - np.einsum("ij,jk,ik->i", kernel(test, x), inverse, kernel(test, x))
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-6)


def test_classes_and_probabilities(random):
    x = random.normal(size=(60, 2))
    y = np.array(["in", "out"])[(np.linalg.norm(x, axis=1) > 1.2).astype(int)]
    model = WideNetworkClassifier().fit(x, y)
    test = random.normal(size=(200, 2))
    expected = np.array(["in", "out"])[(np.linalg.norm(test, axis=1) > 1.2).astype(int)]
    assert model.score(test, expected) > 0.85
    probabilities = model.predict_proba(test)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert np.mean(probabilities.max(1)[model.predict(test) != expected]) < np.mean(probabilities.max(1))
