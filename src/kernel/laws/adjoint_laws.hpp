#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// How far the backward passes of a graph's row and pair stages are from directional differences of the stages
/// themselves, on covariances of the shapes that the stages meet for inputs of this shape. Returns the largest
/// deviation, relative to the sizes of the terms that are added up, and 0 if no stage has a backward pass. Everything
/// is in double. Pair stages that need the graphs of inputs are left out.
[[nodiscard]] double adjoint_deviation(const Graph& graph, const Shape& input);

/// The deviation of one row stage.
[[nodiscard]] double adjoint_deviation(const RowStage& stage);

/// The deviation of one pair stage, on inputs of this shape.
[[nodiscard]] double adjoint_deviation(const PairStage& stage, const Shape& shape);

}  // namespace widelimit
