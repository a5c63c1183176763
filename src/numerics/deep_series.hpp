#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "numerics/mehler_slopes.hpp"
#include "numerics/mehler_table.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// The Hermite series with many orders, for entries that the short series of a row cannot serve: strong correlation at
/// larger variances. Its coefficients are not prepared for each position but interpolated for each entry.
class DeepSeries {
 public:
  /// Numbers of stored orders, of which a pair takes the first that leaves a small enough rest.
  static constexpr std::array<std::size_t, 6> truncations = {96, 128, 160, 208, 288, 384};

  /// Coefficients of the last variance asked for; entries of a row often share one. Not shared between
  /// threads.
  struct Cache {
    double variance = -1;
    std::size_t orders = 0;  ///< Orders whose coefficients are there.
    std::vector<double> coefficients = {};
  };

  DeepSeries(const SmoothFunction& phi, const SmoothMesh& mesh, const EnergyWindow& window)
      : table_{phi, mesh, window, truncations.back(), truncations}, slopes_{table_} {}

  /// Nothing where the series is not accurate to exp(log_tolerance) relative to the root mean squares.
  [[nodiscard]] std::optional<Dual<double>> dual(double p, double q, double c, double log_tolerance,
                                                 Cache& left, Cache& right) const;

  /// The dual with its slopes; nothing where the series is not as accurate as that.
  [[nodiscard]] std::optional<DualSlopes> slopes(double p, double q, double c, double log_tolerance,
                                                 Cache& left, Cache& right) const;

  [[nodiscard]] const MehlerTable& table() const { return table_; }

 private:
  void look_up(double variance, std::size_t orders, Cache& cache) const;
  /// The number of orders that the pair needs, their coefficients being looked up; nothing if it needs more.
  [[nodiscard]] std::optional<std::size_t> orders_of(double p, double q, double rho, double log_tolerance,
                                                     Cache& left, Cache& right) const;

  MehlerTable table_;
  MehlerSlopes slopes_;
};

}  // namespace widelimit::numerics
