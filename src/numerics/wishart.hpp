#pragma once

#include <boost/random/chi_squared_distribution.hpp>
#include <cmath>

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/random_stream.hpp"

/// Draws of Gram matrices of Gaussian vectors, without the vectors.
namespace widelimit::numerics {

inline double chi_squared(Eigen::Index freedom, RandomStream& stream) {
  return boost::random::chi_squared_distribution<double>(static_cast<double>(freedom))(stream);
}

/// Fills a matrix row by row, whatever its storage order, so that draws do not depend on it.
void draw_normals(auto&& target, RandomStream& stream) {
  for (Eigen::Index a = 0; a < target.rows(); ++a)
    for (Eigen::Index b = 0; b < target.cols(); ++b) target(a, b) = stream.normal();
}

/// root <- a lower factor of a Wishart matrix of `freedom` degrees, [m, m]: root root^T is distributed as G G^T with G
/// normal, [m, freedom].
template <typename Square>
void draw_wishart_root(Eigen::Index freedom, RandomStream& stream, Square& root) {
  const Eigen::Index m = root.rows();
  root.setZero();
  // Bartlett's decomposition needs freedom >= m; with fewer degrees the normal matrix itself is the factor.
  if (freedom >= m) {  // Bartlett
    for (Eigen::Index i = 0; i < m; ++i) {
      for (Eigen::Index j = 0; j < i; ++j) root(i, j) = stream.normal();
      root(i, i) = std::sqrt(chi_squared(freedom - i, stream));
    }
    return;
  }
  draw_normals(root.leftCols(freedom), stream);
}

}  // namespace widelimit::numerics
