#include "widelimit/finite/monte_carlo.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "finite/layer_zoo.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::finite;
using namespace widelimit::layers;

xt::xarray<double> vectors(Index count, unsigned seed = 3) { return random_inputs<double>(seed, {count, 3}); }

Network small_network() { return Network("small", {dense({1.5, 0.1}), relu(), dense()}); }

MonteCarloOptions sampling_options(Index first, Index draws, int threads) {
  MonteCarloOptions options;
  options.widths = {.hidden = 16, .outputs = 2, .layers = {}};
  options.seed = 9;
  options.first_draw = first;
  options.draws = draws;
  options.threads = threads;
  return options;
}

TEST_CASE("a Monte-Carlo run goes on where it stopped, bit for bit, with any number of threads") {
  const auto x = vectors(3);
  const auto whole = monte_carlo_kernel<double>(small_network(), x, sampling_options(0, 11, 1));
  auto parts = monte_carlo_kernel<double>(small_network(), x, sampling_options(0, 4, 3));
  parts = monte_carlo_kernel<double>(small_network(), x, sampling_options(4, 7, 2), parts);
  CHECK(whole.nngp.draws == 11);
  CHECK(parts.nngp.draws == 11);
  CHECK(whole.nngp.mean == parts.nngp.mean);
  CHECK(whole.nngp.squares == parts.nngp.squares);
  CHECK(whole.ntk.mean == parts.ntk.mean);
  CHECK(whole.ntk.squares == parts.ntk.squares);
}

TEST_CASE("Monte-Carlo means and errors are those of the draws") {
  const auto x = vectors(2), y = vectors(3, 4);
  auto options = sampling_options(2, 5, 2);
  std::vector<Matrix<double>> draws;
  std::vector<Index> numbers;
  options.on_draw = [&](Index number, const Matrix<double>& nngp, const Matrix<double>&) {
    numbers.push_back(number);
    draws.push_back(nngp);
  };
  const auto result = monte_carlo_kernel<double>(small_network(), x, y, options);
  CHECK(numbers == std::vector<Index>{2, 3, 4, 5, 6});
  Matrix<double> mean = Matrix<double>::Zero(2, 3), squares = mean;
  for (const auto& draw : draws) mean += draw / 5;
  for (const auto& draw : draws) squares += (draw - mean).cwiseAbs2();
  CHECK(relative_difference(result.nngp.mean, mean) < 1e-14);
  CHECK(relative_difference(result.nngp.standard_error(), (squares / 20).cwiseSqrt()) < 1e-13);
  CHECK(std::isnan(
      monte_carlo_kernel<double>(small_network(), x, sampling_options(0, 1, 1)).ntk.standard_error()(0, 0)));
  CHECK_THROWS_WITH_AS(static_cast<void>(monte_carlo_kernel<double>(small_network(), x, options, result)),
                       "monte_carlo_kernel: expected kernels of [2, 2] to continue from, got [2, 3]",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(monte_carlo_kernel<double>(small_network(), x, sampling_options(0, 0, 1))),
      "monte_carlo_kernel: draws must be at least 1, got 0", ArgumentError);
}

}  // namespace
}  // namespace widelimit::testing
