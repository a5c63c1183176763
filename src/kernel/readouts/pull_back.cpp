#include "kernel/readouts/pull_back.hpp"

#include <optional>

#include "kernel/readouts/pulled_readout.hpp"

namespace widelimit {
namespace {

/// Copies a graph node by node, with readouts replaced. A replacement may take two nodes, so that ids change.
class PullBack {
 public:
  PullBack(const Graph& graph, AttentionProducts products)
      : graph_{graph}, products_{products}, consumers_(graph.nodes.size(), 0) {
    for (const Node& node : graph.nodes)
      for (const NodeId input : node.inputs) ++consumers_[input];
  }

  Graph run() {
    Graph result;
    result.fewest_samples = graph_.fewest_samples;
    std::vector<NodeId> renamed;
    for (const Node& old : graph_.nodes) {
      Node node = old;
      if (const auto* readout = std::get_if<ReadoutNode>(&old.operation)) {
        if (auto features = feature_readout(*readout, old.inputs[0])) {
          renamed.push_back(result.nodes.size());
          result.nodes.push_back({std::move(*features), {}, old.path});
          continue;
        }
        if (auto pulled = pulled_readout(*readout, old.inputs[0])) {
          // The stage's result stands on a single position. A sum over it gives the result without positions that
          // consumers of the readout expect.
          result.nodes.push_back({PairNode{std::move(pulled)}, {renamed[*source_]}, old.path});
          node.operation = ReadoutNode{ReadoutKind::sum};
          node.inputs = {result.nodes.size() - 1};
          renamed.push_back(result.nodes.size());
          result.nodes.push_back(std::move(node));
          continue;
        }
      }
      for (NodeId& input : node.inputs) input = renamed[input];
      renamed.push_back(result.nodes.size());
      result.nodes.push_back(std::move(node));
    }
    result.output = renamed[graph_.output];
    return result;
  }

 private:
  /// Returns null without attention: other linear layers are cheap to execute.
  std::shared_ptr<const PairStage> pulled_readout(const ReadoutNode& readout, NodeId input) {
    source_.reset();
    has_sandwich_ = false;
    auto tree = tree_at(input);
    if (!tree || !has_sandwich_) return nullptr;
    return make_pulled_readout(readout.kind, std::move(*tree), products_);
  }

  /// Global pooling of layers that are linear down to the inputs themselves. After flatten the weights are no outer
  /// product, so that features cannot replace the covariance.
  std::optional<FeatureNode> feature_readout(const ReadoutNode& readout, NodeId input) {
    if (readout.kind == ReadoutKind::flatten) return std::nullopt;
    source_.reset();
    auto tree = tree_at(input);
    if (!tree) return std::nullopt;
    const auto* source = std::get_if<InputNode>(&graph_.nodes[*source_].operation);
    if (source == nullptr) return std::nullopt;
    return FeatureNode{source->transforms, make_feature_readout(readout.kind, std::move(*tree))};
  }

  /// The linear layers that end at a node. Returns nothing if their branches do not begin at one common node,
  /// `source_`.
  std::optional<LinearTree> tree_at(NodeId id) {
    const Node& node = graph_.nodes[id];
    // A node that others read as well has to be computed anyway.
    auto operation = consumers_[id] > 1 ? std::nullopt : linear_operation(node);
    if (!operation) {
      if (source_ && *source_ != id) return std::nullopt;
      source_ = id;
      return LinearTree{LinearInput{}, {}};
    }
    LinearTree tree{std::move(*operation), {}};
    for (const NodeId input : node.inputs) {
      auto subtree = tree_at(input);
      if (!subtree) return std::nullopt;
      tree.inputs.push_back(std::move(*subtree));
    }
    return tree;
  }

  /// A layer that is linear in the pair's covariance, or nothing. A MaskStage is none, so that the walk ends at it.
  std::optional<decltype(LinearTree::operation)> linear_operation(const Node& node) {
    if (const auto* sum = std::get_if<SumNode>(&node.operation)) return LinearSum{sum->factors};
    if (const auto* row = std::get_if<RowNode>(&node.operation)) {
      if (dynamic_cast<const ScalingStage*>(row->stage.get()) == nullptr) return std::nullopt;
      return LinearScaling{row->stage};
    }
    if (const auto* affine = std::get_if<AffineNode>(&node.operation)) {
      // A convolution is linear as well. Behind global pooling it would make one outer product for each tap, and
      // WeightsForm has no form for their sum.
      if (!affine->window.sizes.empty()) return std::nullopt;
      return LinearDense{affine->weight_variance, affine->bias_variance};
    }
    if (const auto* pair = std::get_if<PairNode>(&node.operation)) {
      const auto* sandwich = dynamic_cast<const SandwichStage*>(pair->stage.get());
      if (sandwich == nullptr) return std::nullopt;
      has_sandwich_ = true;
      return LinearSandwich{pair->stage, sandwich, node.path};
    }
    return std::nullopt;
  }

  const Graph& graph_;
  AttentionProducts products_;
  std::vector<int> consumers_;
  std::optional<NodeId> source_;  ///< Where the layers of the current readout begin.
  bool has_sandwich_ = false;
};

}  // namespace

Graph lower_with_readouts(const Network& network, const Shape& input, const Replicate& replicate,
                          const InputTraits& traits, Readouts readouts) {
  Graph graph = Lowering::lower(network, input, replicate, traits);
  if (readouts == Readouts::as_written) return graph;
  const auto products =
      readouts == Readouts::pulled_back ? AttentionProducts::shortened : AttentionProducts::exact;
  // Layers that a readout was pulled through, and that nothing else reads, stay behind in the graph.
  return reachable_part(PullBack(graph, products).run());
}

}  // namespace widelimit
