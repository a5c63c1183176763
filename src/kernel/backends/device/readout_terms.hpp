#pragma once

#include <cstddef>
#include <vector>

#include "kernel/readouts/weights_form.hpp"

namespace widelimit {

/// A sum over the entries of a pair with weights W, as a part of a readout that is pulled back. Places are those among
/// the numbers of an input's state of the stage, in the order of pulled_state_size().
struct ReadoutTerm {
  /// What is summed: K and T before the layers, 1, or encodings R between positions.
  enum class Of { covariance, ones, positions };
  Of of;
  /// The sum of K, 1 or R counts so often in the readout's NNGP and in its NTK, and that of T in its NTK.
  double in_nngp, in_ntk, ntk_in_ntk;
  /// W is u u'^T (outer), the diagonal of p_a p'_a, or one of the products B^T B' (full).
  WeightsForm form;
  Index vector = 0;         ///< The place of u or p.
  std::size_t product = 0;  ///< The number of the product.
  /// Places of r, if the product's entries are multiplied by r_a r'_b.
  std::vector<Index> scales = {};
  const SandwichStage* positions = nullptr;  ///< The stage that R belongs to.
};

/// What a readout that is pulled back is for a pair: a sum of terms.
struct ReadoutTerms {
  std::vector<Index> products;  ///< The place of every B, [d, d].
  std::vector<ReadoutTerm> terms;
};

/// The terms for inputs of d positions; all d have the same terms, at other places.
ReadoutTerms readout_terms(const PulledTree& tree, Index d);

}  // namespace widelimit
