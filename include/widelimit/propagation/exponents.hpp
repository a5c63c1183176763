#pragma once

#include "widelimit/propagation/block_map.hpp"

namespace widelimit::propagation {

/// The collapsed fixed point, where all tokens are equal, and the numbers that determine its stability. Gaps between
/// tokens grow by mu_delta in each block, deviations of the norm by mu_q <= mu_delta.
struct CollapsedPoint {
  double q_star = 0;    ///< Squared norm before the attention branch.
  double q_M = 0;       ///< Squared norm before the MLP branch.
  double k_out = 0;     ///< Output variance of the MLP.
  double f = 0;         ///< Slope of the MLP's covariance map.
  double m = 0;         ///< Growth of gaps in the MLP block, ta_M^2 + alpha_M^2 f / q_M.
  double a0 = 0;        ///< Growth of token contrasts in the attention block, ta_A^2.
  double a1 = 0;        ///< Growth of the token mean's gradient in the attention block, q_M / q_star.
  double r = 0;         ///< a1 / a0 - 1; infinite if alpha_A = 1.
  double mu_delta = 0;  ///< a0 m.
  double mu_q = 0;      ///< ta_A^2 ta_M^2.

  /// The angle exponent (eq. 18, corrected): gaps fall as (1 + lambda_a)^L if negative.
  [[nodiscard]] double lambda_a() const { return mu_delta - 1; }
  /// ln(1 + lambda_a), which a log ratio of measured gaps estimates.
  [[nodiscard]] double lambda_a_log() const;
};

/// Closed form. Errors: as require_parameters, and ArgumentError if the fixed point is 0 (the MLP gives 0 and
/// alpha_A = 0), where tokens can't be normalised, or there is none (skip_A skip_M >= 1).
[[nodiscard]] CollapsedPoint collapsed_point(const Parameters& parameters);

/// The squared norm from which exponents of equal tokens are taken: the fixed point, or 1 where norms have none.
[[nodiscard]] double equal_tokens_norm(const Parameters& parameters);

/// The gradient exponent (eq. 19, corrected) after `depth` blocks from equal tokens: log of the mean of
/// |dX^L/dX^0|_F^2 / (d n), over depth. Expects tokens >= 1 and depth > 0, which need not be integers.
[[nodiscard]] double gradient_exponent(const CollapsedPoint& point, double tokens, double depth);

/// Its limit at infinite depth, ln(m a1).
[[nodiscard]] double infinite_gradient_exponent(const CollapsedPoint& point);

/// ln E|dX^L/dX^0|_F^2 at finite depth.
[[nodiscard]] double log_jacobian_norm(const CollapsedPoint& point, double tokens, double width,
                                       double depth);

/// The paper's printed eq. 19, which puts q_star for q_M in the MLP; for comparison only.
[[nodiscard]] double published_gradient_exponent(const Parameters& parameters, double depth);

/// Second moment of a block's Jacobian at the collapsed point: x 1 + y A + z B (section 4 of the paper).
struct JacobianMoments {
  double x = 0, y = 0, z = 0;
};
[[nodiscard]] JacobianMoments jacobian_moments(const Parameters& parameters, double width);

/// d(q', p') / d(q, p) of a block at the collapsed point, in closed form.
[[nodiscard]] Eigen::Matrix2d collapsed_jacobian(const Parameters& parameters);

/// The measurable angle exponent: log growth of 1 - cosine in one block from norm q0 and a given gap.
/// lambda_a_log only if q0 = q_star and the gap is small. ArgumentError unless cosine_gap > 0, and as BlockMap.
[[nodiscard]] double one_block_exponent(const BlockMap& map, double q0, double cosine_gap);

/// Its limit for a vanishing gap; with a causal mask the mean over pairs of tokens.
[[nodiscard]] double one_block_exponent_limit(const Parameters& parameters, double q0,
                                              AttentionMask mask = AttentionMask::full);

/// (H_n / n) - 2 (n - H_n) / (n (n - 1)), H_n the harmonic number: the share of a gap that causal attention leaves.
[[nodiscard]] double causal_gap_share(Index tokens);

/// The causal angle exponent of infinite depth, m (ta_A^2 + alpha_A^2 / (4 q_star)) - 1: the second
/// eigenvalue of the averages over earlier tokens is 1/2. The averages are far from normal, so that networks
/// of usual depth are far from it.
[[nodiscard]] double causal_angle_exponent(const Parameters& parameters);

/// Log growth in each block of the mean squared distance of tokens over `depth` blocks from nearly equal tokens
/// at the fixed point: covariances of their deviations change as G -> m (ta_A^2 G + alpha_A^2 / q_star M G M^T),
/// where M are the averages over earlier tokens, from G = I. Cost O(n log(n) depth).
/// ArgumentError for more than 10^7 tokens.
[[nodiscard]] double causal_angle_exponent(const Parameters& parameters, Index depth);

/// The causal gradient exponent after `depth` blocks from equal tokens. Cost and errors as above.
[[nodiscard]] double causal_gradient_exponent(const Parameters& parameters, Index depth);

/// Log growth in each block over `depth` blocks from nearly equal tokens of squared norm q0: the exponents if norms
/// have no fixed point. At the fixed point q_star they are those above.
struct EqualTokenGrowth {
  double norm = 0;      ///< Growth of squared norms.
  double angle = 0;     ///< Growth of 1 - cosine, relative to the norm.
  double gradient = 0;  ///< ln of the mean of |dX^L/dX^0|_F^2 / (d n), over depth.
};
/// Cost: O(depth), under a causal mask O(n log(n) depth + depth^2). Errors: as require_parameters; ArgumentError
/// unless q0 > 0 and depth >= 1, and for more than 10^7 tokens under a causal mask.
[[nodiscard]] EqualTokenGrowth equal_token_growth(const Parameters& parameters, double q0, Index depth,
                                                  AttentionMask mask = AttentionMask::full);

/// kappa of e' = e - kappa e^2 on the critical line lambda_a = 0: angles close as 1 / (kappa t) there.
/// NumericalError unless phi' is smooth.
[[nodiscard]] double critical_curvature(const Parameters& parameters);

/// The gradient exponent from tokens of any angle, by forward norms and angles and a backward pass of the
/// gradient's token Gram matrix; leading order in 1/d, approximate in 1/n.
[[nodiscard]] double gradient_exponent_from(const BlockMap& map, const TokenState& start, Index depth);

enum class Stability { stable, marginal, unstable };

/// A state that a block leaves unchanged.
struct FixedPoint {
  TokenState state;
  double largest_eigenvalue = 0;  ///< Largest magnitude of an eigenvalue of the block's Jacobian.
  Stability stability = Stability::stable;
};

/// The collapsed point with its stability.
[[nodiscard]] FixedPoint collapsed_fixed_point(const BlockMap& map);

/// The fixed point with all angles equal and open, which exists in the chaotic phase. Iterates the block from
/// uncorrelated tokens until both norm and gap change by less than 1e-14 relative.
/// Errors  NumericalError if lambda_a <= 0 (there is none) or the iteration does not settle in 10^6 blocks.
[[nodiscard]] FixedPoint simplex_fixed_point(const BlockMap& map);

/// All of them: the collapsed one first. None if norms have no fixed point.
[[nodiscard]] std::vector<FixedPoint> fixed_points(const BlockMap& map);

}  // namespace widelimit::propagation
