#pragma once

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::numerics {

/// Independent normal numbers [rows, columns] of the given standard deviation, drawn in the order in which Dense keeps
/// them: row after row, or column after column.
template <typename Dense = Matrix<double>>
Dense normal_matrix(Eigen::Index rows, Eigen::Index columns, RandomStream& random, double deviation = 1) {
  return Dense::NullaryExpr(rows, columns, [&] { return deviation * random.normal(); });
}

}  // namespace widelimit::numerics
