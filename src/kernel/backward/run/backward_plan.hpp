#pragma once

#include <map>
#include <optional>
#include <utility>

#include "kernel/backward/planes/input_record.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/run/gram_plan.hpp"

namespace widelimit {

/// Everything about the derivatives of a Gram matrix that depends neither on the values of the inputs nor on
/// cotangents. Readouts are not pulled back, so that every layer is an operation with a backward pass.
struct BackwardPlan {
  Program program;
  InputMasks masks;
  bool with_ntk;
  bool with_scalars = false;  ///< Derivatives by graph_scalars() are wanted too.
  Index channels;
  std::map<Shape, RecordLayout> records;                  ///< Of every shape that occurs.
  std::map<Shape, PairGeometry> selves;                   ///< An input with itself, for its record.
  std::map<std::pair<Shape, Shape>, PairGeometry> pairs;  ///< Left and right shape.
  /// Input nodes. The vectors that one without positions makes of a batch are the rows of a matrix, its place-th.
  struct Source {
    NodeId node;
    std::optional<std::size_t> vector_place;
  };
  std::vector<Source> sources;
  std::size_t vector_count = 0;  ///< Sources without positions.
  /// Inputs a side of a block of pairs, which share what is brought into the order of a plane: many where planes are
  /// small and are stacked, few where all of it would leave the second-level cache.
  Index block_side = 1;

  /// Of a source without positions.
  [[nodiscard]] std::size_t vector_place(NodeId node) const;
};

/// Inputs as plans of derivatives see them.
struct BackwardInputs {
  NamedShapes left;
  NamedShapes right;
  Index channels;
  InputMasks masks;
};

/// The graph of such a plan's program: readouts are not pulled back.
[[nodiscard]] Graph backward_graph(const Network& network, const BackwardInputs& inputs);

/// Throws NetworkError if the network cannot be applied to one of the shapes, and ArgumentError, naming the layer, for
/// one without a backward pass.
[[nodiscard]] BackwardPlan make_backward_plan(const Network& network, const BackwardInputs& inputs,
                                              bool with_ntk);

}  // namespace widelimit
