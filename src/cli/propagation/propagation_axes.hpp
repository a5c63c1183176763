#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/propagation/propagation_model.hpp"
#include "widelimit/propagation/phase_diagram.hpp"

/// Axes of phase diagrams as options give them.
namespace widelimit::cli {

inline constexpr const char* axis_help =
    "AXIS is NAME:FROM:TO[:COUNT], COUNT from 2 to 2000, with NAME one of alpha, alpha_A, alpha_M, "
    "sigma_w, sigma_out, sigma_A, tokens, depth, mlp_depth.";

/// Why --sigma-A has no effect on exponents.
inline constexpr const char* no_score_scale =
    "exponents of equal tokens do not depend on the scale of the scores";

/// NAME:FROM:TO[:COUNT], 100 values or `count` without it. ArgumentError naming the option.
[[nodiscard]] propagation::Axis axis_of(const std::string& text, const char* option,
                                        propagation::Index count = 100);

/// What the axes set.
void exclude_axes(PropagationOptions& options, const propagation::Axis& x, const propagation::Axis& y);

/// Whether exponents have curves of zeros over the axes: counts change in steps where exponents are sums over them.
[[nodiscard]] bool has_boundaries(const propagation::Axis& x, const propagation::Axis& y,
                                  const propagation::Transformer& transformer);

/// The rectangle that the axes span.
[[nodiscard]] propagation::ParameterRectangle rectangle_of(const propagation::Axis& x,
                                                           const propagation::Axis& y);

/// A list of {"closed", "points"}.
[[nodiscard]] nlohmann::json curves_json(const std::vector<propagation::BoundaryCurve>& curves);

}  // namespace widelimit::cli
