#pragma once

#include <memory>

#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::numerics {

/// What activations also are whose dual has code of its own that only the CPU can read: devices take it from the tables
/// of the same function by quadrature.
class ByQuadrature {
 public:
  virtual ~ByQuadrature() = default;
  [[nodiscard]] virtual std::shared_ptr<const QuadratureActivation> by_quadrature() const = 0;
};

}  // namespace widelimit::numerics
