#include "widelimit/specialization/bayes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "numerics/block_sums.hpp"
#include "numerics/finite_result.hpp"
#include "numerics/float_normals.hpp"
#include "numerics/gram_arguments.hpp"
#include "specialization/checks.hpp"
#include "specialization/log_sum_exp.hpp"

namespace widelimit::specialization {

namespace {

// So many samples share two random streams, so that another number would change results.
constexpr Index samples_a_block = 4096;

template <typename Score>
Vector<double> posterior(const Prior& prior, const Matrix<double>& chi_star, const Score& score) {
  require_at_least("bayes_posterior", "tokens (rows of chi_star)", chi_star.rows(), 1);
  require_shape("bayes_posterior", "chi_star", chi_star, chi_star.rows(), prior.features());
  require_finite("bayes_posterior", "chi_star", chi_star);
  Vector<double> scores(chi_star.rows());
  for (Index l = 0; l < chi_star.rows(); ++l)
    scores[l] = numerics::finite_result("bayes_posterior", fmt::format("the log odds of token {}", l),
                                        score(Vector<double>(chi_star.row(l).transpose())),
                                        "its projections chi_star are too large, or so is spike_gram");
  return softmax_of(scores);
}

numerics::MonteCarloSums risk_of_block(const Prior& prior, Index tokens, std::uint64_t seed, Index block,
                                       Index size) {
  const Index features = prior.features();
  // A whole block is drawn even if the samples end within it, so that a sample does not depend on their number.
  std::vector<float> normals(static_cast<std::size_t>(samples_a_block * tokens * features));
  numerics::fill_normals(normals, seed, 2 * static_cast<std::uint64_t>(block));
  numerics::RandomStream random(seed, 2 * static_cast<std::uint64_t>(block) + 1);
  Vector<double> theta(features), chi_star(features), scores(tokens);
  const float* next = normals.data();
  numerics::MonteCarloSums sums;
  for (Index i = 0; i < size; ++i) {
    prior.sample(random, theta);
    for (Index l = 0; l < tokens; ++l, next += features) {
      chi_star = Eigen::Map<const Vector<float>>(next, features).cast<double>();
      // All tokens are alike, so that the relevant one may be token 0.
      if (l == 0) chi_star += theta;
      scores[l] = prior.token_score(chi_star);
    }
    // The Bayes risk is E[1 - sum_l p_l^2] (docs/theory/head-specialization.md, section 7).
    const double risk = 1 - softmax_of(scores).squaredNorm();
    sums.add(risk);
  }
  return sums;
}

}  // namespace

Vector<double> bayes_posterior(const Prior& prior, const Matrix<double>& chi_star) {
  return posterior(prior, chi_star, [&](const Vector<double>& token) { return prior.token_score(token); });
}

Vector<double> bayes_posterior(const Prior& prior, const Matrix<double>& chi_star,
                               const Matrix<double>& spike_gram) {
  constexpr const char* where = "bayes_posterior";
  require_shape("prior", "spike_gram", spike_gram, prior.features(), prior.features());
  require_finite(where, "spike_gram", spike_gram);
  numerics::require_semidefinite(where, "spike_gram", spike_gram);
  return posterior(prior, chi_star,
                   [&](const Vector<double>& token) { return prior.token_score(token, spike_gram); });
}

BayesRisk bayes_risk(const Prior& prior, Index tokens, Index count, std::uint64_t seed,
                     const RunControl& run) {
  require_at_least("bayes_risk", "tokens L", tokens, 1);
  require_at_least("bayes_risk", "count n", count, 2);
  const numerics::MonteCarloSums total = numerics::sum_blocks(
      count, samples_a_block, run,
      [&](Index block, Index size) { return risk_of_block(prior, tokens, seed, block, size); });
  numerics::finite_result("bayes_risk", "the mean over sequences", total.mean(),
                          "take a prior of smaller variances nu");
  return {total.mean(), total.standard_error()};
}

HeadParameters bayes_optimal_heads(const Prior& prior, Index heads) {
  if (prior.kind() != Prior::Kind::discrete)
    throw ArgumentError(
        "bayes_optimal_heads: the prior must be discrete; no finite number of heads is optimal otherwise");
  const Index points = prior.points().rows();
  require_at_least("bayes_optimal_heads", "heads H (one a point of the prior)", heads, points);
  HeadParameters parameters =
      with_initial_offsets(HeadActivation::bayes, Matrix<double>::Zero(heads, prior.features()),
                           Matrix<double>::Zero(heads, heads));
  for (Index h = 0; h < heads; ++h) {
    const Index point = h % points;
    const double probability = prior.probabilities()[point];
    if (!(probability > 0))
      throw ArgumentError(
          fmt::format("bayes_optimal_heads: point {} has probability 0; leave it out", point));
    // Heads that share a point share its probability, and so its bias is lower by the logarithm of their number.
    const Index copies = heads / points + (point < heads % points ? 1 : 0);
    parameters.m.row(h) = prior.points().row(point);
    parameters.b[h] =
        std::log(probability / static_cast<double>(copies)) - prior.points().row(point).squaredNorm() / 2;
  }
  return parameters;
}

}  // namespace widelimit::specialization
