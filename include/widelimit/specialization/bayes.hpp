#pragma once

#include <cstdint>

#include "widelimit/specialization/loss.hpp"
#include "widelimit/specialization/prior.hpp"

namespace widelimit::specialization {

/// Posterior probability that each token carries the signal, from the projections chi_star (L x F) of the
/// tokens on the spikes. The Bayes-optimal prediction is sum_l p_l X_l. Without `spike_gram` it uses the limit
/// norm, with it (p, F x F) the exact norm of finite D. ArgumentError for shapes that do not match, and for a p that is
/// not symmetric (1e-12) and positive semidefinite.
[[nodiscard]] Vector<double> bayes_posterior(const Prior& prior, const Matrix<double>& chi_star);
[[nodiscard]] Vector<double> bayes_posterior(const Prior& prior, const Matrix<double>& chi_star,
                                             const Matrix<double>& spike_gram);

/// A mean over draws, with its standard error.
struct BayesRisk {
  double risk = 0;
  double standard_error = 0;
};

/// Monte-Carlo estimate of the smallest loss, E[1 - sum_l p_l^2] at D -> infinity, from n draws.
/// The result depends on the seed, not on the number of threads; progress counts blocks of 4096 draws.
/// ArgumentError for L < 1 or n < 2.
[[nodiscard]] BayesRisk bayes_risk(const Prior& prior, Index tokens, Index count, std::uint64_t seed,
                                   const RunControl& run = {});

/// Heads with which the bayes activation is Bayes optimal for a discrete prior: r = 0, m_h = theta^h,
/// b_h = ln P(theta^h) - |theta^h|^2 / 2. Heads beyond the number of points repeat the points in order.
/// ArgumentError for Gaussian priors, points of probability 0 and fewer heads than points.
[[nodiscard]] HeadParameters bayes_optimal_heads(const Prior& prior, Index heads);

}  // namespace widelimit::specialization
