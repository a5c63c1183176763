#include "widelimit/specialization/trained_heads.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "numerics/block_sums.hpp"
#include "numerics/finite_result.hpp"
#include "specialization/checks.hpp"
#include "specialization/head_pass.hpp"
#include "specialization/sample_tiles.hpp"

namespace widelimit::specialization {

namespace {

constexpr Index trained_block = 1024;

HeadParameters keep_heads(HeadActivation activation, const HeadParameters& all,
                          const std::vector<Index>& kept) {
  HeadParameters part{all.m(kept, Eigen::all), all.r(kept, Eigen::all), all.b(kept), all.v};
  // softmaxv has a scale for each head, the others one for all.
  if (activation == HeadActivation::softmaxv) part.v = all.v(kept);
  return part;
}

/// The mean over samples, weighted, of what f(pass, out) writes to `width` numbers after the forward pass.
template <typename Scalar, typename Function>
Vector<double> mean_over_samples(HeadActivation activation, const HeadParameters& parameters,
                                 const SampleSet<Scalar>& samples, Index width, const RunControl& run,
                                 const Function& f) {
  const Index heads = parameters.m.rows(), tokens = samples.tokens();
  const SampleTiles<Scalar>& tiles = tiles_of(samples);
  // A row of m and r side by side acts on the rows chi* and xi of a sample.
  Matrix<double> rows(heads, samples.features() + samples.noises());
  rows << parameters.m, parameters.r;
  const auto sum_of = [&](Index block, Index count) -> Vector<double> {
    HeadPass pass(activation, heads, tokens);
    Matrix<double> chi(heads, tokens), inputs(rows.cols(), tokens);
    Vector<double> out(width), sum = Vector<double>::Zero(width);
    for (Index i = block * trained_block; i < block * trained_block + count; ++i) {
      // A tile has the samples last; the forward pass of one sample wants its tokens together.
      for (Index row = 0; row < inputs.rows(); ++row)
        for (Index l = 0; l < tokens; ++l) inputs(row, l) = static_cast<double>(tiles.value(i, l, row));
      chi.noalias() = rows * inputs;
      pass.forward(chi, parameters.b, parameters.v);
      f(pass, out);
      sum += samples.weight(i) * out;
    }
    return sum;
  };
  return numerics::on_threads(run.threads, [&]() -> Vector<double> {
    const auto sums = numerics::parts_of_blocks(samples.count(), trained_block, {.stop = run.stop}, sum_of);
    Matrix<double> all(std::ssize(sums), width);
    for (Index block = 0; block < all.rows(); ++block) all.row(block) = sums[static_cast<std::size_t>(block)];
    return all.colwise().sum().transpose() / samples.weight_sum();
  });
}

/// Losses after leaving out each kept head, sigma taken from the full model.
template <typename Scalar>
std::vector<double> full_model_losses(HeadActivation activation, const HeadParameters& parameters,
                                      const SampleSet<Scalar>& samples,
                                      const std::vector<std::vector<Index>>& trials, const RunControl& run) {
  const auto losses_of = [&](const HeadPass& pass, Vector<double>& out) {
    for (std::size_t trial = 0; trial < trials.size(); ++trial) {
      double& loss = out[static_cast<Index>(trial)] = 0;
      for (Index l = 0; l < samples.tokens(); ++l) {
        double a = 0;
        for (const Index h : trials[trial]) a += pass.factor(h, parameters.v) * pass.s(h, l);
        // The mean runs over the kept heads, with the weights that they have in the full model.
        const double residual = a / static_cast<double>(trials[trial].size()) - (l == 0 ? 1 : 0);
        loss += residual * residual;
      }
    }
  };
  const Vector<double> mean =
      mean_over_samples(activation, parameters, samples, static_cast<Index>(trials.size()), run, losses_of);
  return {mean.begin(), mean.end()};
}

template <typename Scalar>
std::vector<double> trial_losses(HeadActivation activation, const HeadParameters& parameters,
                                 const SampleSet<Scalar>& samples, PruneNormaliser normaliser,
                                 const std::vector<std::vector<Index>>& trials, const RunControl& run) {
  if (normaliser == PruneNormaliser::full_model)
    return full_model_losses(activation, parameters, samples, trials, run);
  std::vector<double> losses;
  losses.reserve(trials.size());
  for (const std::vector<Index>& kept : trials)
    losses.push_back(sampled_loss(activation, keep_heads(activation, parameters, kept), samples,
                                  LossDetail::loss_only, run)
                         .loss);
  return losses;
}

template <typename Exceeds>
std::optional<double> first_time(const std::vector<double>& tau, const std::vector<Matrix<double>>& m,
                                 double delta, const Exceeds& exceeds) {
  if (tau.size() != m.size())
    throw ArgumentError(
        fmt::format("specialisation_time: tau has {} entries and m {}", tau.size(), m.size()));
  if (!(delta >= 0))
    throw ArgumentError(fmt::format("specialisation_time: delta must be >= 0, got {}", delta));
  for (std::size_t i = 0; i < tau.size(); ++i)
    if (exceeds(m[i])) return tau[i];
  return std::nullopt;
}

}  // namespace

double max_split(const Matrix<double>& m) {
  double largest = 0;
  for (Index h = 0; h < m.rows(); ++h)
    for (Index k = 0; k < h; ++k) largest = std::max(largest, (m.row(h) - m.row(k)).norm());
  return largest;
}

Vector<double> feature_splits(const Matrix<double>& m) {
  // For each feature this is the norm over heads of their distances from the mean head.
  return (m.rowwise() - m.colwise().mean()).colwise().norm().transpose();
}

std::optional<double> specialisation_time(const std::vector<double>& tau,
                                          const std::vector<Matrix<double>>& m, double delta) {
  return first_time(tau, m, delta, [&](const Matrix<double>& now) { return max_split(now) > delta; });
}

std::optional<double> feature_specialisation_time(const std::vector<double>& tau,
                                                  const std::vector<Matrix<double>>& m, Index feature,
                                                  double delta) {
  return first_time(tau, m, delta, [&](const Matrix<double>& now) {
    require_index("feature_specialisation_time", "feature", feature, now.cols());
    return feature_splits(now)[feature] > delta;
  });
}

Matrix<double> attention_map(HeadActivation activation, const HeadParameters& parameters,
                             const Matrix<double>& chi_star, const Matrix<double>& xi) {
  constexpr const char* where = "attention_map";
  const Index tokens = chi_star.rows();
  require_shape(where, "chi_star", chi_star, tokens, parameters.m.cols());
  require_shape(where, "xi", xi, tokens, parameters.r.cols());
  require_shape(where, "r", parameters.r, parameters.m.rows(), parameters.r.cols());
  const Matrix<double> chi = parameters.m * chi_star.transpose() + parameters.r * xi.transpose();
  Matrix<double> map =
      head_activation(activation, chi, parameters.b, parameters.v) / static_cast<double>(chi.rows());
  numerics::finite_result(where, "the sum of the weights", map.sum(),
                          "the heads, or the projections chi_star and xi, are too large");
  return map;
}

template <typename Scalar>
AttentionMass attention_mass(HeadActivation activation, const HeadParameters& parameters,
                             const SampleSet<Scalar>& samples, const RunControl& run) {
  require_shape("attention_mass", "m", parameters.m, parameters.m.rows(), samples.features());
  require_shape("attention_mass", "r", parameters.r, parameters.m.rows(), samples.noises());
  require_offsets("attention_mass", activation, parameters.m.rows(), parameters.b, parameters.v);
  const Vector<double> mass = mean_over_samples(
      activation, parameters, samples, 2, run, [](const HeadPass& pass, Vector<double>& out) {
        out[0] = pass.a[0];
        out[1] = std::accumulate(pass.a.begin() + 1, pass.a.end(), 0.0);
      });
  return {mass[0], mass[1]};
}

template <typename Scalar>
PruneResult greedy_prune(HeadActivation activation, const HeadParameters& parameters,
                         const SampleSet<Scalar>& samples, PruneNormaliser normaliser,
                         const RunControl& run) {
  const Index heads = parameters.m.rows();
  std::vector<Index> kept(static_cast<std::size_t>(heads));
  std::iota(kept.begin(), kept.end(), Index{0});
  PruneResult result;
  result.losses.push_back(sampled_loss(activation, parameters, samples, LossDetail::loss_only, run).loss);
  while (kept.size() > 1) {
    std::vector<std::vector<Index>> trials;
    for (std::size_t out = 0; out < kept.size(); ++out) {
      trials.push_back(kept);
      trials.back().erase(trials.back().begin() + static_cast<std::ptrdiff_t>(out));
    }
    const std::vector<double> losses = trial_losses(activation, parameters, samples, normaliser, trials, run);
    // The head whose removal leaves the lowest loss goes.
    const auto best = std::min_element(losses.begin(), losses.end()) - losses.begin();
    result.losses.push_back(losses[static_cast<std::size_t>(best)]);
    result.removed.push_back(kept[static_cast<std::size_t>(best)]);
    kept.erase(kept.begin() + best);
  }
  return result;
}

template AttentionMass attention_mass(HeadActivation, const HeadParameters&, const SampleSet<float>&,
                                      const RunControl&);
template AttentionMass attention_mass(HeadActivation, const HeadParameters&, const SampleSet<double>&,
                                      const RunControl&);
template PruneResult greedy_prune(HeadActivation, const HeadParameters&, const SampleSet<float>&,
                                  PruneNormaliser, const RunControl&);
template PruneResult greedy_prune(HeadActivation, const HeadParameters&, const SampleSet<double>&,
                                  PruneNormaliser, const RunControl&);

}  // namespace widelimit::specialization
