#include "widelimit/covariance_sde/checks.hpp"

#include <doctest/doctest.h>

#include "widelimit/covariance_sde/time_step.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;

namespace {

const Matrix<double> start{{1.0, 0.5}, {0.5, 2.0}};

}  // namespace

TEST_CASE("checks: covariances") {
  const auto fails = [](const Matrix<double>& v, const char* message) {
    CHECK_THROWS_WITH_AS(require_covariance("V0", v), doctest::Contains(message), ArgumentError);
  };
  CHECK_NOTHROW(require_covariance("V0", start));
  fails(Matrix<double>(0, 0), "V0: a covariance must be square with one row a token, got 0 x 0");
  fails(Matrix<double>(2, 3), "got 2 x 3");
  fails(Matrix<double>{{1.0, 0.5}, {0.4, 1.0}}, "must be symmetric");
  fails(Matrix<double>{{1.0, 2.0}, {2.0, 1.0}},
        "must be positive semidefinite, got eigenvalues from -1 to 3");
  CHECK_NOTHROW(require_variances("V0", start));
  CHECK_THROWS_WITH_AS(require_variances("V0", Matrix<double>{{1.0, 0.0}, {0.0, 0.0}}),
                       doctest::Contains("got 0 at (1, 1): leave that token out"), ArgumentError);
}

TEST_CASE("checks: starts and ends of paths") {
  const Matrix<double> v = Matrix<double>{{3.0, 0.0}, {0.0, 0.5}};
  CHECK_FALSE(end_of_path(v, {0.4, 4}));
  CHECK(end_of_path(v, {0.4, 2}) == PathEnd::above);
  CHECK(end_of_path(v, {0.6, 4}) == PathEnd::below);
  CHECK_FALSE(end_of_path(v, {0, 4}));
  CHECK(end_of_path(v * 1e308 * 10, {0, 4}) == PathEnd::not_finite);
  CHECK_NOTHROW(require_start("start", v, {0.4, 4}));
  CHECK_THROWS_WITH_AS(require_start("start", v, {0.4, 2}),
                       "start: the eigenvalues of V_0 must lie within the stopping bounds 0.4 and 2",
                       ArgumentError);
}

TEST_CASE("checks: the largest step is the one that geometric_step() still takes") {
  const SdeModel model = resnet_model(ResidualWeights::shaped(0.5), {1, -3});
  const double most = 8 / (model.relu_drift * 16);
  const StepNoise noise{Matrix<double>::Zero(2, 2), Matrix<double>::Zero(2, 2)};
  CHECK_NOTHROW(require_step_size("max_step", model, most * 0.999));
  CHECK_NOTHROW(static_cast<void>(geometric_step(model, start, most * 0.999, noise)));
  CHECK_THROWS_AS(require_step_size("max_step", model, most * 1.001), ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(geometric_step(model, start, most * 1.001, noise)), ArgumentError);
  CHECK_THROWS_AS(require_step_size("max_step", model, 0), ArgumentError);
}

TEST_CASE("checks: networks") {
  const NetworkSpec network = shaped_resnet(8, ResidualWeights::shaped(0.5), {0, -1});
  CHECK_NOTHROW(require_network("network", network, 8));
  CHECK_THROWS_WITH_AS(require_network("network", network, 9), doctest::Contains("network: width"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS(require_network("network", {.width = 8}, 2),
                       "network: a network needs an attention or a feedforward block, got neither",
                       ArgumentError);
}
