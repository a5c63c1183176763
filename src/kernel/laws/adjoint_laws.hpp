#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// How far the backward passes of the row and pair stages of a graph are from directional differences of the stages
/// themselves, on covariances of the shapes that the stages have after inputs of this shape; the largest deviation,
/// relative to the sizes of the terms that add up. 0 if no stage has a backward pass. Double only; pair stages that
/// need the graphs of inputs are left out.
[[nodiscard]] double adjoint_deviation(const Graph& graph, const Shape& input);

/// Of one row stage.
[[nodiscard]] double adjoint_deviation(const RowStage& stage);

/// Of one pair stage on inputs of this shape.
[[nodiscard]] double adjoint_deviation(const PairStage& stage, const Shape& shape);

}  // namespace widelimit
