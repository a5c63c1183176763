#include <memory>
#include <optional>
#include <utility>

#include "propagation/attention_parts.hpp"
#include "propagation/block_layers.hpp"
#include "propagation/exchangeable_tokens.hpp"
#include "propagation/token_gram.hpp"
#include "propagation/token_run.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/propagation/repeated_block.hpp"

namespace widelimit::propagation {
namespace {

Layer tangent_factor(double factor) {
  return layers::row_layer("tangent factor", std::make_shared<TangentFactor>(factor));
}

Layer norm_into_tangent(double bias) {
  return layers::row_layer("norm into tangent", std::make_shared<NormIntoTangent>(tangent_scale, bias));
}

/// The block with one layer's own part of the tangent kernel made so large that all else vanishes beside it: what came
/// before is taken away before the layer, and `enlarged` stands after it.
Layers with_marked(const BlockLayer& layer, const Layer& enlarged) {
  return layer.replaced({tangent_factor(0), layer.layer, enlarged});
}

/// What the marked layer of the first of `blocks` blocks leaves at the end, a replicate.
std::vector<double> contribution(const BlockLayer& layer, const Layer& enlarged, const Network& block,
                                 const Matrix<double>& gram, Index blocks, const RunControl& run) {
  std::vector<Layers> parts(static_cast<std::size_t>(blocks), block.layers());
  parts.front() = with_marked(layer, enlarged);
  const Matrix<double> nothing = Matrix<double>::Zero(gram.rows(), gram.cols());
  RunControl silent = run;
  silent.progress = {};
  const auto passed = run_tokens({gram, nothing}, parts, silent, TokenRule::scaled);
  std::vector<double> means;
  for (const ScaledNumber& mean :
       tangent_numbers(passed.back(), [](const auto& tangent) { return tangent.diagonal().mean(); }))
    means.push_back(mean.value());
  return means;
}

/// A share of what neither the values' nor the output's matrix has of the layer, which is that of queries and keys.
/// Nothing where that is rounding: 1/width attention, whose scores stand still.
std::vector<double> query_key_share(const std::vector<double>& layer, const std::vector<double>& value,
                                    const std::vector<double>& output, double share) {
  constexpr double rounding = 1e-9;
  std::vector<double> rest(layer.size());
  for (std::size_t i = 0; i < layer.size(); ++i) {
    rest[i] = layer[i] - value[i] - output[i];
    rest[i] = rest[i] > rounding * layer[i] ? share * rest[i] : 0;
  }
  return rest;
}

/// Sets the gradients of an attention layer's matrices in one block; `whole`: of the layer, a replicate. The output's
/// matrix sees the norms that come out, the values' matrix the same without the biases; queries and keys share the rest
/// alike, because the scores are symmetric in both.
void set_parts(const AttentionParts& parts, const std::vector<double>& whole,
               const std::vector<double>& value, const std::vector<double>& output, std::size_t block,
               std::vector<LayerGradients>& found) {
  const std::vector<double> share = query_key_share(whole, value, output, parts.tied ? 1 : 0.5);
  for (LayerGradients& part : found)
    part.blocks[block] = mean_over_replicates(part.parameter == "value"    ? value
                                              : part.parameter == "output" ? output
                                                                           : share);
}

/// A layer of the block, and what stands for it in the block that is run.
struct UsedLayer {
  const BlockLayer& layer;
  const BlockLayer& used;
};

/// The layer, and after it its matrices if it is attention; nothing if it has no parameters.
std::vector<LayerGradients> gradients_of(const UsedLayer& of, const Network& block,
                                         const std::vector<PropagatedTokens>& tokens, const RunControl& run) {
  // Layers without parameters leave nothing but what the others add after them, 1e-60 of it.
  constexpr double nothing = 1e-30;
  const Index depth = static_cast<Index>(tokens.size()) - 1;
  LayerGradients whole{of.layer.path, of.layer.layer.kind(),
                       std::vector<numerics::Estimate>(static_cast<std::size_t>(depth))};
  const std::optional<AttentionParts> parts = attention_parts(of.layer.layer);
  std::vector<LayerGradients> found;
  if (parts)
    for (const std::string& name : parts->names())
      found.push_back({whole.path, whole.kind, whole.blocks, name});
  for (Index l = depth - 1; l >= 0; --l) {
    const auto at = static_cast<std::size_t>(l);
    const auto through = [&](const Layer& enlarged) {
      return contribution(of.used, enlarged, block, tokens[at].gram, depth - l, run);
    };
    const std::vector<double> means = through(tangent_factor(tangent_scale));
    whole.blocks[at] = mean_over_replicates(means);
    if (!(whole.blocks[at].value > nothing * tokens.back().squared_norm.value)) return {};
    if (parts)
      set_parts(*parts, means, through(norm_into_tangent(parts->bias_variance)),
                through(norm_into_tangent(0)), at, found);
    if (run.progress) run.progress(depth - l, depth);
  }
  found.insert(found.begin(), std::move(whole));
  return found;
}

/// layer_gradients() through `block`, which stands for the one with `layers`.
std::vector<LayerGradients> gradients_through(const Network& block, const std::vector<BlockLayer>& layers,
                                              const Matrix<double>& start, Index depth,
                                              const RunControl& run) {
  // The layers of the block that runs stand in the same order as those of the block that is asked for (block_of_two()).
  RunControl silent = run;
  silent.progress = {};
  const std::vector<PropagatedTokens> tokens = propagate(block, start, depth, silent);
  const auto used = layers_of_block(block.layers());
  std::vector<LayerGradients> gradients;
  for (std::size_t k = 0; k < layers.size(); ++k) {
    if (run.progress)
      silent.progress = [&](std::ptrdiff_t done, std::ptrdiff_t all) {
        run.progress(static_cast<std::ptrdiff_t>(k) * all + done,
                     static_cast<std::ptrdiff_t>(layers.size()) * all);
      };
    for (LayerGradients& found : gradients_of({layers[k], used[k]}, block, tokens, silent))
      gradients.push_back(std::move(found));
  }
  return gradients;
}

}  // namespace

std::vector<LayerGradients> layer_gradients(const Network& block, const Matrix<double>& start, Index depth,
                                            const RunControl& run) {
  // Before fewer tokens are taken for all of them.
  require_start("layer_gradients", block, start, depth);
  const auto layers = layers_of_block(block.layers());
  return on_fewest_tokens(block, start, [&](const Network& used, const Matrix<double>& gram) {
    return gradients_through(used, layers, gram, depth, run);
  });
}

}  // namespace widelimit::propagation
