#pragma once

#include <vector>

#include "widelimit/propagation/transformer.hpp"

/// Both exponents over two parameters, theory and networks of finite width side by side.
namespace widelimit::propagation {

/// An exponent of the theory, and that of networks.
struct ComparedExponent {
  double theory = 0;
  numerics::Estimate networks;

  /// By how many standard errors the networks lie above the theory; no number where they do not scatter.
  [[nodiscard]] double z() const { return (networks.value - theory) / networks.standard_error; }
};

struct ComparedPoint {
  ComparedExponent angle, gradient;
};

/// What is compared at each point: angles between tokens of cosine c0 in one block, from the norm that equal tokens
/// keep or from 1 (AngleMeasure::one_block), and gradients of equal tokens through all blocks.
struct SimulatedPhaseTask {
  Transformer transformer;
  double c0 = 0.99;
  AngleMeasure angle = AngleMeasure::collapsed;
  SampleOptions sampling = {};  ///< Progress counts networks.
};
[[nodiscard]] SimulatedPhaseTask read_simulated_phase(ConfigReader& fields);

/// At every point, rows of y from below; each has networks of its own. Errors and cost of each point: as
/// measured_angle_exponent(), measured_gradient_exponent() and exponent().
[[nodiscard]] std::vector<ComparedPoint> simulated_phase(const SimulatedPhaseTask& task, const Axis& x,
                                                         const Axis& y);

}  // namespace widelimit::propagation
