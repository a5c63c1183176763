#include <algorithm>
#include <cmath>
#include <vector>

#include "numerics/block_sums.hpp"
#include "numerics/finite_result.hpp"
#include "numerics/float_normals.hpp"
#include "numerics/normal_grid.hpp"
#include "specialization/checks.hpp"
#include "widelimit/specialization/hessian.hpp"

namespace widelimit::specialization {

namespace {

constexpr Index split_block = 4096;

struct Saddle {
  HeadActivation activation;
  Index tokens;
  double prefactor;  ///< 2 / H.
  double nu1;
  double nu2;
};

Saddle saddle(const char* where, HeadActivation activation, Index tokens, Index heads, double nu1,
              double nu2) {
  require_at_least(where, "tokens L", tokens, 2);
  require_at_least(where, "heads H", heads, 2);
  if (activation != HeadActivation::softmax && activation != HeadActivation::bayes)
    throw ArgumentError(fmt::format("{}: activation must be softmax or bayes, whose saddle is known, got {}",
                                    where, head_activation_name(activation)));
  for (const double nu : {nu1, nu2}) require_not_negative(where, "variance nu", nu);
  return {activation, tokens, 2 / static_cast<double>(heads), nu1, nu2};
}

/// The integrand of the rate for scores chi*_0 with noise z (docs/theory/head-specialization.md, section 5, at the
/// unspecialised saddle); `s` is scratch of L entries.
double rate_sample(const Saddle& at, const double* z, std::vector<double>& s) {
  const double amplitude = std::sqrt(at.nu1);
  double top = -1e300;
  for (std::size_t l = 0; l < s.size(); ++l) {
    // Scores have the variance nu_1; that of the relevant token, token 0, has the mean nu_1.
    s[l] = amplitude * (z[l] + (l == 0 ? amplitude : 0));
    top = std::max(top, s[l]);
  }
  double total = 0, squares = 0;
  for (double& weight : s) total += weight = std::exp(weight - top);
  for (double& weight : s) {
    weight /= total;
    squares += weight * weight;
  }
  const double s0 = s[0];
  if (at.activation == HeadActivation::bayes)
    return at.prefactor * at.nu2 * s0 * ((1 - s0) * (1 - s0) + squares - s0 * s0);
  const double mean = 1 - squares + at.nu2 * s0 * (1 - s0);
  double sum = 0;
  for (std::size_t l = 0; l < s.size(); ++l) {
    const double delta = l == 0 ? 1 : 0;
    const double own = 1 - 2 * s[l] + squares + at.nu2 * (delta - s0) * (delta - s0);
    sum += (s[l] - delta) * s[l] * (own - mean);
  }
  return -at.prefactor * sum;
}

double finite_rate(double rate) {
  return numerics::finite_result("split_rate", "the rate", rate, "take smaller variances nu1 and nu2");
}

}  // namespace

SplitRate split_rate_by_quadrature(HeadActivation activation, Index tokens, Index heads, double nu1,
                                   double nu2, Index points, double span, const RunControl& run) {
  const Saddle at = saddle("split_rate", activation, tokens, heads, nu1, nu2);
  const numerics::NormalGrid grid(points, span, tokens);
  grid.require_affordable("split_rate", 1, "split_rate_by_sampling");
  const double rate = grid.mean(
      [&](const double* z) {
        thread_local std::vector<double> s;
        s.resize(static_cast<std::size_t>(tokens));
        return rate_sample(at, z, s);
      },
      run);
  return {finite_rate(rate), 0};
}

SplitRate split_rate_by_sampling(HeadActivation activation, Index tokens, Index heads, double nu1, double nu2,
                                 Index count, std::uint64_t seed, const RunControl& run) {
  const Saddle at = saddle("split_rate", activation, tokens, heads, nu1, nu2);
  require_at_least("split_rate", "count", count, 2);
  const numerics::MonteCarloSums sums =
      numerics::sum_blocks(count, split_block, run, [&](Index block, Index size) {
        // A whole block is drawn in any case, so that a sample does not depend on their number.
        std::vector<float> normals(static_cast<std::size_t>(split_block * tokens));
        numerics::fill_normals(normals, seed, static_cast<std::uint64_t>(block));
        std::vector<double> z(static_cast<std::size_t>(tokens)), s(z.size());
        numerics::MonteCarloSums part;
        for (Index i = 0; i < size; ++i) {
          std::copy_n(normals.begin() + i * tokens, tokens, z.begin());
          part.add(rate_sample(at, z.data(), s));
        }
        return part;
      });
  return {finite_rate(sums.mean()), sums.standard_error()};
}

}  // namespace widelimit::specialization
