#include "widelimit/propagation/exponents.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numerics/finite_result.hpp"
#include "propagation/arguments.hpp"
#include "propagation/collapsed.hpp"
#include "propagation/skips.hpp"
#include "propagation/square.hpp"
#include "propagation/token_averages.hpp"

namespace widelimit::propagation {

namespace {

/// ln((1 - 1/n) e^a + e^b / n)
// Written so that neither exponential can overflow, and so that b = a gives a exactly.
double log_mix(double a, double b, double tokens) {
  const double share = 1 / tokens;
  if (a == -std::numeric_limits<double>::infinity()) return b + std::log(share);
  return a >= b ? a + std::log1p(share * std::expm1(b - a))
                : b + std::log(share + (1 - share) * std::exp(a - b));
}

/// Both may be -infinity, for products of which there are none.
/// ln(e^a + e^b)
double log_sum(double a, double b) {
  const double larger = std::max(a, b);
  return larger == -std::numeric_limits<double>::infinity() ? larger
                                                            : larger + std::log1p(std::exp(-std::abs(a - b)));
}

/// ln of the sum over products of one factor each, a0 or b_t, with k of the b: coefficients of prod_t (a0 + b_t x).
std::vector<double> log_products(double log_a0, const std::vector<double>& log_b) {
  std::vector<double> products{0};
  for (const double b : log_b) {
    products.push_back(-std::numeric_limits<double>::infinity());
    // From the highest power down, because each reads the one below it of the step before.
    for (std::size_t k = products.size() - 1; k > 0; --k)
      products[k] = log_sum(products[k] + log_a0, products[k - 1] + b);
    products[0] += log_a0;
  }
  return products;
}

double log_binomial(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

/// Growth a block, as ln, of tr(Q G) from G = I over L = logs.size() - 1 blocks G -> m (a0 G + b M G M^T), or
/// with M^T for M: tr(Q G_L) = m^L sum_k binom(L, k) a0^{L-k} b^k |Q M^k|^2, from the logs of |Q M^k|^2.
double causal_growth(const CollapsedPoint& point, const Parameters& parameters,
                     const std::vector<double>& logs) {
  const double log_a0 = std::log(point.a0), log_b = std::log(square(parameters.alpha_A) / point.q_star);
  const auto length = static_cast<double>(logs.size() - 1);
  std::vector<double> terms;
  for (std::size_t k = 0; k < logs.size(); ++k) {
    const auto count = static_cast<double>(k);
    // 0 * log 0 is 0 here.
    terms.push_back(log_binomial(length, count) + (count < length ? (length - count) * log_a0 : 0) +
                    (k > 0 ? count * log_b : 0) + logs[k]);
  }
  const double largest = *std::max_element(terms.begin(), terms.end());
  double sum = 0;
  for (const double term : terms) sum += std::exp(term - largest);
  return std::log(point.m) + (largest + std::log(sum) - logs.front()) / length;
}

}  // namespace

double CollapsedPoint::lambda_a_log() const { return std::log(mu_delta); }

CollapsedPoint collapsed_point_of(const char* where, const Parameters& parameters, double k_out, double f) {
  const double branch_A = square(parameters.alpha_A), branch_M = square(parameters.alpha_M);
  const double rest_A = squared_skip_A(parameters), rest_M = squared_skip_M(parameters);
  if (!has_fixed_norm(parameters))
    throw ArgumentError(
        fmt::format("{}: norms have a fixed point only where the skip connections lose something: expected "
                    "skip_A skip_M below 1, got {}",
                    where, std::sqrt(rest_A * rest_M)));
  CollapsedPoint point;
  point.k_out = k_out;
  point.f = f;
  point.a0 = rest_A;
  point.mu_q = rest_A * rest_M;
  point.q_star = (rest_M * branch_A + branch_M * k_out) / norm_lost(parameters);
  point.q_M = rest_A * point.q_star + branch_A;
  if (!(point.q_M > 0) || !(point.q_star > 0))
    throw ArgumentError(
        fmt::format("{}: the fixed point of the norm must be positive, but the MLP's output variance is {} "
                    "at sigma_w = {} with alpha_A = {}, alpha_M = {}",
                    where, k_out, parameters.sigma_w, parameters.alpha_A, parameters.alpha_M));
  point.m = rest_M + branch_M * f / point.q_M;
  point.a1 = point.q_M / point.q_star;
  point.r = branch_A / (rest_A * point.q_star);
  point.mu_delta = point.a0 * point.m;
  return point;
}

CollapsedPoint collapsed_point(const Parameters& parameters) {
  constexpr const char* where = "collapsed_point";
  require_parameters(where, parameters);
  const MlpStatistics mlp = mlp_statistics(parameters);
  const CollapsedPoint point = collapsed_point_of(where, parameters, mlp.k_out, mlp.f);
  // The largest of all its numbers but the norms.
  numerics::finite_result(where, "the growth of gaps mu_delta", point.mu_delta, lower_gains(parameters));
  numerics::finite_result(where, "the squared norm q_M", point.q_M, lower_gains(parameters));
  return point;
}

double gradient_exponent(const CollapsedPoint& point, double tokens, double depth) {
  require_at_least("gradient_exponent", "tokens", tokens, 1);
  require_positive("gradient_exponent", "depth", depth);
  return log_mix(depth * std::log(point.mu_delta), depth * infinite_gradient_exponent(point), tokens) / depth;
}

double equal_tokens_norm(const Parameters& parameters) {
  return has_fixed_norm(parameters) ? collapsed_point(parameters).q_star : 1;
}

double infinite_gradient_exponent(const CollapsedPoint& point) { return std::log(point.m * point.a1); }

double log_jacobian_norm(const CollapsedPoint& point, double tokens, double width, double depth) {
  require_positive("log_jacobian_norm", "width", width);
  return std::log(width * tokens) + depth * gradient_exponent(point, tokens, depth);
}

CollapsedPoint as_published(CollapsedPoint point, const Parameters& parameters) {
  point.m = squared_skip_M(parameters) + square(parameters.alpha_M) * point.f / point.q_star;
  point.a1 = squared_skip_A(parameters) + square(parameters.alpha_A) / point.q_star;
  point.mu_delta = point.a0 * point.m;
  return point;
}

double published_gradient_exponent(const Parameters& parameters, double depth) {
  return gradient_exponent(as_published(collapsed_point(parameters), parameters),
                           static_cast<double>(parameters.tokens), depth);
}

JacobianMoments jacobian_moments(const Parameters& parameters, double width) {
  require_positive("jacobian_moments", "width", width);
  const CollapsedPoint point = collapsed_point(parameters);
  const double branch_A = square(parameters.alpha_A), branch_M = square(parameters.alpha_M);
  const auto n = static_cast<double>(parameters.tokens);
  return {point.mu_q, point.a0 * branch_M * point.f / (width * point.q_M),
          branch_A * point.m / (width * point.q_star * n * n)};
}

Eigen::Matrix2d collapsed_jacobian(const Parameters& parameters) {
  const CollapsedPoint point = collapsed_point(parameters);
  const auto n = static_cast<double>(parameters.tokens);
  const double s = -squared_skip_M(parameters) * square(parameters.alpha_A) * (n - 1) / (n * point.q_star);
  return Eigen::Matrix2d{{point.mu_q + s, -s}, {point.mu_q + s - point.mu_delta, point.mu_delta - s}};
}

double one_block_exponent(const BlockMap& map, double q0, double cosine_gap) {
  require_positive("one_block_exponent", "cosine_gap", cosine_gap);
  return std::log(map.block(TokenState{q0, q0 * cosine_gap}).cosine_gap() / cosine_gap);
}

double one_block_exponent_limit(const Parameters& parameters, double q0, AttentionMask mask) {
  require_parameters("one_block_exponent_limit", parameters);
  require_positive("one_block_exponent_limit", "q0", q0);
  const MlpStatistics mlp = mlp_statistics(parameters);
  return one_block_limit_of(parameters, mlp.k_out, mlp.f, q0, mask);
}

double one_block_limit_of(const Parameters& parameters, double k_out, double f, double q0,
                          AttentionMask mask) {
  const double branch_A = square(parameters.alpha_A), branch_M = square(parameters.alpha_M);
  const double rest_A = squared_skip_A(parameters), rest_M = squared_skip_M(parameters);
  const double q_M = rest_A * q0 + branch_A;
  double attention = rest_A;
  if (mask == AttentionMask::causal) attention += branch_A * causal_gap_share(parameters.tokens) / q0;
  const double gap = attention * (rest_M + branch_M * f / q_M) * q0;
  return std::log(gap / (rest_M * q_M + branch_M * k_out));
}

double causal_gap_share(Index tokens) {
  require_at_least("causal_gap_share", "tokens", tokens, 2);
  double harmonic = 0;
  // Small terms come first, which loses the fewest digits.
  for (Index i = tokens; i >= 1; --i) harmonic += 1 / static_cast<double>(i);
  const auto n = static_cast<double>(tokens);
  return harmonic / n - 2 * (n - harmonic) / (n * (n - 1));
}

double causal_angle_exponent(const Parameters& parameters) {
  const CollapsedPoint point = collapsed_point(parameters);
  // This is the square of the eigenvalue 1/2 of M (docs/theory/signal-propagation.md, section 8).
  return point.m * (point.a0 + square(parameters.alpha_A) / (4 * point.q_star)) - 1;
}

double causal_gradient_exponent(const Parameters& parameters, Index depth) {
  require_at_least("causal_gradient_exponent", "depth", depth, 1);
  const CollapsedPoint point = collapsed_point(parameters);
  return causal_gradient_exponent_of(point, parameters, depth);
}

double causal_gradient_exponent_of(const CollapsedPoint& point, const Parameters& parameters, Index depth) {
  return causal_growth(point, parameters, average_powers(parameters.tokens, depth).all);
}

EqualTokenGrowth equal_token_growth(const Parameters& parameters, double q0, Index depth,
                                    AttentionMask mask) {
  require_parameters("equal_token_growth", parameters);
  require_positive("equal_token_growth", "q0", q0);
  require_at_least("equal_token_growth", "depth", depth, 1);
  const MlpStatistics mlp = mlp_statistics(parameters);
  return equal_token_growth_of(parameters, mlp.k_out, mlp.f, q0, depth, mask);
}

EqualTokenGrowth equal_token_growth_of(const Parameters& parameters, double k_out, double f, double q0,
                                       Index depth, AttentionMask mask) {
  const double branch_A = square(parameters.alpha_A), branch_M = square(parameters.alpha_M);
  const double rest_A = squared_skip_A(parameters), rest_M = squared_skip_M(parameters);
  const auto blocks = static_cast<double>(depth);
  double log_q = std::log(q0), mlps = 0, means = 0;  // ln of products over blocks
  std::vector<double> log_b;
  // Section 4 of docs/theory/signal-propagation.md: m_t, q_{M,t} / q_t and the b_t of the causal product. The norm is
  // taken out of every block, because it may grow beyond any number: what branches add is over the norm before them.
  for (Index t = 0; t < depth; ++t) {
    const double grown_A = rest_A + branch_A * std::exp(-log_q);
    log_b.push_back(std::log(branch_A) - log_q);
    log_q += std::log(grown_A);
    const double inverse_q_M = std::exp(-log_q);
    means += std::log(grown_A);
    mlps += std::log(rest_M + branch_M * f * inverse_q_M);
    log_q += std::log(rest_M + branch_M * k_out * inverse_q_M);
  }
  const double norm = log_q - std::log(q0), contrasts = blocks * std::log(rest_A);
  // Angles are contrasts over the norm, gradients the mixture of contrasts and mean.
  if (mask == AttentionMask::full)
    return {norm / blocks, (mlps + contrasts - norm) / blocks,
            (mlps + log_mix(contrasts, means, static_cast<double>(parameters.tokens))) / blocks};
  const std::vector<double> products = log_products(std::log(rest_A), log_b);
  const AveragePowers& powers = average_powers(parameters.tokens, depth);
  const auto summed = [&](const std::vector<double>& logs) {
    double sum = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < products.size(); ++k) sum = log_sum(sum, products[k] + logs[k]);
    return sum - logs.front();
  };
  return {norm / blocks, (mlps + summed(powers.differences) - norm) / blocks,
          (mlps + summed(powers.all)) / blocks};
}

double causal_angle_exponent(const Parameters& parameters, Index depth) {
  require_at_least("causal_angle_exponent", "depth", depth, 1);
  return causal_angle_exponent_of(collapsed_point(parameters), parameters, depth);
}

double causal_angle_exponent_of(const CollapsedPoint& point, const Parameters& parameters, Index depth) {
  return causal_growth(point, parameters, average_powers(parameters.tokens, depth).differences);
}

double critical_curvature(const Parameters& parameters) {
  const BlockMap map(parameters);
  const CollapsedPoint point = collapsed_point(parameters);
  const auto n = static_cast<double>(parameters.tokens);
  const double branch_A = square(parameters.alpha_A), branch_M = square(parameters.alpha_M);
  const double rest_A = squared_skip_A(parameters), rest_M = squared_skip_M(parameters);
  const double share = (n - 1) / n;
  // This part of tau comes from the norm, which follows the gap slowly.
  const double slow_norm = rest_M * branch_A * share / (point.q_star * (1 - point.mu_q));
  const double tau = branch_A * share / point.q_star + rest_A * slow_norm;
  return point.q_star * branch_M * rest_A / square(point.q_M) *
         (rest_A * map.mlp_map().curvature() / 2 - point.f * tau);
}

}  // namespace widelimit::propagation
