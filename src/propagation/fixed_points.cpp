#include <Eigen/Eigenvalues>
#include <cmath>

#include "propagation/arguments.hpp"
#include "propagation/skips.hpp"
#include "widelimit/propagation/exponents.hpp"

namespace widelimit::propagation {

namespace {

constexpr double fixed_point_tolerance = 1e-14;
constexpr Index most_steps = 1'000'000;
constexpr double marginal_width = 1e-9;

Stability stability_of(double eigenvalue) {
  if (std::abs(eigenvalue - 1) <= marginal_width) return Stability::marginal;
  return eigenvalue < 1 ? Stability::stable : Stability::unstable;
}

double largest_eigenvalue(const StateJacobian& jacobian) {
  return jacobian.eigenvalues().cwiseAbs().maxCoeff();
}

}  // namespace

FixedPoint collapsed_fixed_point(const BlockMap& map) {
  const CollapsedPoint point = collapsed_point(map.parameters());
  // Norms and gaps of equal tokens do not mix to first order, so that the larger of both factors decides.
  const double eigenvalue = std::max(point.mu_delta, point.mu_q);
  return {{point.q_star, 0}, eigenvalue, stability_of(eigenvalue)};
}

FixedPoint simplex_fixed_point(const BlockMap& map) {
  const double lambda_a = collapsed_point(map.parameters()).lambda_a();
  if (!(lambda_a > 0))
    throw NumericalError(
        fmt::format("simplex_fixed_point: exists only where lambda_a > 0, but lambda_a = {}: all tokens "
                    "become equal; raise sigma_w = {} or lower alpha_A = {}",
                    lambda_a, map.parameters().sigma_w, map.parameters().alpha_A));
  // Uncorrelated tokens lie on the other side of the open fixed point, from where the map settles to it.
  TokenState state{1, 1};
  for (Index t = 0; t < most_steps; ++t) {
    const TokenState next = map.block(state);
    const bool done = std::abs(next.q - state.q) <= fixed_point_tolerance * next.q &&
                      std::abs(next.gap - state.gap) <= fixed_point_tolerance * next.gap;
    state = next;
    if (!done) continue;
    const double eigenvalue = largest_eigenvalue(map.block_jacobian(state));
    return {state, eigenvalue, stability_of(eigenvalue)};
  }
  throw NumericalError(fmt::format(
      "simplex_fixed_point: {} blocks do not settle, lambda_a = {} is too close to 0", most_steps, lambda_a));
}

std::vector<FixedPoint> fixed_points(const BlockMap& map) {
  if (!has_fixed_norm(map.parameters())) return {};
  std::vector<FixedPoint> points{collapsed_fixed_point(map)};
  if (points.front().stability == Stability::unstable) points.push_back(simplex_fixed_point(map));
  return points;
}

double gradient_exponent_from(const BlockMap& map, const TokenState& start, Index depth) {
  require_at_least("gradient_exponent_from", "depth", depth, 1);
  const Parameters& parameters = map.parameters();
  const auto n = static_cast<double>(parameters.tokens);
  const double s = parameters.sigma_A * parameters.sigma_A;
  const double branch_A = parameters.alpha_A * parameters.alpha_A;
  const double branch_M = parameters.alpha_M * parameters.alpha_M;
  const double rest_A = squared_skip_A(parameters), rest_M = squared_skip_M(parameters);
  const std::vector<TokenState> states = map.trajectory(start, depth - 1);
  // The recursion runs back from the output, with the start g = 1, h = 0, and is scaled to g = 1 in every block.
  double same = 1, other = 0, log_scale = 0;  // token Gram matrix of the gradient: diagonal, off-diagonal
  for (auto state = states.rbegin(); state != states.rend(); ++state) {
    // The MLP comes last in a block, and therefore first here.
    const TokenState middle = map.attention(*state);
    same *= rest_M + branch_M * map.mlp_map().statistics().f / middle.q;
    other *= rest_M + branch_M * map.mlp_map().slope(middle.cosine_gap()) / middle.q;
    const double e = state->cosine_gap(), c = 1 - e, share = branch_A / state->q;
    // exp(-s e) and exp(-s c e) are epsilon_s and epsilon_d of docs/theory/signal-propagation.md, section 6, the sums
    // are Z_s and Z_d, and `keys` is K.
    const double weight_same = std::exp(-s * e), weight_other = std::exp(-s * c * e);
    const double sum_same = n + n * (n - 1) * weight_same, sum_other = n + n * (n - 1) * weight_other;
    const double keys = s * e * (n * same / sum_same + n * (n - 1) * c * other / sum_other);
    const double next_same = (rest_A + share * s * e * e * n / sum_same) * same +
                             share * (n * same / sum_same + n * (n - 1) * other / sum_other + keys);
    const double next_other = (rest_A + share * s * e * e * n / sum_other) * other +
                              share * (n * weight_same * same / sum_same +
                                       n * (n - 1) * weight_other * other / sum_other - keys / (n - 1));
    log_scale += std::log(next_same);
    same = 1;
    other = next_other / next_same;
  }
  return log_scale / static_cast<double>(depth);
}

}  // namespace widelimit::propagation
