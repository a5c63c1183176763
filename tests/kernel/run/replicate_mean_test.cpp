// Means and standard errors of replicates, against formulas on all numbers at once.
#include "kernel/run/replicate_mean.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

namespace widelimit::testing::replicate_mean_test {
namespace {

TEST_CASE("ReplicateMean: the mean, and the scatter of replicates over their number") {
  constexpr int count = 7;
  std::mt19937 generator(3);
  // An offset that squares would drown the scatter in.
  std::normal_distribution<double> normal(1e6, 1e-3);
  std::vector<Matrix<double>> results;
  ReplicateMean<double> mean;
  for (int r = 0; r < count; ++r) {
    Matrix<double>& result = results.emplace_back(2, 3);
    for (Index k = 0; k < result.size(); ++k) result.data()[k] = normal(generator);
    mean.add(result);
  }
  for (Index k = 0; k < 6; ++k) {
    long double sum = 0, squares = 0;
    for (const Matrix<double>& result : results) sum += result.data()[k];
    for (const Matrix<double>& result : results) {
      const long double difference = result.data()[k] - sum / count;
      squares += difference * difference;
    }
    CHECK(mean.mean().data()[k] == doctest::Approx(static_cast<double>(sum / count)).epsilon(1e-14));
    CHECK(mean.error().data()[k] ==
          doctest::Approx(static_cast<double>(std::sqrt(squares / (count * (count - 1))))).epsilon(1e-5));
  }
}

TEST_CASE("ReplicateMean: equal replicates in float have no error") {
  ReplicateMean<float> mean;
  const Matrix<float> result = Matrix<float>::Constant(2, 2, 0.1F);
  for (int r = 0; r < 5; ++r) mean.add(result);
  CHECK(mean.mean() == result);
  CHECK(mean.error().cwiseAbs().maxCoeff() == 0);
}

}  // namespace
}  // namespace widelimit::testing::replicate_mean_test
