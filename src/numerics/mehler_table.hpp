#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "numerics/energy_window.hpp"
#include "numerics/smooth_mesh.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// What the Hermite series needs of a position with variance p, from a fixed number of stored orders k_0 <
/// k_1 < ... (orders that vanish by parity are left out). h_k are the normalised Hermite polynomials, z
/// standard normal.
///
/// A flat array of stride() numbers: [0] E phi, [1] E phi'^2, [2] E phi^2, then d_k = E[phi'(sqrt(p) z)
/// h_k(z)] for each stored k, then, where phi jumps, e_k = d_k + the part of the jumps, so that E[phi(sqrt(p)
/// z) h_{k+1}(z)] = sqrt(p / (k+1)) e_k. Of functions without a derivative dual d_k and E phi'^2 are 0, and e_k come
/// from phi.
class MehlerTable {
 public:
  static constexpr std::size_t first_coefficient = 3;
  /// Of the series in log p of a piece of VarianceGrid.
  static constexpr std::size_t chebyshev_nodes = 24;

  /// Refers to the function, the mesh and the window, which must outlive it. `truncations`: ascending numbers of stored
  /// orders that tail_bounds() is wanted for.
  MehlerTable(const SmoothFunction& phi, const SmoothMesh& mesh, const EnergyWindow& window,
              std::size_t stored_orders, std::span<const std::size_t> truncations = {});

  [[nodiscard]] std::size_t stored_orders() const { return stored_orders_; }
  [[nodiscard]] std::size_t stride() const { return stride_; }
  /// Whether e_k are not d_k.
  [[nodiscard]] bool has_own_rises() const { return !mesh_.jumps().empty() || !phi_.has_derivative_dual(); }

  /// The stored order j, also one past the last.
  [[nodiscard]] std::size_t order(std::size_t j) const;

  /// Fills stride() numbers from Chebyshev interpolation in log p, made and checked against quadrature when
  /// first needed, for variances between 2^-42 and 2^21; elsewhere, and where the check failed, by
  /// quadrature. A variance of 0 gives phi(0) and phi'(0). NumericalError as of EnergyWindow.
  void coefficients(double variance, std::span<double> out) const;

  /// The first numbers, up to the given stored order, from interpolation; false where it is not to be had.
  [[nodiscard]] bool interpolate(double variance, std::size_t orders, std::span<double> out) const;

  /// The largest log_tails() near this variance past each of the truncations of the constructor; nothing where
  /// interpolation is not to be had.
  [[nodiscard]] std::span<const double> tail_bounds(double variance) const;

  /// The interpolation of a piece of VarianceGrid, for those who evaluate it elsewhere: number k at the place x, -1 <=
  /// x <= 1, is sum_m T_m(x) series[m * stride + k], which growth then multiplies by exp(rate * x): E phi by that of
  /// values, d_k and e_k by that of slopes.
  struct PieceView {
    std::span<const double> series;
    std::size_t stride;
    double value_growth, slope_growth;
    std::span<const std::size_t> truncations;
    std::span<const double> tail_bounds;
  };
  /// Nothing where interpolation is not to be had. Made when first asked for.
  [[nodiscard]] std::optional<PieceView> piece(std::size_t index) const;

  /// log of the share of sqrt(E phi'^2), and of sqrt(E phi^2) where phi jumps, that lies past the given
  /// numbers of stored orders (ascending). By Cauchy and Schwarz the series of a pair errs by at most
  /// |rho|^order times the product of two such shares, relative to the root mean squares.
  void log_tails(double variance, std::span<const double> coefficients,
                 std::span<const std::size_t> truncations, std::span<double> out) const;

  /// E phi^2 and E phi'^2 and their slopes in the variance, by quadrature: d/dp E[F(sqrt(p) z)] = E[F (z^2 - 1)] / 2p
  /// for any F. The slopes are 0 at a variance of 0. NumericalError as for coefficients().
  [[nodiscard]] SelfSlopes energies(double variance) const;

 private:
  /// How fast root mean squares grow along a piece, which is taken out before interpolation: that of a function like
  /// exp grows by many orders, and all but its largest values would lose their digits.
  struct Growth {
    double value = 0,
           slope = 0;  ///< Of the logarithms of those of phi and phi', per unit of x, -1 <= x <= 1.

    /// From coefficients at both ends of a piece.
    static Growth between(std::span<const double> low, std::span<const double> high);
    /// Multiplies coefficients, of which so many of the stored orders are there, by the growth from 0 to x.
    void scale(double x, std::size_t orders, std::size_t stored_orders, std::span<double> out) const;
  };

  /// [chebyshev order][stride] on half a binary exponent of p: short enough for the fastest oscillation in
  /// log p, about 3 sqrt(order), that a feature of phi away from 0 causes. Empty where the check failed.
  struct Piece {
    std::once_flag made;
    std::vector<double> series;
    Growth growth;
    std::vector<double> tail_bounds;
  };

  /// A piece that was made; nullptr if its check failed.
  [[nodiscard]] const Piece* made_piece(std::size_t index) const;
  /// The piece that holds a variance, and its place there, -1 .. 1; nullptr where there is none or its check failed.
  [[nodiscard]] const Piece* find_piece(double variance, double& place) const;

  void make_series(double lowest_log, Piece& piece) const;
  [[nodiscard]] bool reproduces(const Piece& piece, double lowest_log) const;
  void evaluate(const Piece& piece, double x, std::size_t orders, std::span<double> out) const;
  void integrate(double variance, std::span<double> out) const;

  /// Calls visit(begin, end), in standard deviations, for parts of the panels of the mesh that are no longer than that.
  template <typename Visit>
  void for_each_panel(double variance, double longest, const Visit& visit) const;
  void add_panel(double begin, double end, double deviation, std::span<double> out) const;
  void add_panel_of_values(double begin, double end, double deviation, std::span<double> out) const;
  void add_jumps(double deviation, std::span<double> out) const;

  const SmoothFunction& phi_;
  const SmoothMesh& mesh_;
  const EnergyWindow& window_;
  std::size_t stored_orders_;
  std::span<const std::size_t> truncations_;
  std::size_t stride_;
  std::vector<double> up_;  // h_{k+1} = up_[k] z h_k - down_[k] h_{k-1}
  std::vector<double> down_;
  mutable std::array<Piece, VarianceGrid::pieces> pieces_;
};

}  // namespace widelimit::numerics
