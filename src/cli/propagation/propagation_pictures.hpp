#pragma once

#include <vector>

#include "widelimit/propagation/estimators.hpp"
#include "widelimit/propagation/phase_diagram.hpp"
#include "widelimit/results/picture.hpp"

/// Pictures of `widelimit propagation`.
namespace widelimit::cli {

/// The largest magnitude of finite values, at most 1: the ends of their colours.
[[nodiscard]] double colour_range(const Matrix<double>& values);

/// Both exponents in colour, white at 0, with the lines where each vanishes.
[[nodiscard]] results::Picture phase_picture(const propagation::PhaseDiagram& diagram,
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
[[nodiscard]] results::Picture simulated_phase_picture(const SimulatedPhase& phase);

/// Trajectories over the field of one block's displacements in the rectangle (cosine, q), with fixed points.
/// `measured` may be empty.
[[nodiscard]] results::Picture trajectory_picture(const propagation::BlockMap& map,
                                                  const std::vector<propagation::TokenState>& states,
                                                  const std::vector<propagation::MeasuredState>& measured);

/// Histograms of single tokens' norms and pairs' cosines with the theory's values as lines.
[[nodiscard]] results::Picture histograms_picture(const std::vector<propagation::TokenSamples>& samples,
                                                  const std::vector<propagation::TokenState>& theory);

}  // namespace widelimit::cli
