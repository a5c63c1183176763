#pragma once

#include "widelimit/network/shape.hpp"

namespace widelimit {

/// Another face of a stage that cannot take all inputs as a pair that it takes alone.
class ShapePairCheck {
 public:
  virtual ~ShapePairCheck() = default;

  /// Throws ArgumentError, saying what was expected, for inputs of these shapes at the stage, which it takes alone but
  /// not paired. Called for all pairs of different shapes of the batches before anything is computed.
  virtual void check_pair(const Shape& left, const Shape& right) const = 0;
};

/// For any stage; those without the check take all pairs.
template <typename Stage>
void check_shape_pair(const Stage& stage, const Shape& left, const Shape& right) {
  if (const auto* check = dynamic_cast<const ShapePairCheck*>(&stage)) check->check_pair(left, right);
}

}  // namespace widelimit
