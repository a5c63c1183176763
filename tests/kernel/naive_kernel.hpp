#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/network/shape.hpp"

/// The kernels straight from their formulas: whole d x d' matrices, loops over all positions, long double,
/// driven by the network file's fields. Shares nothing with the engine; slow, for small networks only.
namespace widelimit::testing {

using Real = long double;
using RealMatrix = Matrix<Real>;

/// Nngp and ntk of a pair of inputs at some layer.
struct NaivePair {
  RealMatrix k;
  RealMatrix t;
  bool same_input;
};

/// A group of channels with the pairs (x, x), (x, x'), (x', x').
struct NaiveGroup {
  Real share;
  NaivePair left, cross, right;
};

struct NaiveState {
  Shape shape;
  std::vector<NaiveGroup> groups;  ///< One, except behind a concatenation.
};

class NaiveKernel {
 public:
  /// Raw inputs [d, C] of the shape.
  NaiveKernel(const Network& network, Shape shape);

  /// {nngp, ntk} of two inputs; `same_input` if they are one and the same.
  [[nodiscard]] std::pair<Real, Real> operator()(const RealMatrix& left, const RealMatrix& right,
                                                 bool same_input) const;

 private:
  nlohmann::json layers_;
  Shape shape_;
};

}  // namespace widelimit::testing
