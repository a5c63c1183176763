#include "gp/inference/known_noise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <limits>
#include <optional>

#include "widelimit/error.hpp"
#include "widelimit/gp/known_noise.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/gp/regression.hpp"

namespace widelimit::gp {

Vector<double> row_factors(const RowNumbers& numbers) {
  if (numbers.noise_variances.size() > 0)
    return (numbers.noise_variances.mean() / numbers.noise_variances.array()).sqrt();
  return numbers.weights.cwiseSqrt();
}

void require_row_numbers(const RowNumbers& numbers, Index rows, bool classes, const char* where) {
  const auto require = [&](const Vector<double>& given, const char* name) {
    if (given.size() == 0) return;
    if (given.size() != rows)
      throw ArgumentError(fmt::format("{}: expected {} for each of {} training inputs, got {}", where, name,
                                      rows, given.size()));
    if (!given.allFinite() || !(given.array() > 0).all())
      throw ArgumentError(fmt::format("{}: {} must be positive and finite, got {:.6g}", where, name,
                                      given.allFinite() ? given.minCoeff() : NAN));
  };
  require(numbers.noise_variances, "noise variances");
  require(numbers.weights, "weights");
  if (numbers.noise_variances.size() == 0) return;
  if (classes) throw ArgumentError(fmt::format("{}: noise variances are for numbers, not classes", where));
  if (numbers.weights.size() > 0)
    throw ArgumentError(fmt::format("{}: expected noise variances or weights, got both", where));
}

LeaveOneOut single_observations(LeaveOneOut others, const Vector<double>& factors, double lambda) {
  const Vector<double> inverse = factors.cwiseInverse(), shares = inverse.cwiseAbs2();
  others.residuals = inverse.asDiagonal() * others.residuals;
  // The noise of a weighted row is lambda over its weight.
  others.variances = shares.cwiseProduct(others.variances).array() + lambda * (1 - shares.array());
  return others;
}

double known_noise_amplitude(const Matrix<double>& gram, const Matrix<double>& targets, double noise,
                             const std::vector<double>& grid, int threads) {
  const auto require = [](bool holds, const char* what) {
    if (!holds)
      throw ArgumentError(fmt::format("known_noise_amplitude: {} must be positive and finite", what));
  };
  const auto is_positive = [](double value) { return value > 0 && std::isfinite(value); };
  require(is_positive(noise), "the noise variance");
  require(!grid.empty() && std::ranges::all_of(grid, is_positive),
          "the shares of the grid, of which there is one at least,");
  std::optional<NotPositiveDefinite> last;
  const double diagonal = gram.diagonal().mean();
  const auto unlikeliness = [&](double log_amplitude) {
    const double amplitude = std::exp(log_amplitude);
    try {
      return -Regression::fit(gram, targets, AbsoluteNoise(noise / amplitude), threads)
                  .with_amplitude(amplitude)
                  .log_marginal_likelihood();
    } catch (const NotPositiveDefinite& error) {
      last = error;
      return std::numeric_limits<double>::max();
    }
  };
  std::vector<double> logarithms;
  for (const double value : grid) logarithms.push_back(std::log(noise / (value * diagonal)));
  std::ranges::sort(logarithms);
  std::vector<double> values;
  for (const double logarithm : logarithms) values.push_back(unlikeliness(logarithm));
  const auto best = static_cast<std::size_t>(std::ranges::min_element(values) - values.begin());
  if (values[best] == std::numeric_limits<double>::max()) throw *last;
  constexpr double beyond = 1;  // Of a single amplitude of the grid, and past its ends.
  const double low = best > 0 ? logarithms[best - 1] : logarithms[best] - beyond,
               high = best + 1 < values.size() ? logarithms[best + 1] : logarithms[best] + beyond;
  constexpr int bits = 12;
  const auto found = boost::math::tools::brent_find_minima(unlikeliness, low, high, bits);
  return std::exp(found.second < values[best] ? found.first : logarithms[best]);
}

}  // namespace widelimit::gp
