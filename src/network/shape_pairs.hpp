#pragma once

#include "widelimit/network/shape.hpp"

namespace widelimit {

/// An additional interface of stages that take two inputs alone but not always as a pair, for instance if encodings
/// reach less far than the distances between them.
class ShapePairCheck {
 public:
  virtual ~ShapePairCheck() = default;

  /// Throws ArgumentError, saying what was expected, unless inputs of these shapes can be a pair. Each shape alone
  /// has passed the stage's own check. Called for all pairs of different shapes of the batches before anything is
  /// computed.
  virtual void check_pair(const Shape& left, const Shape& right) const = 0;
};

/// Checks a pair at any stage. Stages without the interface take all pairs.
template <typename Stage>
void check_shape_pair(const Stage& stage, const Shape& left, const Shape& right) {
  if (const auto* check = dynamic_cast<const ShapePairCheck*>(&stage)) check->check_pair(left, right);
}

}  // namespace widelimit
