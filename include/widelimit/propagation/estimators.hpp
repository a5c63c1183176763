#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "widelimit/numerics/statistics.hpp"
#include "widelimit/propagation/exponents.hpp"
#include "widelimit/propagation/finite_transformer.hpp"

/// Norms, angles and exponents measured in random transformers of finite width, with standard errors over
/// networks. Networks run in parallel; equal seeds give equal results on any number of threads.
///
/// Errors  ArgumentError for fewer than two networks, width < 1, depth < 1, threads < 0, cosines and dot products
///         outside their ranges, and as FiniteTransformer; Cancelled once a stop was asked for.
/// Cost    of a network and block 3 n d^2 + 2 n^2 d multiply-adds and (mlp_depth + 1) n d^2; gradients triple it;
///         n tokens, d = width.
namespace widelimit::propagation {

/// Which networks are drawn, and on how many threads.
struct SampleOptions {
  Index width = 64;
  Index networks = 32;  ///< >= 2
  AttentionMask mask = AttentionMask::full;
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: as many as there are processors.
  /// Called now and then with the networks done and the total, from one thread at a time.
  std::function<void(Index, Index)> progress;
  std::stop_token stop;  ///< Cancelled is thrown once a stop is requested.
};

/// Random tokens [n, d].
class TokenDistribution {
 public:
  /// Gaussian tokens of mean squared norm q d and mean dot products q cosine d. Expects q > 0, cosine in
  /// [0, 1].
  [[nodiscard]] static TokenDistribution gaussian(double q, double cosine);
  /// All tokens equal, squared norm exactly q d: where gradient exponents are defined.
  [[nodiscard]] static TokenDistribution equal(double q);
  /// Two halves with dot products p_inside d within and p_across d between them. Expects 0 <= p_across <=
  /// p_inside <= q.
  [[nodiscard]] static TokenDistribution two_groups(double q, double p_inside, double p_across);

  [[nodiscard]] Matrix<double> draw(Index tokens, Index width, std::uint64_t seed,
                                    std::uint64_t network) const;

 private:
  double common_ = 0, group_ = 0, own_ = 0;  // variances
  double exact_ = 0;                         // squared norm to scale to, if positive
};

/// Mean squared norm and mean pairwise dot product of the rows over d. Expects at least two rows.
[[nodiscard]] TokenState measured_state(const Matrix<double>& tokens);

/// Mean of 1 - cosine over all pairs of rows, without cancellation where they are nearly parallel. At least two rows,
/// none of which is 0.
[[nodiscard]] double mean_cosine_gap(const Matrix<double>& tokens);

/// Means at one depth.
struct MeasuredState {
  numerics::Estimate q;       ///< Over networks, of the mean over tokens.
  numerics::Estimate cosine;  ///< Over networks, of p / q.
};

/// Means after 0, 1, .. depth blocks.
[[nodiscard]] std::vector<MeasuredState> measured_trajectory(const Parameters& parameters,
                                                             const TokenDistribution& start, Index depth,
                                                             const SampleOptions& options);

/// Single tokens' squared norms and pairs' cosines of all networks at the given depths (0 is the start).
struct TokenSamples {
  Index depth = 0;
  std::vector<double> squared_norms, cosines;
};
[[nodiscard]] std::vector<TokenSamples> token_samples(const Parameters& parameters,
                                                      const TokenDistribution& start,
                                                      const std::vector<Index>& depths,
                                                      const SampleOptions& options);

/// Mean log growth of 1 - cosine in one block; compare with one_block_exponent().
[[nodiscard]] numerics::Estimate measured_angle_exponent(const Parameters& parameters, double q0,
                                                         double cosine, const SampleOptions& options);

/// 1/depth log of the mean of |gradient of <X^L, R>|^2 / |R|^2, R standard normal; compare with
/// gradient_exponent() for equal tokens of norm q_star, with gradient_exponent_from() otherwise.
struct MeasuredGradient {
  numerics::Estimate log_of_mean;
  numerics::Estimate mean_of_log;  ///< Lower: the squared gradient is nearly log-normal.
  /// The variance of the logarithm of the squared gradient over networks, for the whole depth: it grows with depth /
  /// width. Above 1 a few networks dominate the mean; log_of_mean is too low, and its standard error does not show it.
  double variance_of_log = 0;
};
[[nodiscard]] MeasuredGradient measured_gradient_exponent(const Parameters& parameters,
                                                          const TokenDistribution& start, Index depth,
                                                          const SampleOptions& options);

/// Growth of gradients a block by modes, ln(m a0) and ln(m a1), from two equal tokens at the fixed point and
/// output gradients (r, -r) and (r, r). Full mask only. combined() gives the gradient exponent of any number
/// of tokens.
struct MeasuredModes {
  numerics::Estimate contrast, mean;
  Index depth = 0;

  [[nodiscard]] double combined(double tokens) const;
};
[[nodiscard]] MeasuredModes measured_gradient_modes(const Parameters& parameters, Index depth,
                                                    const SampleOptions& options);

/// Mean dot product inside the two halves over that across, after 0, 1, .. depth blocks; tends to 1 as the
/// network restores the symmetry of the tokens. Every network's ratio enters the mean.
[[nodiscard]] std::vector<numerics::Estimate> measured_group_ratio(const Parameters& parameters,
                                                                   const TokenDistribution& start,
                                                                   Index depth, const SampleOptions& options);

}  // namespace widelimit::propagation
