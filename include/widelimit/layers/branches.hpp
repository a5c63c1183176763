#pragma once

#include <vector>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::layers {

/// A branch of a sum or product: its output is multiplied by `scale`, any finite number, its covariances by scale^2.
/// Without layers it is the skip connection.
struct Branch {
  double scale = 1;
  Layers layers = {};
};

/// A branch of a concatenation: `share` of the channels, in (0, 1].
struct ConcatBranch {
  double share;
  Layers layers = {};
};

/// Sum of branches with independent weights: K' = sum_i scale_i^2 K_i, T' = sum_i scale_i^2 T_i. All but one branch
/// must end in fresh weights, followed by linear layers or norms only, and all must leave equal shapes (else a
/// NetworkError when the network is applied). ArgumentError for no branch or a scale that is not finite.
///
/// Source  docs/theory/kernel-recursion.md, section 2.3, for all of this header.
[[nodiscard]] Layer sum(std::vector<Branch> branches);

/// Elementwise product of independent branches, K' = prod_i scale_i^2 K_i and T' = prod_i scale_i^2 sum_i T_i
/// prod_{j != i} K_j. All but one branch must have fresh weights, whatever follows them: second moments of independent
/// factors multiply. Errors as of sum().
[[nodiscard]] Layer product(std::vector<Branch> branches);

/// Channels of the branches side by side: K' = sum_i share_i K_i, T' likewise. The shares must sum to 1
/// (ArgumentError); a nonlinearity after it acts on each group of channels.
[[nodiscard]] Layer concat(std::vector<ConcatBranch> branches);

/// Positions of the branches one after the other along a spatial axis (0 the first): the blocks of K' and T' are those
/// of the branches, and 0 between different branches, whose weights are independent. Conditions and errors are those of
/// sum(), but sizes may differ along the axis. All inputs need one shape (NetworkError).
[[nodiscard]] Layer concat_positions(Index axis, std::vector<Layers> branches);

/// The layers `times` times over, with new weights each time. times >= 1 (ArgumentError).
[[nodiscard]] Layer repeat(Index times, Layers layers);

}  // namespace widelimit::layers
