#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace widelimit::numerics {

/// phi and phi'.
struct SmoothFunction {
  std::function<double(double)> value;
  std::function<double(double)> derivative;
  std::vector<double> cusps = {};  ///< Places towards which E phi'^2 grows too steeply.
  std::string name = {};           ///< Error messages begin with it.

  /// With cusps phi' is nowhere used: rules and series take values alone.
  [[nodiscard]] bool has_derivative_dual() const { return cusps.empty(); }
};

/// A jump of phi: height = phi(at+) - phi(at-).
struct Jump {
  double at;
  double height;
};

/// Breakpoints in their order, without repetition; ArgumentError unless all are finite, which begins with `name`.
[[nodiscard]] std::vector<double> sorted_breakpoints(std::vector<double> breakpoints,
                                                     const std::string& name);

/// Which Hermite coefficients of phi' vanish at every variance.
enum class Parity {
  None,
  Even,            ///< phi' is even (tanh, sigmoid): odd orders vanish
  OddPlusConstant  ///< phi' is odd up to a constant (SiLU, softplus): even orders but the 0th vanish
};

/// A partition of the line into panels on which phi and phi' are polynomials of degree 14 up to 1e-9 of their
/// size, so that a 15-point Gauss rule, exact to degree 29, integrates them times a resolved Gaussian to
/// rounding. Singularities of phi in the complex plane are then 0.9 panel widths away or more. Panels never
/// cross a breakpoint.
class SmoothMesh {
 public:
  /// ArgumentError where phi is not finite near 0, not smooth between breakpoints, or phi' is not its
  /// derivative. No panel is added beyond `farthest`. Without a derivative dual panels follow phi alone, phi' is
  /// compared with it away from cusps, and there are no jumps: nothing is made of phi's derivative.
  SmoothMesh(const SmoothFunction& phi, const std::vector<double>& breakpoints, double farthest);

  [[nodiscard]] const std::vector<double>& edges() const { return edges_; }
  [[nodiscard]] double width(std::size_t panel) const { return edges_[panel + 1] - edges_[panel]; }

  /// The panel that holds x, |x| < reach(); at an edge the panel on its right.
  [[nodiscard]] std::size_t find(double x) const;

  /// The mesh covers [-reach, reach].
  [[nodiscard]] double reach() const { return edges_.back(); }

  /// Sorted, without repetition.
  [[nodiscard]] const std::vector<double>& breakpoints() const { return breakpoints_; }
  [[nodiscard]] const std::vector<Jump>& jumps() const { return jumps_; }
  [[nodiscard]] Parity parity() const { return parity_; }

 private:
  std::vector<double> edges_;
  std::vector<double> breakpoints_;
  std::vector<Jump> jumps_;
  Parity parity_ = Parity::None;
};

}  // namespace widelimit::numerics
