#include "cli/gp/solver_progress.hpp"

#include <fmt/format.h>

#include <utility>

namespace widelimit::cli {

SolverProgress::SolverProgress(std::string label, double residual)
    : label_{std::move(label)}, wanted_{residual} {}

void SolverProgress::show(int passes, double residual) {
  if (line_.is_due())
    line_.show(fmt::format("{}: pass {}, relative residual {:.1e} (until {:.1e})", label_, passes, residual,
                           wanted_));
}

}  // namespace widelimit::cli
