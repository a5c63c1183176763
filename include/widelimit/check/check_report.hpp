#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace widelimit::check {

/// One recomputed reference value. For an array, it is the entry furthest from its tolerance.
struct CheckRow {
  std::string name;      ///< "case/field".
  double expected = 0;   ///< As the file says.
  double computed = 0;   ///< By this library.
  double error = 0;      ///< |computed - expected|.
  double tolerance = 0;  ///< The largest error accepted.
  bool passed = false;
};

/// The outcome of recomputing a reference file: check_reference() of covariance_sde/, specialization/ and propagation/.
struct CheckReport {
  std::vector<CheckRow> rows;  ///< One for each field of a case, in the order of the file.

  /// True if every row passed and there is at least one.
  bool passed() const {
    return !rows.empty() &&
           std::all_of(rows.begin(), rows.end(), [](const CheckRow& row) { return row.passed; });
  }
};

}  // namespace widelimit::check
