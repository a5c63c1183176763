#pragma once

#include <doctest/doctest.h>

namespace widelimit::testing {

/// Compares a derivative that a backward pass found with the central difference of loss() in `number`. update() renews
/// what depends on the number. Both are as before in the end.
template <typename Loss, typename Update>
void check_slope(double found, double& number, const Loss& loss, const Update& update) {
  constexpr double step = 1e-5;
  const double value = number;
  const auto at = [&](double changed) {
    number = changed;
    update();
    return loss();
  };
  const double slope = (at(value + step) - at(value - step)) / (2 * step);
  static_cast<void>(at(value));
  CHECK(found == doctest::Approx(slope).epsilon(1e-7).scale(1));
}

}  // namespace widelimit::testing
