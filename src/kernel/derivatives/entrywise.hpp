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

/// Pointers to packed arrays.
template <typename Scalar>
struct PackedArrays {
  std::vector<const Scalar*> left;
  std::vector<const Scalar*> right;
  const Scalar* left_variance;
  const Scalar* right_variance;

  explicit PackedArrays(const TapeEntry<Scalar>& entry, std::size_t auxiliaries) {
    for (std::size_t k = 0; k < auxiliaries; ++k) {
      left.push_back(entry.left.data() + k * entry.size());
      right.push_back(entry.right.data() + k * entry.size());
    }
    left_variance = entry.left.data() + auxiliaries * entry.size();
    right_variance = entry.right.data() + auxiliaries * entry.size();
  }
};

}  // namespace widelimit
