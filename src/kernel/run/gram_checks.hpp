#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "kernel/plan/primitives.hpp"
#include "network/graph.hpp"
#include "network/lowering.hpp"
#include "network/shape_pairs.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/inputs.hpp"

/// What inputs must be before a Gram matrix is computed.
namespace widelimit {

/// Throws ArgumentError that names the first number that is not finite. All threads look for one; which is the first
/// is found out afterwards, so that the error does not depend on the threads.
template <typename Scalar>
void check_finite(const Inputs<Scalar>& inputs, const char* name, int threads) {
  const auto is_finite = [&](Index i) {
    return numerics::linear_rows<Scalar>().all_finite(inputs[i].data(), inputs[i].size());
  };
  std::atomic<bool> all_finite = true;
  numerics::on_threads(numerics::resolve_threads(threads, "gram"), [&] {
    numerics::for_each_task(inputs.size(), {}, [&](Index i) {
      if (!is_finite(i)) all_finite = false;
    });
  });
  for (Index i = 0; !all_finite && i < inputs.size(); ++i) {
    if (is_finite(i)) continue;
    const auto input = inputs[i];
    const auto bad =
        std::find_if_not(input.begin(), input.end(), [](Scalar value) { return std::isfinite(value); });
    throw ArgumentError(fmt::format("gram: {} must be finite, got {} at entry {} of input {}", name, *bad,
                                    bad - input.begin(), i));
  }
}

/// Throws ArgumentError unless the inputs of two batches can be paired.
template <typename Scalar>
void check_alike(const Inputs<Scalar>& x1, const Inputs<Scalar>& x2) {
  if (x1.axes() != x2.axes() || x1.channels() != x2.channels() ||
      // Ragged batches may differ in their shapes; check_pairs() asks the layers about these.
      (!x1.is_ragged() && !x2.is_ragged() && x1.shape(0) != x2.shape(0)))
    throw ArgumentError(
        fmt::format("gram: x1 and x2 must have equal shapes, got {} with {} channels and {} with {}",
                    to_string(x1.shape(0)), x1.channels(), to_string(x2.shape(0)), x2.channels()));
}

/// Throws NetworkError, naming input and layer, for graphs of the inputs that a layer cannot take.
template <typename Scalar>
void check_graphs(const Graph& graph, const Inputs<Scalar>& x, const char* name) {
  std::map<Shape, std::vector<Shape>> shapes;
  for (Index i = 0; i < x.size(); ++i) {
    const auto [found, is_new] = shapes.try_emplace(x.shape(i));
    if (is_new) found->second = node_shapes(graph, x.shape(i));
    for (const Node& node : graph.nodes) {
      const PairStage* pair = pair_stage_of(node.operation);
      if (pair == nullptr) continue;
      try {
        pair->check_graph(x.graph(i), found->second[node.inputs[0]]);
      } catch (const ArgumentError& error) {
        throw NetworkError(fmt::format("{}: {} (input {} of {})", node.path, error.what(), i, name));
      }
    }
  }
}

/// Throws NetworkError, naming input and layer, for a mask of which a layer leaves no position, or which a layer
/// cannot take. `first` is the number that input 0 has in the batch that errors name.
template <typename Scalar>
void check_masks(const Network& network, const Inputs<Scalar>& x, const char* name, Index first = 0) {
  if (!x.is_masked()) return;
  // Lowering a network is far slower than checking a mask, so the layers are found once for each shape.
  std::map<Shape, std::vector<MaskedLayer>> layers;
  for (Index i = 0; i < x.size(); ++i) {
    const Shape& shape = x.shape(i);
    const auto [found, is_new] = layers.try_emplace(shape);
    if (is_new) found->second = Lowering::masked_layers(network, shape, x.channels());
    const auto counts = x.mask(i);
    const PositionMask mask{shape, {counts.begin(), counts.end()}};
    for (const MaskedLayer& layer : found->second) {
      try {
        layer.check(layer.rule->behind(mask));
      } catch (const ArgumentError& error) {
        throw NetworkError(fmt::format("{}: {} (input {} of {})", layer.path, error.what(), first + i, name));
      }
    }
  }
}

/// The shapes of a batch, with the first input of each.
template <typename Scalar>
std::map<Shape, Index> first_of_shapes(const Inputs<Scalar>& x) {
  std::map<Shape, Index> first;
  for (Index i = 0; i < (x.is_ragged() ? x.size() : std::min<Index>(x.size(), 1)); ++i)
    first.try_emplace(x.shape(i), i);
  return first;
}

/// An input of some shape, with the shapes after all nodes.
struct ShapedInput {
  Shape shape;
  std::string name;
  std::vector<Shape> behind;
};

template <typename Scalar>
std::vector<ShapedInput> shaped_inputs(const Graph& graph, const Inputs<Scalar>& x, const char* name) {
  std::vector<ShapedInput> inputs;
  for (const auto& [shape, i] : first_of_shapes(x))
    inputs.push_back({shape, fmt::format("input {} of {}", i, name), node_shapes(graph, shape)});
  return inputs;
}

/// The check that a node makes of pairs of shapes; null for nodes that take all pairs.
inline const ShapePairCheck* pair_check(const Node& node) {
  if (const PairStage* pair = pair_stage_of(node.operation)) return dynamic_cast<const ShapePairCheck*>(pair);
  return dynamic_cast<const ShapePairCheck*>(feature_stage_of(node.operation));
}

/// The shape of an input before a node that takes pairs.
inline Shape shape_before(const Node& node, const ShapedInput& input) {
  if (const auto* transforms = input_transforms(node.operation))
    return transformed_shape(*transforms, input.shape);
  return input.behind[node.inputs[0]];
}

/// Throws NetworkError, naming layer and inputs, for shapes of two batches (or one) that a layer takes alone but not
/// paired.
template <typename Scalar>
void check_pairs(const Graph& graph, const Inputs<Scalar>& x1, const char* name1, const Inputs<Scalar>& x2,
                 const char* name2) {
  if (!x1.is_ragged() && !x2.is_ragged()) return;
  const auto of_left = shaped_inputs(graph, x1, name1), of_right = shaped_inputs(graph, x2, name2);
  for (const Node& node : graph.nodes) {
    const ShapePairCheck* check = pair_check(node);
    if (check == nullptr) continue;
    for (const ShapedInput& left : of_left)
      for (const ShapedInput& right : of_right) {
        // A batch with itself has every pair twice.
        // An input with itself has passed when its network was lowered.
        if (left.shape == right.shape || (&x1 == &x2 && right.shape < left.shape)) continue;
        try {
          check->check_pair(shape_before(node, left), shape_before(node, right));
        } catch (const ArgumentError& error) {
          throw NetworkError(
              fmt::format("{}: {} ({} and {})", node.path, error.what(), left.name, right.name));
        }
      }
  }
}

/// Checks the graphs and the masks of a batch.
template <typename Scalar>
void check_inputs(const Network& network, const Graph& graph, const Inputs<Scalar>& x, const char* name) {
  check_graphs(graph, x, name);
  check_masks(network, x, name);
}

}  // namespace widelimit
