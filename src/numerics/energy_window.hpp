#pragma once

#include <array>
#include <mutex>

#include "numerics/smooth_mesh.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Half binary exponents of variances, for which tables are made at once.
struct VarianceGrid {
  static constexpr int first_exponent = -42;
  static constexpr int last_exponent = 21;
  static constexpr int pieces_per_exponent = 2;
  static constexpr std::size_t pieces = (last_exponent - first_exponent) * pieces_per_exponent;

  /// The variance's place in units of a piece; the grid holds it if it is 0 or more and below the number of pieces.
  [[nodiscard]] static double place(double variance);
  /// The smallest variance of a piece, or of the one past the last.
  [[nodiscard]] static double log2_begin(std::size_t piece);
};

/// How far from 0 the energies E phi(u)^2 and E phi'(u)^2 lie, u of a given variance; refers to a function and its
/// mesh, which must outlive it.
///
/// By Cauchy and Schwarz a dual whose functions are cut off at windows, past which lie shares s and t of the energies,
/// errs by at most sqrt(s) + sqrt(t) of sqrt(E phi(u)^2 E phi(v)^2), whatever the correlation. Windows are chosen so
/// that each root is 1e-11. Cut energies of Gaussians are an exponential family in 1 / variance: a smaller variance
/// needs no larger |x|, so that a window serves the variances below its own.
class EnergyWindow {
 public:
  EnergyWindow(const SmoothFunction& phi, const SmoothMesh& mesh);

  /// In standard deviations, least_window .. widest_window; within the mesh. NumericalError if there is none, which
  /// says the variance and why. Cost: 10 ns where a window for variances up to the next half binary exponent is known;
  /// else some thousand values of phi.
  [[nodiscard]] double at(double variance) const;

  /// Whether all variances of a piece of VarianceGrid have one.
  [[nodiscard]] bool covers(std::size_t piece) const;

  /// At the largest variance of a piece, made when first asked for; infinity if there is none.
  [[nodiscard]] double of_piece(std::size_t piece) const;

  /// A window that is wider by a tenth where it is wider than the least, so that roots of 1e-13 are left past it; never
  /// outside of the mesh. `least`: in standard deviations, where the mesh allows it.
  [[nodiscard]] double wider_at(double variance, double least) const;

 private:
  struct Piece {
    std::once_flag made;
    double window = 0;  ///< Of its largest variance; infinity if there is none.
  };

  /// Infinity if there is none.
  [[nodiscard]] double find(double variance) const;
  /// Whether phi is 0 within six deviations of 0, and its energy is not: what lies beyond is too rare for the tables.
  [[nodiscard]] bool is_rare(double deviation, double energy) const;
  /// What at() says where there is none.
  [[noreturn]] void refuse(double variance) const;
  /// E phi^2 and E phi'^2 within the mesh; an order of magnitude is enough.
  [[nodiscard]] Dual<double> energies(double deviation) const;

  const SmoothFunction& phi_;
  const SmoothMesh& mesh_;
  bool is_infinite_;  ///< E phi^2, at every variance.
  mutable std::array<Piece, VarianceGrid::pieces> pieces_;
};

}  // namespace widelimit::numerics
