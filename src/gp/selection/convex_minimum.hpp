#pragma once

#include <functional>
#include <vector>

namespace widelimit::gp {

/// A smooth convex function of some parameters. It writes its derivatives to `slopes`, unless that is empty.
using ConvexFunction =
    std::function<double(const std::vector<double>& parameters, std::vector<double>& slopes)>;

struct ConvexMinimisation {
  double tolerance;                            ///< Of the value, relative, from one step to the next.
  int evaluations;                             ///< At most.
  std::vector<double> lower = {}, upper = {};  ///< Bounds of every parameter; none without them.
};

/// Where the function is least, by L-BFGS.
[[nodiscard]] std::vector<double> convex_minimum(const ConvexFunction& function, std::vector<double> start,
                                                 const ConvexMinimisation& options);

}  // namespace widelimit::gp
