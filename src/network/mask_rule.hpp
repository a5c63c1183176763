#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "widelimit/network/shape.hpp"
#include "widelimit/network/window.hpp"

/// Masks of inputs: which positions count, before a network and after each of its layers (docs/engine.md).
namespace widelimit {

/// The positions of one input at some layer.
struct PositionMask {
  Shape shape;
  std::vector<std::uint8_t> counts;  ///< 1 where a position counts, 0 where it is masked; row-major.

  /// How many count.
  [[nodiscard]] Index count() const;
};

/// All positions count.
PositionMask full_mask(const Shape& shape);

/// How an input's mask becomes the mask after some layers. Immutable.
class MaskRule {
 public:
  virtual ~MaskRule() = default;
  [[nodiscard]] virtual PositionMask behind(const PositionMask& input) const = 0;
};

using MaskRulePointer = std::shared_ptr<const MaskRule>;

/// A layer that maps positions, and masks with them.
class MaskMapping {
 public:
  virtual ~MaskMapping() = default;
  [[nodiscard]] virtual PositionMask mapped(const PositionMask& before) const = 0;
};

/// Before the first layer.
MaskRulePointer input_mask_rule();

/// After a convolution or pooling: a position is masked if the middle of its window is, position floor((size - 1) / 2)
/// of it. With stride 1 and `same` or `circular` padding masks stay as they are.
MaskRulePointer windowed_mask_rule(MaskRulePointer before, const Window& window);

/// After a map, which the rule keeps alive.
MaskRulePointer mapped_mask_rule(MaskRulePointer before, std::shared_ptr<const MaskMapping> mapping);

/// After branches: a position counts if it does in one of them.
MaskRulePointer joined_mask_rule(std::vector<MaskRulePointer> branches);

}  // namespace widelimit
