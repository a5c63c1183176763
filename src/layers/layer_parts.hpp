#pragma once

#include <optional>
#include <vector>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

/// The layers that a layer is made of, for those that build something else of them (finite networks). Each
/// function returns nothing for another sort of layer.
namespace widelimit::layers {

/// The ways of joining branches. `concat` joins channels, `concat_positions` positions.
enum class BranchKind { sum, product, concat, concat_positions };

/// `weight` is a branch's scale, or its share in a concatenation.
struct WeightedBranch {
  double weight;
  Layers layers;
};

struct BranchParts {
  BranchKind kind;
  std::vector<WeightedBranch> branches;
  Index axis = 0;  ///< The axis along which positions are concatenated.
};

struct RepeatParts {
  Index times;
  Layers layers;
};

std::optional<BranchParts> branch_parts(const Layer& layer);
std::optional<RepeatParts> repeat_parts(const Layer& layer);

}  // namespace widelimit::layers
