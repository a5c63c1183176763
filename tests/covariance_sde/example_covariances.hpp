#pragma once

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/random_stream.hpp"

/// Covariances that the tests of this folder share; letters are those of the reference file.
namespace widelimit::covariance_sde::examples {

inline Matrix<double> two_tokens(double rho = 0.2) { return Matrix<double>{{1, rho}, {rho, 1}}; }

inline Matrix<double> b() { return Matrix<double>{{1.3, -0.4}, {-0.4, 0.7}}; }

inline Matrix<double> c() { return Matrix<double>{{1.2, 0.3, -0.1}, {0.3, 0.9, 0.25}, {-0.1, 0.25, 1.5}}; }

inline Matrix<double> e() {
  return Matrix<double>{
      {1.5, 0.4, -0.2, 0.1}, {0.4, 0.8, 0.3, -0.15}, {-0.2, 0.3, 1.1, 0.05}, {0.1, -0.15, 0.05, 2}};
}

/// Rank 2.
inline Matrix<double> f() {
  return Matrix<double>{{0.5, 0, 0.5, 0.5}, {0, 0.5, 0.5, -0.5}, {0.5, 0.5, 1, 0}, {0.5, -0.5, 0, 1}};
}

/// Unequal norms and correlations.
inline Matrix<double> random(Eigen::Index tokens, std::uint64_t seed) {
  numerics::RandomStream stream(seed);
  Matrix<double> x(tokens, tokens + 1);
  for (double& entry : x.reshaped()) entry = stream.normal();
  return x * x.transpose() / static_cast<double>(tokens);
}

}  // namespace widelimit::covariance_sde::examples
