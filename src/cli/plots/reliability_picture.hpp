#pragma once

#include <string>
#include <vector>

#include "widelimit/gp/calibration.hpp"

namespace widelimit::cli {

/// One curve: how often predictions of a confidence are right.
struct ReliabilityCurve {
  std::string name;
  gp::Calibration calibration;
};

/// A reliability diagram: accuracy against confidence, and below how many predictions lie in each interval.
[[nodiscard]] std::string reliability_script(const std::vector<ReliabilityCurve>& curves,
                                             const std::string& title);

}  // namespace widelimit::cli
