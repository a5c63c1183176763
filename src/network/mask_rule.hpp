#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "widelimit/network/shape.hpp"
#include "widelimit/network/window.hpp"

/// Masks of inputs: which positions count, before a network and after each of its layers (docs/engine.md).
namespace widelimit {

/// Which positions of one input count, at some layer.
struct PositionMask {
  Shape shape;
  std::vector<std::uint8_t> counts;  ///< 1 where a position counts, 0 where it is masked; row-major.

  /// The number of positions that count.
  [[nodiscard]] Index count() const;
};

/// A mask in which all positions count.
PositionMask full_mask(const Shape& shape);

/// How an input's mask becomes the mask behind some layers. Lowering composes rules before any input is known; the
/// engine applies them to the inputs. Immutable.
class MaskRule {
 public:
  virtual ~MaskRule() = default;
  [[nodiscard]] virtual PositionMask behind(const PositionMask& input) const = 0;
};

using MaskRulePointer = std::shared_ptr<const MaskRule>;

/// Another interface of pair stages that map positions: how they map masks.
class MaskMapping {
 public:
  virtual ~MaskMapping() = default;
  [[nodiscard]] virtual PositionMask mapped(const PositionMask& before) const = 0;
};

/// The mask of the input itself, before the first layer.
MaskRulePointer input_mask_rule();

/// The mask behind a convolution or pooling. An output position is masked if the middle of its window is, position
/// floor((size - 1) / 2) of it. With stride 1 and `same` or `circular` padding masks stay as they are, and `before`
/// itself is returned.
MaskRulePointer windowed_mask_rule(MaskRulePointer before, const Window& window);

/// The mask behind a position map, which the rule keeps alive.
MaskRulePointer mapped_mask_rule(MaskRulePointer before, std::shared_ptr<const MaskMapping> mapping);

/// The mask behind branches: a position counts if it does in one of them. Their shapes agree.
MaskRulePointer joined_mask_rule(std::vector<MaskRulePointer> branches);

}  // namespace widelimit
