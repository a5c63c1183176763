#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// How far a graph's row stages, at positions without variance, are from their limits as the variance of an
/// uncorrelated position goes to 0: in float and double, for NNGP and NTK. Returns the largest deviation relative to
/// the limit. Stages without a limit, such as a norm without epsilon, do not count.
[[nodiscard]] double zero_variance_deviation(const Graph& graph);

/// The deviation of one row stage.
[[nodiscard]] double zero_variance_deviation(const RowStage& stage);

}  // namespace widelimit
