#include "widelimit/gp/known_noise.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>
#include <vector>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using widelimit::gp::known_noise_amplitude;
using widelimit::gp_test::random_matrix;
using widelimit::gp_test::squared_exponential;

namespace {

const std::vector<double> grid{1e-4, 1e-3, 1e-2, 1e-1, 1, 10};

Matrix<double> kernel_of_rows(Eigen::Index rows) {
  const Matrix<double> x = random_matrix(rows, 2, 3);
  return squared_exponential(x, x, 1);
}

double log_likelihood(const Matrix<double>& gram, const Vector<double>& targets, double noise,
                      double amplitude) {
  Matrix<double> covariance = amplitude * gram;
  covariance.diagonal().array() += noise;
  const Eigen::LLT<Matrix<double>> factor(covariance);
  return -targets.dot(factor.solve(targets)) / 2 -
         Matrix<double>(factor.matrixL()).diagonal().array().log().sum();
}

}  // namespace

TEST_CASE("known noise: no other amplitude is likelier") {
  const Matrix<double> gram = kernel_of_rows(40);
  for (const double scale : {0.01, 1.0, 100.0}) {
    CAPTURE(scale);
    const Eigen::LLT<Matrix<double>> root(gram + 1e-9 * Matrix<double>::Identity(40, 40));
    const Vector<double> signal = root.matrixL() * random_matrix(40, 1, 4);
    const double noise = 0.04 * scale * scale;
    const Vector<double> targets = scale * (1.7 * signal + 0.2 * Vector<double>(random_matrix(40, 1, 5)));
    const double amplitude = known_noise_amplitude(gram, targets, noise, grid, 1);
    const double best = log_likelihood(gram, targets, noise, amplitude);
    for (const double factor : {0.2, 0.5, 0.9, 0.99, 1.01, 1.1, 2.0, 5.0})
      CHECK(log_likelihood(gram, targets, noise, factor * amplitude) < best);
    // Targets in other units have an amplitude in the squares of these; the search ends at 12 bits of its logarithm.
    CHECK(known_noise_amplitude(gram, 3 * targets, 9 * noise, grid, 1) ==
          doctest::Approx(9 * amplitude).epsilon(0.01));
  }
}

TEST_CASE("known noise: arguments that mean nothing are errors") {
  const Matrix<double> gram = kernel_of_rows(5), targets = random_matrix(5, 1, 4);
  for (const double noise : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS(static_cast<void>(known_noise_amplitude(gram, targets, noise, grid, 1)), ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(known_noise_amplitude(gram, targets, 0.1, {}, 1)), ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(known_noise_amplitude(gram, targets, 0.1, {0.1, 0}, 1)), ArgumentError);
}
