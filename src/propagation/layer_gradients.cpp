#include <memory>

#include "propagation/block_layers.hpp"
#include "propagation/token_gram.hpp"
#include "propagation/token_run.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/propagation/repeated_block.hpp"

namespace widelimit::propagation {
namespace {

Layer tangent_factor(double factor) {
  return layers::row_layer("tangent factor", std::make_shared<TangentFactor>(factor));
}

/// The block with one layer's own part of the tangent kernel made so large that all else vanishes beside it: what came
/// before is taken away in front of the layer.
Layers with_marked(const BlockLayer& layer) {
  return layer.replaced({tangent_factor(0), layer.layer, tangent_factor(tangent_scale)});
}

/// What the marked layer of the first of `blocks` blocks leaves at the end.
numerics::Estimate contribution(const BlockLayer& layer, const Network& block, const Matrix<double>& gram,
                                Index blocks, const RunControl& run) {
  std::vector<Layers> parts(static_cast<std::size_t>(blocks), block.layers());
  parts.front() = with_marked(layer);
  const Matrix<double> nothing = Matrix<double>::Zero(gram.rows(), gram.cols());
  const auto passed = run_tokens({gram, nothing}, parts, run);
  std::vector<double> means;
  for (const TokenTap::Passed& one : passed.back())
    means.push_back(one.tangent.diagonal().mean() / tangent_scale);
  return mean_over_replicates(means);
}

}  // namespace

std::vector<LayerGradients> layer_gradients(const Network& block, const Matrix<double>& start, Index depth,
                                            const RunControl& run) {
  const std::vector<PropagatedTokens> tokens = propagate(block, start, depth, run);
  // Layers without parameters leave nothing but what the others add behind them, 1e-60 of it.
  constexpr double nothing = 1e-30;
  std::vector<LayerGradients> gradients;
  for (const BlockLayer& layer : layers_of_block(block.layers())) {
    LayerGradients found{layer.path, layer.layer.kind(),
                         std::vector<numerics::Estimate>(static_cast<std::size_t>(depth))};
    bool has_parameters = true;
    for (Index l = depth - 1; l >= 0 && has_parameters; --l) {
      const auto at = static_cast<std::size_t>(l);
      found.blocks[at] = contribution(layer, block, tokens[at].gram, depth - l, run);
      has_parameters = found.blocks[at].value > nothing * tokens.back().squared_norm.value;
    }
    if (has_parameters) gradients.push_back(std::move(found));
  }
  return gradients;
}

}  // namespace widelimit::propagation
