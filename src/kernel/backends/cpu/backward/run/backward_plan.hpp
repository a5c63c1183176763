#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernel/backends/cpu/backward/planes/input_record.hpp"
#include "kernel/backends/gram_plan.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/run/lowered_network.hpp"

namespace widelimit {

class AdjointPlan;

/// Everything about the derivatives of a Gram matrix that depends neither on the values of the inputs nor on
/// cotangents. Readouts are not pulled back, so that every layer is an operation with a backward pass.
struct BackwardPlan {
  Program program;
  InputMasks masks;
  bool with_ntk;
  bool with_scalars = false;  ///< Derivatives with respect to graph_scalars() are wanted.
  Index channels;
  std::map<Shape, RecordLayout> records;                  ///< One for every shape that occurs.
  std::map<Shape, PairGeometry> selves;                   ///< An input with itself, for its record.
  std::map<std::pair<Shape, Shape>, PairGeometry> pairs;  ///< Left and right shape.
  /// An input node. One without positions makes a vector of each input of a batch; these are the rows of matrix
  /// number `vector_place`.
  struct Source {
    NodeId node;
    std::optional<std::size_t> vector_place;
  };
  std::vector<Source> sources;
  std::size_t vector_count = 0;      ///< Sources without positions.
  std::vector<bool> steep;           ///< steep_nodes(), for pairs.
  std::vector<bool> steep_for_self;  ///< The same for an input with itself, which passes without its NTK.
  /// The number of inputs on either side of a block of pairs. These share the arrays that are packed into the order
  /// of a plane. It is large where planes are small and are stacked, and small where all of it would leave the
  /// second-level cache.
  Index block_side = 1;
  /// Where pairs of vectors are computed on a device; null for the CPU.
  std::shared_ptr<const AdjointPlan> device = {};

  /// The number of a source without positions among these.
  [[nodiscard]] std::size_t vector_place(NodeId node) const;
};

/// What a plan of derivatives depends on besides the network.
struct BackwardInputs {
  NamedShapes left;
  NamedShapes right;
  Index channels;
  InputMasks masks;
};

/// The graph of the program that make_backward_plan() makes, with readouts that are not pulled back.
[[nodiscard]] Graph backward_graph(const Network& network, const BackwardInputs& inputs);

/// Makes a plan. Throws NetworkError if the network cannot be applied to one of the shapes, and ArgumentError, naming
/// the layer, for a layer without a backward pass.
[[nodiscard]] BackwardPlan make_backward_plan(const Network& network, const BackwardInputs& inputs,
                                              bool with_ntk);

}  // namespace widelimit
