#pragma once

#include "widelimit/matrix.hpp"
#include "widelimit/run_control.hpp"

namespace widelimit::specialization {

/// Of a piece of a run that begins `done` steps in: progress is that of all steps.
[[nodiscard]] inline RunControl piece_of(const RunControl& run, Eigen::Index done, Eigen::Index all) {
  RunControl piece = run;
  if (run.progress)
    piece.progress = [told = run.progress, done, all](std::ptrdiff_t now, std::ptrdiff_t) {
      told(done + now, all);
    };
  return piece;
}

}  // namespace widelimit::specialization
