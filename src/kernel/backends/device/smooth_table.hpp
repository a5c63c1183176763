#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "numerics/quadrature_parts.hpp"
#include "widelimit/numerics/formula/symbol.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit {

/// The numbers from which devices compute the dual of a nonlinearity by quadrature (smooth_dual() of smooth_source()):
///
///     [header]     the numbers named below
///     [3 * piece]  for every piece of VarianceGrid the window in standard deviations, and where the tables of its
///                  short and its deep series begin, 0 where there is none
///     panels       their edges, and for each the end nearer to 0, phi there, and [rise from there over the distance,
///                  phi'][degree] of a Chebyshev series
///     breakpoints
///     series       for each piece that was asked for: growth of means and of slopes; [truncation] logarithms of what
///                  is left; [truncation] terms that the precision needs; [E phi, d_k, e_k where they differ][term]
///
/// Places count from the beginning. They are whole numbers below 2^24, which float holds.
class SmoothTable {
 public:
  enum Place : int {
    panels,
    edges,
    series,
    breakpoint_count,
    breakpoints,
    first_skips,
    others_skip,
    rises,
    reach,
    header
  };
  /// Of the series of a panel, whose polynomials of degree 14 err by 1e-9 (SmoothMesh).
  static constexpr std::size_t degrees = 28;
  /// What a truncated series may leave, as on the CPU.
  static constexpr double log_tolerance(numerics::formula::Precision precision) {
    return precision == numerics::formula::Precision::wide ? -27.6 : -16.1;
  }

  /// `activation` must outlive it.
  SmoothTable(const numerics::QuadratureActivation& activation, numerics::formula::Precision precision);

  /// Makes the tables of the pieces that hold these variances, and of those next to a variance at the end of its piece:
  /// devices round otherwise. Any other variance is served by nested rules, slowly. Which tables a pair of these
  /// variances finds does not depend on what else was asked for. True if there are new ones.
  /// NumericalError for a variance whose piece reaches beyond what phi can be resolved for.
  bool require(const std::vector<double>& variances);

  [[nodiscard]] const std::vector<double>& numbers() const { return numbers_; }

 private:
  void write_panels();
  void add_window(std::size_t piece);
  /// Nothing where the CPU has no interpolation either.
  void add_series(std::size_t piece, const numerics::MehlerTable& table, std::size_t orders,
                  std::size_t place);
  [[nodiscard]] bool needs_deep() const;
  [[nodiscard]] std::size_t place_of(std::size_t piece) const { return header + 3 * piece; }

  numerics::QuadratureParts parts_;
  numerics::formula::Precision precision_;
  std::set<std::size_t> pieces_;  ///< That were asked for.
  std::vector<double> numbers_;
};

}  // namespace widelimit
