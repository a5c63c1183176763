#pragma once

#include <cstddef>
#include <vector>

#include "kernel/backward/plan/graph_scalars.hpp"
#include "kernel/planes/plane.hpp"

namespace widelimit {

/// Derivatives of L by graph_scalars(), summed up in the backward pass: an operation's entries and their adjoints are
/// in the cache then. The weight variance of an AffineNode is found by division: where it is 0 the derivative is NaN.
class ScalarAdjoints {
 public:
  explicit ScalarAdjoints(const Graph& graph);

  /// Of entries that the node made: their values, and the derivatives of L by them. The ntk may be null.
  template <typename Scalar>
  void add(NodeId id, const AffineNode& affine, const Plane<Scalar>& value, const Plane<Scalar>& adjoint,
           std::size_t count);
  template <typename Scalar>
  void add(NodeId id, const ProductNode& product, const Plane<Scalar>& value, const Plane<Scalar>& adjoint,
           std::size_t count);
  /// Here the values of the k-th summand.
  template <typename Scalar>
  void add_summand(NodeId id, std::size_t k, const Plane<Scalar>& value, const Plane<Scalar>& adjoint,
                   std::size_t count);

  void add(const ScalarAdjoints& other);

  /// In the order of graph_scalars().
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  std::vector<std::size_t> first_;  ///< [node], its first number.
  std::vector<double> values_;
};

}  // namespace widelimit
