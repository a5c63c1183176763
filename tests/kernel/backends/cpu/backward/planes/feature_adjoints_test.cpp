// The backward pass through layers on raw inputs, against differences.
#include "kernel/backends/cpu/backward/planes/feature_adjoints.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/inputs/features.hpp"

namespace widelimit::testing::feature_adjoints_test {
namespace {

struct FeatureCase {
  Shape shape;
  std::vector<FeatureTransform> transforms;
  std::vector<std::uint8_t> counts = {};
};

void check_by_differences(const FeatureCase& with) {
  constexpr Index channels = 3;
  constexpr double step = 1e-4;
  std::mt19937 generator(5);
  std::vector<double> x = normal_numbers(channels * position_count(with.shape), generator);
  const auto transformed = [&] {
    return transformed_features<double>(x, with.shape, channels, with.transforms, with.counts).values;
  };
  const std::vector<double> weights = normal_numbers(static_cast<Index>(transformed().size()), generator);
  const auto weighted_sum = [&] {
    const std::vector<double> values = transformed();
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += weights[i] * values[i];
    return sum;
  };
  // What stands in the target already is added to.
  std::vector<double> gradient(x.size(), 7);
  add_feature_adjoint<double>(x, with.shape, channels, with.transforms, with.counts, weights,
                              gradient.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!with.counts.empty() && with.counts[i / channels] == 0) continue;
    const double value = x[i];
    x[i] = value + step;
    const double above = weighted_sum();
    x[i] = value - step;
    const double below = weighted_sum();
    x[i] = value;
    CAPTURE(i);
    CHECK(gradient[i] - 7 == doctest::Approx((above - below) / (2 * step)).epsilon(1e-6).scale(1));
  }
}

TEST_CASE("add_feature_adjoint: every transform") {
  const Window window{{2, 3}, {2, 1}, Padding::same};
  for (const PoolKind kind : {PoolKind::average, PoolKind::sum})
    check_by_differences({{5, 4}, {FeaturePool{window, kind}}});
  for (const ReadoutKind kind : {ReadoutKind::flatten, ReadoutKind::average, ReadoutKind::sum})
    check_by_differences({{2, 3}, {FeatureReadout{kind}}});
  for (const Centring centring : {Centring::none, Centring::over_axes}) {
    check_by_differences({{2, 3}, {FeatureNorm{{}, centring, 0.1}}});
    check_by_differences({{2, 3}, {FeatureNorm{{.some = {1}}, centring, 0}}});
    check_by_differences({{2, 3}, {FeatureNorm{{.all = true}, centring, 0.02}}});
  }
}

TEST_CASE("add_feature_adjoint: one transform after another, and none") {
  check_by_differences({{4, 4},
                        {FeatureNorm{{}, Centring::over_axes, 0.1},
                         FeaturePool{{{2, 2}, {2, 2}, Padding::valid}, PoolKind::average},
                         FeatureNorm{{.all = true}, Centring::none, 0}, FeatureReadout{ReadoutKind::sum}}});
  check_by_differences({{2, 2}, {}});
}

TEST_CASE("add_feature_adjoint: norms leave masked positions out") {
  for (const NormedAxes& axes : {NormedAxes{}, NormedAxes{.all = true}, NormedAxes{.some = {0}}})
    check_by_differences({{5}, {FeatureNorm{axes, Centring::over_axes, 0.1}}, {1, 0, 1, 1, 0}});
}

}  // namespace
}  // namespace widelimit::testing::feature_adjoints_test
