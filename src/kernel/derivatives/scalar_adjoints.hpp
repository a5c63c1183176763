#pragma once

#include <cstddef>
#include <vector>

#include "kernel/planes/plane.hpp"
#include "network/graph.hpp"

namespace widelimit {

/// The numbers of a graph's linear operations, in the order of its nodes: of an AffineNode its weight and bias
/// variance, of a SumNode its factors, of a ProductNode its factor. What
/// other operations are made of stays inside them.
[[nodiscard]] std::vector<double> graph_scalars(const Graph& graph);

/// Whether an operation has no numbers but these, which is all that graph_scalars() can tell of it.
[[nodiscard]] bool has_scalars_only(const Operation& operation);

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
