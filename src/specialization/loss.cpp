#include "widelimit/specialization/loss.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "numerics/block_sums.hpp"
#include "numerics/normal_matrix.hpp"
#include "specialization/checks.hpp"
#include "specialization/loss_kernel.hpp"
#include "specialization/sample_tiles.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::specialization {

namespace {

constexpr double start_deviation = 0.01;

/// `noises`: directions orthogonal to the spikes, the columns of r.
void check_parameters(std::string_view where, HeadActivation activation, const HeadParameters& parameters,
                      Index heads, Index features, Index noises) {
  require_at_least(where, "heads (rows of m)", heads, 1);
  require_shape(where, "m", parameters.m, heads, features);
  require_shape(where, "r", parameters.r, heads, noises);
  require_finite(where, "m", parameters.m);
  require_finite(where, "r", parameters.r);
  require_offsets(where, activation, heads, parameters.b, parameters.v);
}

/// Sums over all blocks, each block on its own and then in order.
template <typename Scalar>
std::vector<double> sum_kernel_blocks(const KernelBlock<Scalar>& model, const SampleTiles<Scalar>& samples,
                                      std::size_t size, const RunControl& run) {
  // The kernel reads tiles; blocks of them are the tasks, and the unit in which sums are taken in a fixed order.
  constexpr Index tiles_per_block =
      SampleTiles<Scalar>::samples_a_block / SampleTiles<Scalar>::samples_a_tile;
  const auto sums_of = [&](Index index, Index tiles) {
    KernelBlock<Scalar> block = model;
    block.values = samples.tile(index * tiles_per_block);
    block.sample_weights = samples.tile_weights(index * tiles_per_block);
    block.tiles = static_cast<std::size_t>(tiles);
    std::vector<double> sums(size, 0.0);
    add_block(block, sums.data());
    return sums;
  };
  std::vector<double> total(size, 0.0);
  numerics::on_threads(run.threads, [&] {
    for (const std::vector<double>& sums :
         numerics::parts_of_blocks(samples.tiles(), tiles_per_block, {.stop = run.stop}, sums_of))
      std::transform(total.begin(), total.end(), sums.begin(), total.begin(), std::plus{});
  });
  return total;
}

}  // namespace

HeadParameters with_initial_offsets(HeadActivation activation, Matrix<double> m, Matrix<double> r) {
  const Index heads = m.rows();
  return {std::move(m), std::move(r), Vector<double>::Zero(heads),
          Vector<double>::Ones(scale_count(activation, heads))};
}

void require_heads(std::string_view where, HeadActivation activation, const HeadParameters& parameters,
                   Index heads, Index features) {
  check_parameters(where, activation, parameters, heads, features, heads);
  const auto refuse = [&](const char* name, const Vector<double>& values, double none, bool known) {
    const auto other =
        std::find_if(values.begin(), values.end(), [none](double value) { return value != none; });
    if (!known && other != values.end())
      throw ArgumentError(fmt::format("{}: {} has no effect with the activation {}: expected {}, got {}",
                                      where, name, head_activation_name(activation), none, *other));
  };
  refuse("b", parameters.b, 0, has_bias(activation));
  refuse("v", parameters.v, 1, has_scale(activation));
}

HeadParameters noise_start(HeadActivation activation, Index heads, Index features, double eta,
                           std::uint64_t seed) {
  require_at_least("noise_start", "heads H", heads, 1);
  require_at_least("noise_start", "features F", features, 1);
  require_not_negative("noise_start", "eta", eta);
  numerics::require_memory(
      "noise_start: features", fmt::format("a start of {} heads and {} features", heads, features),
      static_cast<double>(heads) * static_cast<double>(features + heads) * sizeof(double), "take fewer");
  numerics::RandomStream random(seed);
  Matrix<double> m = numerics::normal_matrix(heads, features, random, start_deviation);
  // r = eta I and symmetric noise: heads that begin alike must differ by something to split.
  Matrix<double> r = eta * Matrix<double>::Identity(heads, heads);
  for (Index h = 0; h < heads; ++h)
    for (Index k = 0; k <= h; ++k) {
      const double noise = start_deviation * random.normal();
      r(h, k) += noise;
      if (k != h) r(k, h) += noise;
    }
  return with_initial_offsets(activation, std::move(m), std::move(r));
}

template <typename Scalar>
SampledLoss sampled_loss(HeadActivation activation, const HeadParameters& parameters,
                         const SampleSet<Scalar>& samples, LossDetail detail, const RunControl& run) {
  check_parameters("sampled_loss", activation, parameters, parameters.m.rows(), samples.features(),
                   samples.noises());
  const Index heads = parameters.m.rows(), features = samples.features(), rows = features + samples.noises();
  Matrix<double> head_rows(heads, rows);
  head_rows << parameters.m, parameters.r;
  const Matrix<Scalar> weights = head_rows.cast<Scalar>();
  const Vector<Scalar> b = parameters.b.cast<Scalar>();
  const Vector<Scalar> v = parameters.v.cast<Scalar>();

  const KernelBlock<Scalar> model{.activation = activation,
                                  .wanted = detail,
                                  .heads = static_cast<std::size_t>(heads),
                                  .rows = static_cast<std::size_t>(rows),
                                  .tokens = static_cast<std::size_t>(samples.tokens()),
                                  .head_rows = weights.data(),
                                  .b = b.data(),
                                  .v = v.data()};
  const KernelLayout layout(activation, model.heads, model.rows);
  std::vector<double> sums = sum_kernel_blocks(model, tiles_of(samples), layout.size, run);
  for (double& sum : sums) sum /= samples.weight_sum();

  SampledLoss result;
  result.loss = sums[KernelLayout::loss];
  // For weighted samples the square of the sum of weights over the sum of their squares counts the samples.
  const double effective_count = samples.weight_sum() * samples.weight_sum() / samples.squared_weight_sum();
  const double variance = std::max(sums[KernelLayout::squared_loss] - result.loss * result.loss, 0.0);
  result.standard_error = std::sqrt(variance / effective_count);
  if (detail == LossDetail::loss_only) return result;
  const Eigen::Map<const Matrix<double>> gradient(sums.data() + KernelLayout::head_rows, heads, rows);
  result.gradient.m = gradient.leftCols(features);
  result.gradient.r = gradient.rightCols(samples.noises());
  result.gradient.b = Eigen::Map<const Vector<double>>(sums.data() + layout.b, heads);
  result.gradient.v = Eigen::Map<const Vector<double>>(sums.data() + layout.v, parameters.v.size());
  if (detail == LossDetail::gradients_and_noise)
    result.noise = Eigen::Map<const Matrix<double>>(sums.data() + layout.noise, heads, heads);
  return result;
}

template SampledLoss sampled_loss(HeadActivation, const HeadParameters&, const SampleSet<float>&, LossDetail,
                                  const RunControl&);
template SampledLoss sampled_loss(HeadActivation, const HeadParameters&, const SampleSet<double>&, LossDetail,
                                  const RunControl&);

}  // namespace widelimit::specialization
