#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "network/feature_stage.hpp"
#include "network/mask_rule.hpp"
#include "widelimit/network/pair_stage.hpp"
#include "widelimit/network/row_stage.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/network/window.hpp"

/// The graph that lowering makes of a network: primitive operations on the covariance of a pair of inputs.
/// Layers know how to write themselves into it (layer_model.hpp); the kernel engine schedules and executes
/// it.
namespace widelimit {

using NodeId = std::size_t;

enum class PoolKind { average, sum };
enum class ReadoutKind { flatten, average, sum };

/// Layers that act on raw inputs are applied to the inputs themselves, before any covariance exists.
struct FeaturePool {
  Window window;
  PoolKind kind;
  friend bool operator==(const FeaturePool&, const FeaturePool&) = default;
};
struct FeatureReadout {
  ReadoutKind kind;
  friend bool operator==(const FeatureReadout&, const FeatureReadout&) = default;
};
enum class Centring { none, over_axes };
/// Over the channels and some spatial axes, or all.
struct NormedAxes {
  bool all = false;
  std::vector<Index> some = {};
  friend bool operator==(const NormedAxes&, const NormedAxes&) = default;

  /// Positions that are normalised together.
  [[nodiscard]] std::vector<std::vector<Index>> groups(const Shape& shape) const;
};
struct FeatureNorm {
  NormedAxes axes;
  Centring centring;
  double epsilon;
  friend bool operator==(const FeatureNorm&, const FeatureNorm&) = default;
};
using FeatureTransform = std::variant<FeaturePool, FeatureReadout, FeatureNorm>;

/// K = (1/C) x x'^T of the inputs after the transforms; T = 0.
struct InputNode {
  std::vector<FeatureTransform> transforms;
};
/// A readout of linear layers on the inputs after the transforms, straight from their features.
struct FeatureNode {
  std::vector<FeatureTransform> transforms;
  std::shared_ptr<const FeatureStage> stage;
};
/// K' = w/|F| sum_o K[. + o, . + o] + b, T' = K' + w/|F| sum_o T. An empty window is a dense layer.
struct AffineNode {
  Window window;
  double weight_variance;
  double bias_variance;
  /// Without weights T' = w/|F| sum_o T: a selection of positions, if the window has one.
  enum class Weights { trained, none } weights = Weights::trained;
};
/// The same without weight sharing: entries of different output positions are 0. The stage, unless it is null, acts on
/// the others and has no auxiliary arrays.
struct LocalAffineNode {
  AffineNode affine;
  std::shared_ptr<const RowStage> stage;
};
struct RowNode {
  std::shared_ptr<const RowStage> stage;
};
/// K' = sum factor_i K_i, T' = sum factor_i T_i.
struct SumNode {
  std::vector<double> factors;
};
/// K' = factor * product K_i, T' = factor * sum T_i prod_{j != i} K_j.
struct ProductNode {
  double factor;
};
struct PoolNode {
  Window window;
  PoolKind kind;
};
/// From positions to none.
struct ReadoutNode {
  ReadoutKind kind;
};
struct PairNode {
  std::shared_ptr<const PairStage> stage;
  MaskRulePointer mask = {};  ///< Before the stage; null without masks.
};

using Operation = std::variant<InputNode, FeatureNode, AffineNode, LocalAffineNode, RowNode, SumNode,
                               ProductNode, PoolNode, ReadoutNode, PairNode>;

struct Node {
  Operation operation;
  std::vector<NodeId> inputs;  ///< Earlier nodes.
  std::string path;            ///< Of the layer it comes from.
};

/// Nodes in an order in which inputs come before their consumers; only nodes that the output needs.
struct Graph {
  std::vector<Node> nodes;
  NodeId output = 0;
  /// Monte-Carlo samples of the sampled stage that has fewest; 0 if there is none.
  std::int64_t fewest_samples = 0;
};

/// Shape of the inputs behind transforms. Throws ArgumentError without path.
Shape transformed_shape(const std::vector<FeatureTransform>& transforms, const Shape& network_input);

/// Shape after a node. Throws ArgumentError without path.
Shape output_shape(const Operation& operation, const std::vector<Shape>& inputs, const Shape& network_input);

/// Shapes after all nodes for inputs of the given shape. Throws NetworkError with the node's path.
std::vector<Shape> node_shapes(const Graph& graph, const Shape& network_input);

/// Without the nodes that the output does not need.
Graph reachable_part(const Graph& graph);

/// The transforms of a node that reads the inputs themselves; null for other nodes.
const std::vector<FeatureTransform>* input_transforms(const Operation& operation);

}  // namespace widelimit
