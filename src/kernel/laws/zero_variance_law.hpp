#pragma once

#include "network/graph.hpp"

namespace widelimit {

/// How far the row stages of a graph are, at positions without variance, from their limits as the variance of an
/// uncorrelated position goes to 0, in float and double, NNGP and NTK; the largest deviation, relative to the limit.
/// What has no limit, as a norm without epsilon, does not count.
[[nodiscard]] double zero_variance_deviation(const Graph& graph);

/// Of one row stage.
[[nodiscard]] double zero_variance_deviation(const RowStage& stage);

}  // namespace widelimit
