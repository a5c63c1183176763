#pragma once

#include <string>
#include <vector>

#include "widelimit/propagation/estimators.hpp"
#include "widelimit/propagation/phase_diagram.hpp"

/// Pictures of `widelimit propagation`: gnuplot scripts that write a PNG to standard output.
namespace widelimit::cli {

/// Both exponents in colour, white at 0, with the lines where each vanishes.
[[nodiscard]] std::string phase_script(const propagation::PhaseDiagram& diagram,
                                       const std::vector<propagation::BoundaryCurve>& angle,
                                       const std::vector<propagation::BoundaryCurve>& gradient);

/// Exponents of theory and of networks over two parameters; entry (row, column) as in PhaseDiagram.
struct SimulatedPhase {
  propagation::Axis x, y;
  /// Of either exponent: the theory, the networks, and how many standard errors the networks are above the theory.
  struct Compared {
    Matrix<double> theory, networks, z;
    std::vector<propagation::BoundaryCurve> zeros;  ///< Of the theory.
  } angle, gradient;
};

/// Theory, networks and z-scores of both exponents side by side, with the lines where the theory vanishes.
[[nodiscard]] std::string simulated_phase_script(const SimulatedPhase& phase);

/// Trajectories over the field of one block's displacements in the rectangle (cosine, q), with fixed points.
/// `measured` may be empty.
[[nodiscard]] std::string trajectory_script(const propagation::BlockMap& map,
                                            const std::vector<propagation::TokenState>& states,
                                            const std::vector<propagation::MeasuredState>& measured);

/// Histograms of single tokens' norms and pairs' cosines with the theory's values as lines.
[[nodiscard]] std::string histograms_script(const std::vector<propagation::TokenSamples>& samples,
                                            const std::vector<propagation::TokenState>& theory);

}  // namespace widelimit::cli
