#pragma once

#include "network/graph.hpp"

/// Laws that stages keep by themselves, whatever network they are in.
namespace widelimit {

/// A stage without weights of its own that is linear in the covariances maps the NTK as it maps the NNGP, so that T = K
/// gives T' = K'. Returns the largest deviation from this in the stages of a graph, relative to the largest K'; 0 for
/// stages that are not linear. Stages behind weights of their own layer, and those that need the graphs of inputs, are
/// left out.
[[nodiscard]] double linear_ntk_deviation(const Graph& graph, const Shape& input);

/// How far the row stages of a graph jump where the covariance of two positions reaches their variance, c = p = q,
/// beside a slope however steep, relative to what they make there.
[[nodiscard]] double tie_deviation(const Graph& graph);

}  // namespace widelimit
