#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "kernel/backends/cpu/planes/plane.hpp"
#include "network/graph.hpp"
#include "numerics/rows/linear_rows.hpp"

/// Operations that act on every entry alone and read nothing of the inputs, forward and backward: the same for planes
/// and for rows of pairs. Everywhere `source(k)` is the k-th of `count` planes before the operation.
namespace widelimit {

template <typename Node>
concept EntrywiseOperation = std::is_same_v<Node, SumNode> || std::is_same_v<Node, ProductNode>;

template <typename Scalar, typename Source>
void evaluate_entries(const SumNode& sum, const Source& source, std::size_t /*count*/, std::size_t size,
                      const Plane<Scalar>& target) {
  sum_planes(source, sum.factors, size, target);
}

template <typename Scalar, typename Source>
void evaluate_entries(const ProductNode& product, const Source& source, std::size_t count, std::size_t size,
                      const Plane<Scalar>& target) {
  multiply_planes(source, count, product.factor, size, target);
}

/// target += factor * source, of both kernels.
template <typename Scalar>
void add_times(const Plane<Scalar>& source, double factor, std::size_t size, const Plane<Scalar>& target) {
  const auto& rows = numerics::linear_rows<Scalar>();
  rows.add(source.nngp, static_cast<Scalar>(factor), target.nngp, size);
  if (target.ntk != nullptr) rows.add(source.ntk, static_cast<Scalar>(factor), target.ntk, size);
}

/// Adds to the adjoint of the k-th plane what the adjoint after the operation gives.
template <typename Scalar, typename Source>
void add_entry_adjoint(const SumNode& sum, const Source& /*source*/, std::size_t /*count*/, std::size_t k,
                       const Plane<Scalar>& after, std::size_t size, const Plane<Scalar>& adjoint) {
  add_times(after, sum.factors[k], size, adjoint);
}

/// With K' = f prod_i K_i and T' = f sum_i T_i prod_{j != i} K_j (docs/theory/kernel-recursion.md, section 2.3),
/// K_k-bar = K'-bar f prod_{i != k} K_i + T'-bar f sum_{i != k} T_i prod_{j != i, k} K_j, and T_k-bar = T'-bar f
/// prod_{i != k} K_i. Dividing by K_k would be shorter, but fails where it is 0.
template <typename Scalar, typename Source>
void add_entry_adjoint(const ProductNode& product, const Source& source, std::size_t count, std::size_t k,
                       const Plane<Scalar>& after, std::size_t size, const Plane<Scalar>& adjoint) {
  for (std::size_t n = 0; n < size; ++n) {
    // `others` is the product of all factors but the k-th; `change` is its NTK by the product rule.
    Scalar others = static_cast<Scalar>(product.factor), change = 0;
    for (std::size_t other = 0; other < count; ++other) {
      if (other == k) continue;
      const Plane<Scalar> factor = source(other);
      if (after.ntk != nullptr) change = change * factor.nngp[n] + others * factor.ntk[n];
      others *= factor.nngp[n];
    }
    adjoint.nngp[n] += after.nngp[n] * others;
    if (after.ntk == nullptr) continue;
    adjoint.nngp[n] += after.ntk[n] * change;
    adjoint.ntk[n] += after.ntk[n] * others;
  }
}

/// Calls body(number, values, divisor) for all numbers of an operation with the result `result`: the derivative of L
/// with respect to a number is the sum over <values, the adjoint after the operation> divided by `divisor`.
template <typename Scalar, typename Source, typename Body>
void for_each_number(const SumNode& sum, const Source& source, const Plane<Scalar>& /*result*/,
                     const Body& body) {
  for (std::size_t k = 0; k < sum.factors.size(); ++k) body(k, source(k), 1.0);
}

template <typename Scalar, typename Source, typename Body>
void for_each_number(const ProductNode& product, const Source& /*source*/, const Plane<Scalar>& result,
                     const Body& body) {
  body(std::size_t{0}, result, product.factor);
}

/// What a row stage reads of the two inputs of every entry: auxiliary arrays in the order of the entries, and the
/// variances.
template <typename Scalar>
struct PackedArrays {
  std::vector<const Scalar*> left;
  std::vector<const Scalar*> right;
  const Scalar* left_variance;
  const Scalar* right_variance;

  /// Each side has its auxiliary arrays one after the other and the variances last, `size` numbers each.
  PackedArrays(const Scalar* from_left, const Scalar* from_right, std::size_t auxiliaries, std::size_t size)
      : left_variance{from_left + auxiliaries * size}, right_variance{from_right + auxiliaries * size} {
    for (std::size_t k = 0; k < auxiliaries; ++k) {
      left.push_back(from_left + k * size);
      right.push_back(from_right + k * size);
    }
  }
};

}  // namespace widelimit
