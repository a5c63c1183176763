#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "network/graph.hpp"
#include "network/linear_stages.hpp"

namespace widelimit {

/// The end of the tree: the covariance before all linear layers.
struct LinearInput {};
/// A norm. The stage is a ScalingStage.
struct LinearScaling {
  std::shared_ptr<const RowStage> stage;
};
/// A dense layer with trained weights.
struct LinearDense {
  double weight_variance;
  double bias_variance;
};
/// 1/width attention.
struct LinearSandwich {
  std::shared_ptr<const PairStage> stage;
  const SandwichStage* sandwich;  ///< The same object by its other interface.
  std::string path;               ///< The path of the layer, for messages.
};
/// A sum of branches, or a concatenation, weighted by factors.
struct LinearSum {
  std::vector<double> factors;
};

/// Whether leading outputs (leading_outputs.hpp) may stand for the product of both inputs' weights.
enum class AttentionProducts { shortened, exact };

/// Layers that are linear in the covariance of a pair. The root is the last layer, and all leaves are the same
/// LinearInput.
struct LinearTree {
  std::variant<LinearInput, LinearScaling, LinearDense, LinearSandwich, LinearSum> operation;
  std::vector<LinearTree> inputs;
};

/// A readout behind linear layers as one functional of the covariance K before them,
///
///     sum_ij W_ij K_ij + constant,
///
/// and likewise for T. W depends on the states of both inputs only. Behind global pooling W = u u'^T stays an outer
/// product, so that a pair costs O(d^2). After flatten W starts as a diagonal and becomes a matrix at the first
/// attention layer, by one d x d x d' product for each pair that serves NNGP and NTK.
///
/// The result stands on a single position. The stage is a FunctionalStage too.
std::shared_ptr<const PairStage> make_pulled_readout(
    ReadoutKind kind, LinearTree layers, AttentionProducts products = AttentionProducts::shortened);

/// A readout by global pooling behind linear layers on the inputs themselves. With K = x x'^T / C the functional u^T
/// K u' is a product of features x^T u, C numbers for each input. An input costs O(d C), or O(d^2 C) with attention
/// or norms, whose states need its covariance with itself. A pair costs O(C); encodings in the values add O(d d').
std::shared_ptr<const FeatureStage> make_feature_readout(ReadoutKind kind, LinearTree layers);

/// The layers that a readout was pulled back through, last one first, as explain() shows them. Empty for stages that
/// are no pulled back readouts.
std::vector<std::string> pulled_layers(const PairStage& stage);
std::vector<std::string> pulled_layers(const FeatureStage& stage);

/// Whether a stage is a flatten that was pulled back, which needs inputs of equal size as flatten itself does.
bool is_pulled_flatten(const PairStage& stage);

}  // namespace widelimit
