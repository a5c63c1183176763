#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace widelimit::check {

/// One recomputed reference value. Of an array, the entry that lies furthest from its tolerance.
struct CheckRow {
  std::string name;
  double expected = 0;
  double computed = 0;
  double error = 0;      ///< |computed - expected|.
  double tolerance = 0;  ///< The largest error accepted.
  bool passed = false;
};

/// The outcome of recomputing a reference file.
struct CheckReport {
  std::vector<CheckRow> rows;

  /// True if every row passed and there is at least one.
  bool passed() const {
    return !rows.empty() &&
           std::all_of(rows.begin(), rows.end(), [](const CheckRow& row) { return row.passed; });
  }
};

}  // namespace widelimit::check
