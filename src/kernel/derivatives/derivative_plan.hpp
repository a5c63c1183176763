#pragma once

#include <map>
#include <utility>

#include "kernel/derivatives/input_record.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/run/gram_plan.hpp"

namespace widelimit {

/// Everything about the derivatives of a Gram matrix that depends neither on the values of the inputs nor on cotangents.
/// Readouts are not pulled back, so that every layer is an operation with a way back.
struct DerivativePlan {
  Program program;
  InputMasks masks;
  bool with_ntk;
  Index channels;
  std::map<Shape, RecordLayout> records;                  ///< Of every shape that occurs.
  std::map<Shape, PairGeometry> selves;                   ///< An input with itself, for its record.
  std::map<std::pair<Shape, Shape>, PairGeometry> pairs;  ///< Left and right shape.
  std::vector<NodeId> vector_inputs;                      ///< Input nodes without positions.
};

/// Throws NetworkError if the network cannot be applied to one of the shapes, and ArgumentError, naming the layer, for one
/// without a way back.
[[nodiscard]] DerivativePlan make_derivative_plan(const Network& network, const NamedShapes& left,
                                                  const NamedShapes& right, Index channels, InputMasks masks,
                                                  bool with_ntk);

}  // namespace widelimit
