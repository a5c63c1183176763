#pragma once

#include <vector>

#include "kernel/plan/program.hpp"

namespace widelimit {

/// Follows the variances of an input through the instructions of a chain, and finds where rounding leaves none of them
/// above 0 although exact arithmetic would leave some.
template <typename Scalar>
class VanishingCheck {
 public:
  /// Called after every instruction that was evaluated, in order. Throws NumericalError.
  void note(std::size_t number, const Instruction& instruction, const Operation& operation,
            Positive positive);

 private:
  [[nodiscard]] bool must_stay_positive(const Instruction& instruction, const Operation& operation) const;

  std::vector<Positive> positive_;  ///< [instruction]
};

}  // namespace widelimit
