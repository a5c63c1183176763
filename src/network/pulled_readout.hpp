#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "network/graph.hpp"
#include "network/linear_stages.hpp"

namespace widelimit {

/// The input before all linear layers.
struct LinearInput {};
struct LinearScaling {
  std::shared_ptr<const RowStage> stage;
};
/// A dense layer.
struct LinearDense {
  double weight_variance;
  double bias_variance;
};
struct LinearSandwich {
  std::shared_ptr<const PairStage> stage;
  const SandwichStage* sandwich;  ///< Another face of the stage.
  std::string path;               ///< Of the layer.
};
struct LinearSum {
  std::vector<double> factors;
};

/// Layers that are linear in the covariance of a pair, last one first, down to one common input.
struct LinearTree {
  std::variant<LinearInput, LinearScaling, LinearDense, LinearSandwich, LinearSum> operation;
  std::vector<LinearTree> inputs;
};

/// A readout behind linear layers as one functional of the covariance K before them:
///     sum_ij W_ij K_ij + constant,
/// and likewise for T, W depending on the states of both inputs only. Behind global pooling W = u u'^T stays
/// an outer product, so that a pair costs O(d^2); after flatten W starts as a diagonal and becomes a matrix
/// at the first attention layer: one d x d x d' product a pair, for NNGP and NTK together.
///
/// The result stands on a single position; the stage is a FunctionalStage too.
std::shared_ptr<const PairStage> make_pulled_readout(ReadoutKind kind, LinearTree layers);

/// The same for layers on the inputs themselves, behind global pooling: with K = x x'^T / C the functional is
/// a product of features x^T u. O(d C) an input, O(d^2 C) with attention or norms, and O(C) a pair (value
/// encodings add O(d d')).
std::shared_ptr<const FeatureStage> make_feature_readout(ReadoutKind kind, LinearTree layers);

/// The layers that a readout was pulled back through, last one first, for people to read; empty for other
/// stages.
std::vector<std::string> pulled_layers(const PairStage& stage);
std::vector<std::string> pulled_layers(const FeatureStage& stage);

/// True for a pulled back flatten, which needs inputs of equal size as flatten itself does.
bool is_pulled_flatten(const PairStage& stage);

}  // namespace widelimit
