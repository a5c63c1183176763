#pragma once

#include <optional>
#include <vector>

#include "numerics/mehler_slopes.hpp"
#include "numerics/mehler_table.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// The Hermite series with many orders, for entries that the short series of a row cannot serve: strong
/// correlation at larger variances. Its coefficients are not prepared a position but interpolated an entry.
class DeepSeries {
 public:
  /// Coefficients of the last variance asked for; entries of a row often share one. Not shared between
  /// threads.
  struct Cache {
    double variance = -1;
    bool available = false;
    double log_tail = 0;
    std::vector<double> coefficients = {};
  };

  DeepSeries(const SmoothFunction& phi, const SmoothMesh& mesh)
      : table_{phi, mesh, deep_orders}, slopes_{table_} {}

  /// Nothing where the series is not accurate to exp(log_tolerance) relative to the root mean squares.
  [[nodiscard]] std::optional<Dual<double>> dual(double p, double q, double c, double log_tolerance,
                                                 Cache& left, Cache& right) const;

  /// The same with the slopes.
  [[nodiscard]] std::optional<DualSlopes> slopes(double p, double q, double c, double log_tolerance,
                                                 Cache& left, Cache& right) const;

 private:
  static constexpr std::size_t deep_orders = 384;

  void look_up(double variance, Cache& cache) const;
  [[nodiscard]] bool converges(double p, double q, double rho, double log_tolerance, Cache& left,
                               Cache& right) const;

  MehlerTable table_;
  MehlerSlopes slopes_;
};

}  // namespace widelimit::numerics
