#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>

/// Activations of the naive kernel: functions, and their expectations under a Gaussian, from the formulas of
/// docs/theory/kernel-recursion.md or by the trapezium rule over the plane.
namespace widelimit::testing {

using Real = long double;

/// Of two Gaussian numbers. `determinant` is pq - c^2, exactly 0 where they are perfectly correlated.
struct NaiveGaussian {
  Real p, q, c, determinant;
};

/// E[phi(u) phi(v)] and E[phi'(u) phi'(v)].
struct DualValue {
  Real value, derivative;
};

/// Variances that the trapezium rule has too few nodes for.
struct BeyondNaive : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Of an activation's layer in a network file. Throws BeyondNaive.
DualValue naive_dual(const nlohmann::json& layer, const NaiveGaussian& gaussian);

/// phi(x) of a layer that attention may use for its weights.
Real naive_function(const nlohmann::json& layer, Real x);

/// Whether the NTK's factor or the value itself has an infinite slope at perfect correlation.
bool has_kink(const nlohmann::json& layer);

}  // namespace widelimit::testing
