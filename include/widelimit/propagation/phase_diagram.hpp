#pragma once

#include <string_view>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/propagation/exponents.hpp"
#include "widelimit/run_control.hpp"

/// Exponents as functions of two parameters: grids, and the lines where an exponent vanishes.
namespace widelimit::propagation {

/// A parameter that a diagram can have as an axis.
enum class Coordinate { alpha, alpha_A, alpha_M, sigma_w, sigma_out, sigma_A, tokens, depth, mlp_depth };

/// "alpha" (alpha_A = alpha_M), "alpha_A", ... "mlp_depth", and back. ArgumentError for another name.
[[nodiscard]] std::string_view coordinate_name(Coordinate coordinate);
[[nodiscard]] Coordinate coordinate_of(std::string_view name);

/// The two exponents of a network: of angles in the forward pass, of gradients in the backward pass.
enum class Exponent {
  angle,    ///< lambda_a
  gradient  ///< lambda_g at finite depth
};

/// Which number is used as the angle exponent.
enum class AngleMeasure {
  collapsed,  ///< lambda_a, the linearisation at the collapsed point; it determines deep networks.
  one_block   ///< Log growth of a vanishing gap in one block from norm 1, which the paper measures.
};

/// Which form of the paper's eqs. 18 and 19 (docs/theory/signal-propagation.md says what is wrong with them).
enum class Formula {
  corrected,
  published  ///< The printed eqs. 18 and 19: q_star for q_M.
};

/// Which exponent of a network is meant. Depths need not be integers, except under a causal mask.
struct ExponentOptions {
  double depth = 16;  ///< L of the gradient exponent, and under a causal mask of the angle exponent.
  AttentionMask mask = AttentionMask::full;
  AngleMeasure angle = AngleMeasure::collapsed;
  Formula formula = Formula::corrected;
};

/// One exponent at one point. With AngleMeasure::collapsed the angle exponent is lambda_a, not its logarithm:
/// the relative growth of a gap in a block, under a causal mask the geometric mean over `depth` blocks.
/// If the skip connections leave norms without a fixed point (skip_A skip_M >= 1), both are means over `depth`
/// blocks, rounded to an integer, from norm 1 (equal_token_growth()).
/// Errors: as collapsed_point; ArgumentError for Formula::published beside a causal mask or without a fixed point;
/// NumericalError if the exponent leaves the range of double. -infinity where a block leaves nothing.
[[nodiscard]] double exponent(Exponent which, const Parameters& parameters, const ExponentOptions& options);

/// Values of one parameter, e.g. evenly_spaced().
struct Axis {
  Coordinate coordinate = Coordinate::alpha;
  std::vector<double> values;
};

/// `count` >= 2 values from `from` to `to`; tokens, depth and mlp_depth are rounded to integers.
[[nodiscard]] Axis evenly_spaced(Coordinate coordinate, double from, double to, Index count);

/// Progress counts rows.
using PhaseOptions = RunControl;

/// Both exponents over a rectangle; entry (row, column) belongs to y.values[row], x.values[column]. NaN where the MLP's
/// numbers leave the range of double.
struct PhaseDiagram {
  Axis x, y;
  Matrix<double> lambda_a;  ///< As exponent(Exponent::angle) gives it.
  Matrix<double> lambda_g;
};

/// Cost: two dual activations for each MLP nonlinearity and different (sigma_w, sigma_out), 0.1 us for each entry
/// otherwise (full mask). Errors: those of exponent(), naming parameter and value; ArgumentError if both axes set
/// the same parameter.
[[nodiscard]] PhaseDiagram phase_diagram(const Parameters& base, const Axis& x, const Axis& y,
                                         const ExponentOptions& options = {}, const PhaseOptions& run = {});

/// Two parameters and the range of each.
struct ParameterRectangle {
  Coordinate x = Coordinate::alpha;
  double x_from = 0.01, x_to = 0.95;
  Coordinate y = Coordinate::sigma_w;
  double y_from = 0.2, y_to = 4;
};

/// A point of a ParameterRectangle, in units of its two parameters.
struct BoundaryPoint {
  double x = 0, y = 0;
};

/// Points in order along the curve.
struct BoundaryCurve {
  std::vector<BoundaryPoint> points;
  bool closed = false;
};

/// Options of trace_boundary(). ArgumentError unless the step is positive and there is a line.
struct TraceOptions {
  double largest_step = 0.02;  ///< Relative to the rectangle's sides.
  Index scan_lines = 16;       ///< Lines in each direction on which curves are looked for.
};

/// The curves on which an exponent vanishes within a rectangle: roots on scan lines (bracketing, TOMS 748)
/// are continued along the tangent and corrected by a root along the normal, so that every point lies on the
/// curve to 1e-12 of the sides. A curve that crosses no scan line is missed. The exponents must not vanish on
/// a whole area: leave out strengths of 0.
/// Errors  ArgumentError for an empty rectangle, equal axes, mlp_depth as an axis, or tokens or depth as one
///         under a causal mask (those do not change continuously); as exponent().
[[nodiscard]] std::vector<BoundaryCurve> trace_boundary(Exponent which, const Parameters& base,
                                                        const ParameterRectangle& rectangle,
                                                        const ExponentOptions& options = {},
                                                        const TraceOptions& trace = {});

/// Points where the boundaries of both exponents cross: crossings of the traced curves, refined by Newton's
/// method. For a full mask and AngleMeasure::collapsed there is none with alpha_A > 0, see
/// small_strength_gain().
[[nodiscard]] std::vector<BoundaryPoint> boundary_intersections(const Parameters& base,
                                                                const ParameterRectangle& rectangle,
                                                                const ExponentOptions& options = {},
                                                                const TraceOptions& trace = {});

}  // namespace widelimit::propagation
