#include "gp/selection/convex_minimum.hpp"

#include <nlopt.hpp>
#include <stdexcept>

namespace widelimit::gp {

std::vector<double> convex_minimum(const ConvexFunction& function, std::vector<double> start,
                                   const ConvexMinimisation& options) {
  nlopt::opt optimiser(nlopt::LD_LBFGS, static_cast<unsigned>(start.size()));
  if (!options.lower.empty()) optimiser.set_lower_bounds(options.lower);
  if (!options.upper.empty()) optimiser.set_upper_bounds(options.upper);
  optimiser.set_ftol_rel(options.tolerance);
  optimiser.set_maxeval(options.evaluations);
  optimiser.set_min_objective(
      [](const std::vector<double>& place, std::vector<double>& slopes, void* data) {
        return (*static_cast<const ConvexFunction*>(data))(place, slopes);
      },
      const_cast<ConvexFunction*>(
          &function));  // NOLINT(cppcoreguidelines-pro-type-const-cast): NLopt's void*
  double least = 0;
  try {
    optimiser.optimize(start, least);
  } catch (const std::runtime_error&) {
    // No step leads further down: rounding, at the minimum of a convex function.
  }
  return start;
}

}  // namespace widelimit::gp
