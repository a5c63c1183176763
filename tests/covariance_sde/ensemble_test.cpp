#include "widelimit/covariance_sde/ensemble.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;

namespace {

/// Two times, two paths of three tokens; path 1 stops between the times.
CovarianceEnsemble two_paths() {
  CovarianceEnsemble ensemble(3, 2, {0.5, 1});
  const Matrix<double> v{{4, 1, -2}, {1, 1, 0.5}, {-2, 0.5, 9}};
  for (Index time = 0; time < 2; ++time) {
    ensemble.set_covariance(time, 0, v * static_cast<double>(time + 1));
    ensemble.set_covariance(time, 1, Matrix<double>::Zero(3, 3));
  }
  ensemble.outcome(1) = {PathEnd::below, 0.75, 0.7, 4};
  return ensemble;
}

}  // namespace

TEST_CASE("ensemble: covariances come back as they were put in, path by path") {
  const CovarianceEnsemble ensemble = two_paths();
  CHECK(ensemble.covariance(1, 0) == Matrix<double>{{8, 2, -4}, {2, 2, 1}, {-4, 1, 18}});
  CHECK(ensemble.covariance(1, 1) == Matrix<double>::Zero(3, 3));
  CHECK(ensemble.entries(0, 2, 1) == std::vector<double>{0.5, 0});
}

TEST_CASE("ensemble: correlations, means over pairs and eigenvalues") {
  const CovarianceEnsemble ensemble = two_paths();
  CHECK(ensemble.correlations(0, 0, 2)[0] == Approx(-1.0 / 3));
  CHECK(std::isnan(ensemble.correlations(0, 0, 2)[1]));
  const double ab = 0.5, ac = -1.0 / 3, bc = 1.0 / 6;
  CHECK(ensemble.mean_correlations(1)[0] == Approx((ab + ac + bc) / 3));
  CHECK(ensemble.mean_absolute_correlations(1)[0] == Approx((ab - ac + bc) / 3));
  CHECK(ensemble.mean_absolute_covariances(1)[0] == Approx((2 + 4 + 1) / 3.0));
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(Eigen::MatrixXd(ensemble.covariance(0, 0)));
  CHECK(ensemble.largest_eigenvalues(0)[0] == Approx(solver.eigenvalues().maxCoeff()));
}

TEST_CASE("ensemble: a path runs until it stops, and why it stopped is counted") {
  const CovarianceEnsemble ensemble = two_paths();
  CHECK(ensemble.running(0, 1));
  CHECK_FALSE(ensemble.running(1, 1));
  CHECK(ensemble.running_paths(1) == std::vector<Index>{0});
  CHECK(ensemble.stopped_paths(1) == std::vector<Index>{1});
  CHECK(ensemble.stopped_paths(0).empty());
  CHECK(ensemble.count(PathEnd::below) == 1);
  CHECK(ensemble.count(PathEnd::above) == 0);
  CHECK(ensemble.cone_exits() == 4);
}

TEST_CASE("ensemble: sizes and places outside are errors") {
  CHECK_THROWS_WITH_AS((void)CovarianceEnsemble(0, 2, {1}),
                       "CovarianceEnsemble: tokens must be at least 1, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)CovarianceEnsemble(2, 2, {}),
                       "CovarianceEnsemble: times must be at least 1, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)two_paths().covariance(2, 0),
                       "CovarianceEnsemble: time and path must lie in [0, 2) and [0, 2), got 2 and 0",
                       ArgumentError);
  CHECK_THROWS_AS((void)CovarianceEnsemble(1, 1, {1}).mean_correlations(0), ArgumentError);
}
