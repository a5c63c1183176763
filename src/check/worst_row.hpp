#pragma once

#include <string>
#include <vector>

#include "widelimit/check/check_report.hpp"
#include "widelimit/numerics/statistics.hpp"

/// Comparison of recomputed numbers with those of a reference file.
namespace widelimit::check {

using Rows = std::vector<CheckRow>;

/// Standard errors that a sampled number may lie off.
inline constexpr double standard_errors_accepted = 4;

/// Takes the entries of an array one by one and keeps the one that lies furthest from its tolerance.
class WorstRow {
 public:
  /// NaN means that there is no number: it agrees with NaN, and with nothing else.
  void add(double expected, double computed, double tolerance);
  /// Tolerance: standard_errors_accepted combined standard errors and a rounding floor.
  void add_sampled(numerics::Estimate expected, numerics::Estimate computed);
  /// The worst entry as a row; without entries a row that passes.
  [[nodiscard]] CheckRow named(std::string name) const;

 private:
  CheckRow worst_{"", 0, 0, 0, 0, true};
  double ratio_ = -1;
};

/// A single number.
[[nodiscard]] CheckRow compared(std::string name, double expected, double computed, double tolerance);

/// The row of a case that could not be computed: it fails and says why.
[[nodiscard]] CheckRow failed_row(const std::string& name, const std::string& reason);

}  // namespace widelimit::check
