#pragma once

#include <cstddef>
#include <vector>

#include "kernel/backends/cpu/backward/plan/graph_scalars.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"

namespace widelimit {

/// Derivatives of L with respect to graph_scalars(), summed up in the backward pass while an operation's entries and
/// their adjoints are in the cache. The derivative with respect to a weight variance, or to the factor of a product,
/// divides by that number; where it is 0 the derivative is NaN, and the caller takes differences instead.
class ScalarAdjoints {
 public:
  explicit ScalarAdjoints(const Graph& graph);

  /// Adds the contribution of `count` entries that a convolution or dense layer made, given their values and the
  /// derivatives of L with respect to them. The ntk may be null.
  template <typename Scalar>
  void add(NodeId id, const AffineNumbers& numbers, const Plane<Scalar>& value, const Plane<Scalar>& adjoint,
           std::size_t count);
  /// The same for number k of an operation that acts on entries, as for_each_number() has it: the sum over <value,
  /// adjoint>, divided by `divisor`.
  template <typename Scalar>
  void add(NodeId id, std::size_t k, double divisor, const Plane<Scalar>& value, const Plane<Scalar>& adjoint,
           std::size_t count);

  void add(const ScalarAdjoints& other);

  /// The derivatives, in the order of graph_scalars().
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  std::vector<std::size_t> first_;  ///< [node], its first number.
  std::vector<double> values_;
};

}  // namespace widelimit
