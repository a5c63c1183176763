#pragma once

#include <string>
#include <vector>

namespace widelimit::cli {

/// A number that is known, and what this build makes of it on this machine.
struct SelfCheck {
  std::string name;
  double error;      ///< Relative.
  double tolerance;  ///< Of a right build.

  [[nodiscard]] bool holds() const { return error <= tolerance; }
  [[nodiscard]] std::string text() const;
};

/// Matrix products and factorizations of BLAS against plain loops, kernels against their closed forms, and the same
/// bits on one thread as on all. Takes a tenth of a second.
[[nodiscard]] std::vector<SelfCheck> self_checks();

}  // namespace widelimit::cli
