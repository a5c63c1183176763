#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernel/derivatives/tape_entry.hpp"
#include "network/graph.hpp"
#include "numerics/rows/linear_rows.hpp"

/// Operations that act on every entry alone, forth and back: the same for planes and for rows of pairs. Ways back add to
/// the adjoints of the inputs.
namespace widelimit {

/// target[i] += factor * source[i]
template <typename Scalar>
void add_times(const GuardedRow<Scalar>& source, double factor, GuardedRow<Scalar>& target) {
  if (!source.empty())
    numerics::linear_rows<Scalar>().add(source.data(), static_cast<Scalar>(factor), target.data(),
                                        source.size());
}

template <typename Scalar>
using TapeInputs = std::vector<TapeEntry<Scalar>*>;

template <typename Scalar>
void sum_forth(const SumNode& sum, const TapeInputs<Scalar>& inputs, TapeEntry<Scalar>& to) {
  to.nngp.fill(0);
  to.ntk.fill(0);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    add_times(inputs[k]->nngp, sum.factors[k], to.nngp);
    add_times(inputs[k]->ntk, sum.factors[k], to.ntk);
  }
}

template <typename Scalar>
void sum_back(const SumNode& sum, const TapeInputs<Scalar>& inputs, const TapeEntry<Scalar>& to) {
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    add_times(to.nngp_adjoint, sum.factors[k], inputs[k]->nngp_adjoint);
    add_times(to.ntk_adjoint, sum.factors[k], inputs[k]->ntk_adjoint);
  }
}

template <typename Scalar>
void product_forth(const ProductNode& product, const TapeInputs<Scalar>& inputs, TapeEntry<Scalar>& to) {
  to.nngp.fill(static_cast<Scalar>(product.factor));
  to.ntk.fill(0);
  for (const TapeEntry<Scalar>* from : inputs) {
    // d(KL) = dK L + K dL, one factor after the other.
    for (std::size_t n = 0; n < to.ntk.size(); ++n)
      to.ntk[n] = to.ntk[n] * from->nngp[n] + to.nngp[n] * from->ntk[n];
    for (std::size_t n = 0; n < to.nngp.size(); ++n) to.nngp[n] *= from->nngp[n];
  }
}

template <typename Scalar>
void product_back(const ProductNode& product, const TapeInputs<Scalar>& inputs, const TapeEntry<Scalar>& to) {
  const auto factor = static_cast<Scalar>(product.factor);
  const bool with_ntk = !to.ntk.empty();
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (std::size_t n = 0; n < to.size(); ++n) {
      // The product of all other factors, and its change with their NTKs.
      Scalar others = factor, change = 0;
      for (std::size_t other = 0; other < inputs.size(); ++other) {
        if (other == k) continue;
        const TapeEntry<Scalar>& entry = *inputs[other];
        if (with_ntk) change = change * entry.nngp[n] + others * entry.ntk[n];
        others *= entry.nngp[n];
      }
      inputs[k]->nngp_adjoint[n] += to.nngp_adjoint[n] * others;
      if (!with_ntk) continue;
      inputs[k]->nngp_adjoint[n] += to.ntk_adjoint[n] * change;
      inputs[k]->ntk_adjoint[n] += to.ntk_adjoint[n] * others;
    }
}

/// What a row stage reads of the two inputs of every entry: arrays [auxiliaries] of the entries' order, and the variances.
template <typename Scalar>
struct PackedArrays {
  std::vector<const Scalar*> left;
  std::vector<const Scalar*> right;
  const Scalar* left_variance;
  const Scalar* right_variance;

  /// `from_left`, `from_right`: the auxiliary arrays one behind the other, the variances last, `size` numbers each.
  PackedArrays(const Scalar* from_left, const Scalar* from_right, std::size_t auxiliaries, std::size_t size)
      : left_variance{from_left + auxiliaries * size}, right_variance{from_right + auxiliaries * size} {
    for (std::size_t k = 0; k < auxiliaries; ++k) {
      left.push_back(from_left + k * size);
      right.push_back(from_right + k * size);
    }
  }
};

}  // namespace widelimit
