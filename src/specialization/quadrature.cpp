#include "widelimit/specialization/quadrature.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "numerics/block_sums.hpp"
#include "numerics/normal_grid.hpp"
#include "specialization/checks.hpp"
#include "specialization/head_parts.hpp"
#include "widelimit/specialization/bayes.hpp"

namespace widelimit::specialization {

namespace {

constexpr Index chunk_size = 8192;

/// One Gaussian mixture component of the signal: chi*_0 = shift + scale z, with a probability.
struct Component {
  double probability;
  Vector<double> shift;
  Vector<double> scale;
};

std::vector<Component> components(const Prior& prior) {
  const Index features = prior.features();
  if (prior.kind() == Prior::Kind::gaussian)
    // Signal and noise of a feature are one normal variable of variance 1 + nu.
    return {{1, Vector<double>::Zero(features), (prior.variances().array() + 1).sqrt().matrix()}};
  std::vector<Component> result;
  for (Index k = 0; k < prior.points().rows(); ++k)
    if (prior.probabilities()[k] > 0)
      result.push_back(
          {prior.probabilities()[k], prior.points().row(k).transpose(), Vector<double>::Ones(features)});
  return result;
}

/// Nodes [first, first + count) of the grid as weighted samples of one component.
SampleValues nodes_as_samples(const numerics::NormalGrid& grid, const Component& component, Index tokens,
                              Index noises, Index first, Index count) {
  const Index features = component.shift.size(), dimensions = (features + noises) * tokens;
  SampleValues values{count, tokens, features, noises, {}, {}, {}, {}};
  values.eps.assign(static_cast<std::size_t>(count), 0);
  std::vector<double> z(static_cast<std::size_t>(dimensions));
  for (Index i = first; i < first + count; ++i) {
    values.weights.push_back(component.probability * grid.node(i, dimensions, z.data()));
    const double* next = z.data();
    for (Index l = 0; l < tokens; ++l)
      for (Index f = 0; f < features; ++f, ++next)
        values.chi_star.push_back(l == 0 ? component.shift[f] + component.scale[f] * *next : *next);
    values.xi.insert(values.xi.end(), next, static_cast<const double*>(z.data() + dimensions));
  }
  return values;
}

/// The mean loss of some nodes, and their weight.
struct WeightedLoss {
  double weight = 0;
  SampledLoss loss;
};

}  // namespace

SampledLoss loss_by_quadrature(HeadActivation activation, const HeadParameters& parameters,
                               const Prior& prior, Index tokens, const GridShape& shape,
                               const RunControl& run) {
  require_at_least("loss_by_quadrature", "tokens L", tokens, 1);
  const Index heads = parameters.m.rows(), features = prior.features();
  require_shape("loss_by_quadrature", "m", parameters.m, heads, features);
  // Without r scores have no noise, which leaves its dimensions out of the grid.
  const Index noises = parameters.r.isZero(0) ? 0 : parameters.r.cols();
  const numerics::NormalGrid grid(shape.points, shape.span, (features + noises) * tokens);
  const std::vector<Component> parts = components(prior);
  grid.require_affordable("quadrature", parts.size(), "samples instead");
  HeadParameters model = parameters;
  model.r = parameters.r.leftCols(noises);

  const Index size = grid.power((features + noises) * tokens);
  SampledLoss total;
  total.gradient = {Matrix<double>::Zero(heads, features), Matrix<double>::Zero(heads, noises),
                    Vector<double>::Zero(heads), Vector<double>::Zero(parameters.v.size())};
  for (const Component& component : parts) {
    const auto loss_of_chunk = [&](Index chunk, Index count) {
      const SampleSet<double> samples(
          nodes_as_samples(grid, component, tokens, noises, chunk * chunk_size, count));
      return WeightedLoss{samples.weight_sum(), sampled_loss(activation, model, samples)};
    };
    const std::vector<WeightedLoss> chunks = numerics::on_threads(
        run.threads, [&] { return numerics::parts_of_blocks(size, chunk_size, run, loss_of_chunk); });
    for (const WeightedLoss& chunk : chunks) {
      total.loss += chunk.weight * chunk.loss.loss;
      add_scaled(total.gradient, chunk.weight, chunk.loss.gradient);
    }
  }
  // The noise is independent of scores that do not read it, so that the gradient with respect to r is 0.
  if (noises == 0) total.gradient.r = Matrix<double>::Zero(heads, parameters.r.cols());
  return total;
}

double bayes_risk_by_quadrature(const Prior& prior, Index tokens, const GridShape& shape,
                                const RunControl& run) {
  require_at_least("bayes_risk_by_quadrature", "tokens L", tokens, 1);
  const Index features = prior.features();
  const numerics::NormalGrid grid(shape.points, shape.span, features * tokens);
  const std::vector<Component> parts = components(prior);
  grid.require_affordable("quadrature", parts.size(), "samples instead");
  double risk = 0;
  for (const Component& component : parts) {
    const auto risk_at = [&](const double* z) {
      thread_local Vector<double> token, odds;
      odds.resize(tokens);
      for (Index l = 0; l < tokens; ++l) {
        token = Eigen::Map<const Vector<double>>(z + l * features, features);
        if (l == 0) token = component.shift + component.scale.cwiseProduct(token);
        odds[l] = prior.token_score(token);
      }
      // The softmax and its squares without a copy of the normalised weights.
      odds = (odds.array() - odds.maxCoeff()).exp().matrix();
      return 1 - odds.squaredNorm() / (odds.sum() * odds.sum());
    };
    risk += component.probability * grid.mean(risk_at, run);
  }
  return risk;
}

}  // namespace widelimit::specialization
