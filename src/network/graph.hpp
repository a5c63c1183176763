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

/// The primitive operations that lowering makes of a network, acting on the covariance K and the NTK T of a pair of
/// inputs. Layers know how to write themselves as such operations (layer_model.hpp); the kernel engine schedules and
/// executes them. Formulas are those of docs/theory/kernel-recursion.md, section 2.
namespace widelimit {

using NodeId = std::size_t;

enum class PoolKind { average, sum };
enum class ReadoutKind { flatten, average, sum };

/// Layers before the first weights are applied to the inputs themselves, before any covariance exists. This one pools
/// positions, channel by channel.
struct FeaturePool {
  Window window;
  PoolKind kind;
  friend bool operator==(const FeaturePool&, const FeaturePool&) = default;
};
/// The positions of an input become channels (flatten), or are averaged or summed.
struct FeatureReadout {
  ReadoutKind kind;
  friend bool operator==(const FeatureReadout&, const FeatureReadout&) = default;
};
/// Whether a norm subtracts the mean over the axes that it normalises.
enum class Centring { none, over_axes };
/// The axes over which a norm takes its mean squares: always the channels, and `some` of the spatial axes or all.
struct NormedAxes {
  bool all = false;
  std::vector<Index> some = {};
  friend bool operator==(const NormedAxes&, const NormedAxes&) = default;

  /// The positions that are normalised together, one group after the other.
  [[nodiscard]] std::vector<std::vector<Index>> groups(const Shape& shape) const;
};
/// Each group of positions is divided by the root of epsilon plus its mean square.
struct FeatureNorm {
  NormedAxes axes;
  Centring centring;
  double epsilon;
  friend bool operator==(const FeatureNorm&, const FeatureNorm&) = default;
};
using FeatureTransform = std::variant<FeaturePool, FeatureReadout, FeatureNorm>;

/// K = x x'^T / C of the inputs x [d, C] behind the transforms; T = 0, because there are no weights yet.
struct InputNode {
  std::vector<FeatureTransform> transforms;
};
/// A readout of linear layers on the inputs behind the transforms. The stage computes it straight from the features.
struct FeatureNode {
  std::vector<FeatureTransform> transforms;
  std::shared_ptr<const FeatureStage> stage;
};
/// A dense layer or a convolution over windows F, K' = w/|F| sum_o K[. + o, . + o] + b and T' = K' + w/|F| sum_o T.
/// The divisor |F| counts padding too. An empty window is a dense layer.
struct AffineNode {
  Window window;
  double weight_variance;
  double bias_variance;
  /// Without weights T' = w/|F| sum_o T. That is a selection of positions, if the window has a single one.
  enum class Weights { trained, none } weights = Weights::trained;
};
/// An affine layer without weight sharing: different positions have independent weights, so that entries of different
/// output positions are 0. The stage, unless it is null, acts on the other entries and has no auxiliary arrays.
struct LocalAffineNode {
  AffineNode affine;
  std::shared_ptr<const RowStage> stage;
};
/// A stage that acts entry by entry, with arrays made of each input's own variances.
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
/// K'_ab = sum K over the window at a and the window at b, divided by |F|^2 if `average`; T likewise.
struct PoolNode {
  Window window;
  PoolKind kind;
};
/// From positions to none: flatten is the mean of the diagonal, the others are the mean or the sum of all entries.
struct ReadoutNode {
  ReadoutKind kind;
};
/// A stage that needs the whole covariance of a pair, such as attention.
struct PairNode {
  std::shared_ptr<const PairStage> stage;
  MaskRulePointer mask = {};  ///< The mask that the stage reads; null without masks.
};

using Operation = std::variant<InputNode, FeatureNode, AffineNode, LocalAffineNode, RowNode, SumNode,
                               ProductNode, PoolNode, ReadoutNode, PairNode>;

/// The stage of a RowNode or a PairNode; null for all other operations.
const RowStage* row_stage_of(const Operation& operation);
const PairStage* pair_stage_of(const Operation& operation);

/// One operation with the nodes that it reads.
struct Node {
  Operation operation;
  std::vector<NodeId> inputs;  ///< All of them stand earlier in the graph.
  std::string path;            ///< The path of the layer that made it, for messages.
};

/// Inputs stand before their consumers, so that a walk from front to back may compute and one from back to front may
/// ask what is needed. lower() returns only nodes that the output needs.
struct Graph {
  std::vector<Node> nodes;
  NodeId output = 0;
  /// The fewest Monte-Carlo samples of a sampled stage; 0 if no stage is sampled. It bounds the number of replicates.
  std::int64_t fewest_samples = 0;
};

/// The shape of the inputs behind transforms. Throws ArgumentError without path.
Shape transformed_shape(const std::vector<FeatureTransform>& transforms, const Shape& network_input);

/// The shape after a node. Throws ArgumentError without path; callers know the layer and add it.
Shape output_shape(const Operation& operation, const std::vector<Shape>& inputs, const Shape& network_input);

/// The shapes after all nodes for inputs of the given shape. Throws NetworkError with the node's path.
std::vector<Shape> node_shapes(const Graph& graph, const Shape& network_input);

/// The graph without the nodes that its output does not need; the others keep their order.
Graph reachable_part(const Graph& graph);

/// The transforms of a node that reads the inputs themselves; null for other nodes.
const std::vector<FeatureTransform>* input_transforms(const Operation& operation);

}  // namespace widelimit
