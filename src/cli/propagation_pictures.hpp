#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "widelimit/propagation/estimators.hpp"
#include "widelimit/propagation/phase_plane.hpp"

/// Pictures of `widelimit propagation`, drawn with gnuplot.
namespace widelimit::cli {

/// Both exponents in colour, white at 0, with the lines where each vanishes.
void draw_phase(const std::filesystem::path& file, const propagation::PhaseDiagram& diagram,
                const std::vector<propagation::BoundaryCurve>& angle,
                const std::vector<propagation::BoundaryCurve>& gradient);

/// Trajectories over the field of one block's displacements in the plane (cosine, q), with fixed points.
/// `measured` may be empty.
void draw_trajectory(const std::filesystem::path& file, const propagation::BlockMap& map,
                     const std::vector<propagation::TokenState>& states,
                     const std::vector<propagation::MeasuredState>& measured);

/// Histograms of single tokens' norms and pairs' cosines with the theory's values as lines.
void draw_histograms(const std::filesystem::path& file, const std::vector<propagation::TokenSamples>& samples,
                     const std::vector<propagation::TokenState>& theory);

}  // namespace widelimit::cli
