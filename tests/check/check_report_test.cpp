#include "widelimit/check/check_report.hpp"

#include <doctest/doctest.h>

using widelimit::check::CheckReport;
using widelimit::check::CheckRow;

TEST_CASE("check report: a file passes if all its rows do, and one without rows does not") {
  CheckReport report;
  CHECK_FALSE(report.passed());
  const CheckRow good{"case/field", 1, 1, 0, 0, true}, bad{"case/other", 1, 2, 1, 0.5, false};
  report.rows = {good, good};
  CHECK(report.passed());
  for (std::size_t place = 0; place < 3; ++place) {
    report.rows = {good, good, good};
    report.rows[place] = bad;
    CHECK_FALSE(report.passed());
  }
}

TEST_CASE("check report: a row that nobody filled in has not passed") {
  CheckReport report;
  report.rows.emplace_back();
  CHECK_FALSE(report.passed());
}
