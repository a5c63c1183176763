#pragma once

#include <string>

#include "cli/output/progress_bar.hpp"

namespace widelimit::cli {

/// How far conjugate gradients are.
class SolverProgress {
 public:
  /// `residual`: the relative one at which they stop.
  SolverProgress(std::string label, double residual);

  [[nodiscard]] bool is_of(const std::string& label) const { return label == label_; }
  void show(int passes, double residual);

 private:
  std::string label_;
  double wanted_;
  StatusLine line_;
};

}  // namespace widelimit::cli
