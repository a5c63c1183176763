#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "widelimit/numerics/activation.hpp"

namespace widelimit::numerics {

struct QuadratureParts;

/// How to integrate your own function.
struct QuadratureOptions {
  /// Places where phi has features narrower than a tenth of their distance from 0 (they could slip between sampling
  /// points), and places where it is not smooth that find_kinks() does not see. Finite, any order.
  std::vector<double> breakpoints = {};
  bool finds_kinks = true;  ///< Whether to add what find_kinks() finds of phi and phi_derivative.
  /// phi is only evaluated for smaller |x|; for variances that need no others.
  double reach = std::numeric_limits<double>::infinity();
  std::string name = "quadrature_activation";  ///< The beginning of error messages.
};

/// Values of a function at all places x, written to `values`.
using FunctionValues = std::function<void(std::span<const double> x, double* values)>;

/// Where a function or one of its first three derivatives jumps while it is smooth on both sides; also cusps.
struct Kinks {
  std::vector<double> places;  ///< In their order, exact to rounding as far as the function can tell.
  double reach;  ///< There may be others where |x| is larger: finite if there are more than 256 of them.
};

/// The kinks of a function with |x| <= 2000, as far as it is finite and not too rough to be tabulated. Those at `known`
/// are left out. Cost: some thousand values of most functions.
[[nodiscard]] Kinks find_kinks(const FunctionValues& function, const std::vector<double>& known = {});

/// Options that have the kinks of a function among their breakpoints, and whose reach ends where kinks are not known.
/// ArgumentError for a function that computes in float32 or less.
[[nodiscard]] QuadratureOptions with_kinks(const FunctionValues& function, QuadratureOptions options);

/// A dual with an estimate of its absolute error.
struct DualEstimate {
  Dual<double> dual;
  Dual<double> error;
};

/// Any elementwise function as an activation; its dual is computed by quadrature.
///
/// Expects   phi and phi_derivative finite near 0, smooth between breakpoints, callable from any thread; breakpoints
///           are those of the options and what find_kinks() finds of phi and phi_derivative; phi_derivative
///           is phi' almost everywhere (a jump of phi adds nothing to the derivative dual; at a kink in 0 phi'(0) is
///           the mean of both sides, whatever phi_derivative says). The NTK and finite networks use phi'. Cusps steeper
///           than |x - b|^0.8 at a breakpoint b, logarithms too, have no derivative dual: dual() has NaN for it, and
///           rows with an NTK, slopes and backward passes throw ArgumentError.
/// Method    Where it converges, the Hermite series of Mehler, E[phi phi] = a_0(p) a_0(q) + c sum_k d_k(p) d_k(q)
///           rho^k / (k+1) and E[phi' phi'] = sum_k d_k(p) d_k(q) rho^k, d_k the Hermite coefficients of phi'
///           (interpolated in log p from tables that are made, and checked, when first needed): 64 orders prepared a
///           position, or 384 looked up an entry for strong correlation at larger variances. Elsewhere nested
///           Gauss-Legendre and trapezium rules on u = sqrt(rho p) g + ..., v = sqrt(rho q) g + ..., split at the
///           breakpoints and fitted to phi. Orders that vanish by parity are not counted.
/// Accuracy  1e-10 relative to sqrt(E phi(u)^2 E phi(v)^2) for variances 0, 1e-12 .. 1e4, 1e-12 where the series
///           converges; float rows 1e-6. estimate() tells more. phi may grow: expectations are taken over as many
///           standard deviations, 10 to 52, as hold all but 1e-22 of E phi^2 and E phi'^2.
/// Errors    the constructor throws ArgumentError if phi is not finite near 0, not smooth at a place |x| < 64 that is
///           not a breakpoint, grows faster than a logarithm towards one, if phi_derivative is not its derivative there
///           (within 0.01 of a cusp nothing is said of it), or if either computes in float32 or less. dual, prepare and
///           apply throw NumericalError for a variance so large that phi could not be resolved over as many standard
///           deviations as that (it overflows or oscillates too often there), or whose E phi^2 or E phi'^2 is infinite,
///           which shows in how phi grows where it overflows: exp(a x^2) from a variance of 1 / (4a) on, exp(x^3) at
///           every variance. Where phi or phi' is not finite it is taken to grow on as it grew before.
/// Cost      1 .. 10 ns an entry and 0.5 us a position by up to 64 orders, 1 .. 2 us an entry by up to 384, 0.02 .. 2
///           ms by nested rules (tanh: beyond variance 2 and 8, at correlations above 0.95). A table of half a binary
///           exponent of variances takes 2 or 50 ms once. dual() prepares both positions: 2 us.
class QuadratureActivation final : public Activation {
 public:
  using Function = std::function<double(double)>;

  QuadratureActivation(Function phi, Function phi_derivative, const QuadratureOptions& options = {});
  /// phi' is taken from phi by extrapolated differences.
  QuadratureActivation(Function phi, const QuadratureOptions& options);
  ~QuadratureActivation() override;
  QuadratureActivation(const QuadratureActivation&) = delete;
  QuadratureActivation& operator=(const QuadratureActivation&) = delete;

  [[nodiscard]] double value(double x) const override;
  [[nodiscard]] double derivative(double x) const override;
  [[nodiscard]] Dual<double> dual(double p, double q, double c) const override;

  /// dual(p, q, c) with an error estimate: the largest difference between it, the nested rules and the nested
  /// rules of lower order. The estimate is usually far too large. Cost 0.1 .. 2 ms.
  [[nodiscard]] DualEstimate estimate(double p, double q, double c) const;

  /// By the Hermite series where it converges, else by nested rules with differences of phi', or, if phi has
  /// breakpoints, by differences of dual(); to 1e-9 relative to the scale of the Dual over p, q or sqrt(pq), up to the
  /// last of them next to perfect correlation. Cost: 0.1 .. 0.3 us for an entry of a
  /// row by 64 orders, 10 us by 384, milliseconds elsewhere.
  [[nodiscard]] DualSlopes slopes(double p, double q, double c) const override;
  [[nodiscard]] SelfSlopes self_slopes(double p) const override;

  /// The function with its mesh and tables, for devices (src/numerics/quadrature_parts.hpp).
  [[nodiscard]] QuadratureParts parts() const;
  /// ArgumentError, naming what needs it ("the NTK"), where E[phi' phi'] is not to be had.
  void require_derivative_dual(const char* needing) const;

  [[nodiscard]] std::size_t auxiliary_count() const override;
  void prepare(const float* variance, float* const* auxiliary, std::size_t size) const override;
  void prepare(const double* variance, double* const* auxiliary, std::size_t size) const override;
  void apply(const DualRow<float>& row) const override;
  void apply(const DualRow<double>& row) const override;
  void apply_adjoint(const AdjointRow<float>& row) const override;
  void apply_adjoint(const AdjointRow<double>& row) const override;

 private:
  template <typename Scalar>
  void apply_adjoint_row(const AdjointRow<Scalar>& row) const;

  class Implementation;
  std::unique_ptr<const Implementation> implementation_;
};

/// A QuadratureActivation as the pointer that layers take.
[[nodiscard]] std::shared_ptr<const QuadratureActivation> quadrature_activation(
    QuadratureActivation::Function phi, QuadratureActivation::Function phi_derivative,
    const QuadratureOptions& options = {});

/// The same from phi alone: phi' is taken from phi by extrapolated differences, so that phi must vary over lengths of
/// 0.1 and more, of |x| / 40 far from 0. Accuracy of the derivative dual 1e-9 where that of the other is 1e-10.
[[nodiscard]] std::shared_ptr<const QuadratureActivation> quadrature_activation(
    QuadratureActivation::Function phi, const QuadratureOptions& options = {});

}  // namespace widelimit::numerics
