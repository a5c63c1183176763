#include <memory>
#include <optional>
#include <utility>

#include "propagation/attention_parts.hpp"
#include "propagation/block_layers.hpp"
#include "propagation/block_sequence.hpp"
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

/// What the marked layer of block `place` leaves at the end, a replicate; `gram`: the tokens before that block.
std::vector<double> contribution(const BlockLayer& layer, const Layer& enlarged, const BlockSequence& blocks,
                                 const Matrix<double>& gram, Index place, const RunControl& run) {
  std::vector<Layers> parts = blocks.layers(place);
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

/// A layer at one place of every block, and what stands for it in the blocks that are run. Each list has one entry, of
/// a block that is repeated, or one for each block.
struct UsedLayer {
  const BlockLayer& layer;  ///< Of the first block: its path and kind are those of all.
  std::vector<const BlockLayer*> layers;
  std::vector<const BlockLayer*> used;

  [[nodiscard]] const BlockLayer& layer_at(std::size_t place) const {
    return *layers[layers.size() == 1 ? 0 : place];
  }
  [[nodiscard]] const BlockLayer& used_at(std::size_t place) const {
    return *used[used.size() == 1 ? 0 : place];
  }
};

/// The layer, and after it its matrices if it is attention; nothing if it has no parameters.
std::vector<LayerGradients> gradients_of(const UsedLayer& of, const BlockSequence& blocks,
                                         const std::vector<PropagatedTokens>& tokens, const RunControl& run) {
  // Layers without parameters leave nothing but what the others add after them, 1e-60 of it.
  constexpr double nothing = 1e-30;
  const Index depth = blocks.depth();
  LayerGradients whole{of.layer.path, of.layer.layer.kind(),
                       std::vector<numerics::Estimate>(static_cast<std::size_t>(depth))};
  const std::optional<AttentionParts> parts = attention_parts(of.layer.layer);
  std::vector<LayerGradients> found;
  if (parts)
    for (const std::string& name : parts->names())
      found.push_back({whole.path, whole.kind, whole.blocks, name});
  bool has_any = false;  // A branch of factor 0 in one block leaves its layers those of the others.
  for (Index l = depth - 1; l >= 0; --l) {
    const auto at = static_cast<std::size_t>(l);
    const auto through = [&](const Layer& enlarged) {
      return contribution(of.used_at(at), enlarged, blocks, tokens[at].gram, l, run);
    };
    const std::vector<double> means = through(tangent_factor(tangent_scale));
    const numerics::Estimate mean = mean_over_replicates(means);
    const bool has_gradient = mean.value > nothing * tokens.back().squared_norm.value;
    if (!has_gradient && of.layers.size() == 1) return {};
    has_any = has_any || has_gradient;
    if (has_gradient) whole.blocks[at] = mean;
    const auto here = attention_parts(of.layer_at(at).layer);
    if (here && has_gradient)
      set_parts(*here, means, through(norm_into_tangent(here->bias_variance)), through(norm_into_tangent(0)),
                at, found);
    if (run.progress) run.progress(depth - l, depth);
  }
  if (!has_any) return {};
  found.insert(found.begin(), std::move(whole));
  return found;
}

/// The layers of each kind of block of a sequence: one list for a block that is repeated, else one for each place.
using LayersOfBlocks = std::vector<std::vector<BlockLayer>>;

LayersOfBlocks layers_of(const BlockSequence& blocks) {
  LayersOfBlocks found;
  for (const Network& kind : blocks.kinds()) found.push_back(layers_of_block(kind.layers()));
  return found;
}

std::vector<const BlockLayer*> at_place(const LayersOfBlocks& blocks, std::size_t place) {
  std::vector<const BlockLayer*> found;
  for (const std::vector<BlockLayer>& layers : blocks) found.push_back(&layers[place]);
  return found;
}

/// layer_gradients() through `blocks`, which stand for those with `layers`.
std::vector<LayerGradients> gradients_through(const BlockSequence& blocks, const LayersOfBlocks& layers,
                                              const std::vector<PropagatedTokens>& tokens,
                                              const RunControl& run) {
  // The layers of blocks that run stand in the same order as those of the blocks that are asked for (block_of_two()).
  const LayersOfBlocks used = layers_of(blocks);
  RunControl silent = run;
  std::vector<LayerGradients> gradients;
  const std::size_t count = layers.front().size();
  for (std::size_t k = 0; k < count; ++k) {
    if (run.progress)
      silent.progress = [&](std::ptrdiff_t done, std::ptrdiff_t all) {
        run.progress(static_cast<std::ptrdiff_t>(k) * all + done, static_cast<std::ptrdiff_t>(count) * all);
      };
    const UsedLayer layer{layers.front()[k], at_place(layers, k), at_place(used, k)};
    for (LayerGradients& found : gradients_of(layer, blocks, tokens, silent))
      gradients.push_back(std::move(found));
  }
  return gradients;
}

}  // namespace

std::vector<LayerGradients> layer_gradients(const Network& block, const Matrix<double>& start, Index depth,
                                            const RunControl& run) {
  // Before fewer tokens are taken for all of them.
  require_start("layer_gradients", block, start, depth);
  const LayersOfBlocks layers{layers_of_block(block.layers())};
  RunControl silent = run;
  silent.progress = {};
  return on_fewest_tokens(BlockSequence::repeated(block, depth), start,
                          [&](const BlockSequence& used, const Matrix<double>& gram) {
                            return gradients_through(used, layers, propagate(used[0], gram, depth, silent),
                                                     run);
                          });
}

std::vector<LayerGradients> layer_gradients(const std::vector<Network>& blocks, const Matrix<double>& start,
                                            const RunControl& run) {
  require_start("layer_gradients", blocks, start);
  const BlockSequence sequence = BlockSequence::of(blocks);
  require_same_kinds("layer_gradients", sequence);
  const LayersOfBlocks layers = layers_of(sequence);
  RunControl silent = run;
  silent.progress = {};
  return on_fewest_tokens(sequence, start, [&](const BlockSequence& used, const Matrix<double>& gram) {
    std::vector<Network> each;
    for (Index l = 0; l < used.depth(); ++l) each.push_back(used[l]);
    return gradients_through(used, layers, propagate(each, gram, silent), run);
  });
}

}  // namespace widelimit::propagation
