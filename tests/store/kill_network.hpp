#pragma once

#include "support/random_inputs.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network.hpp"

/// The store that kill_test.cpp kills the writers of.
namespace widelimit::testing {

inline Network kill_network() {
  using namespace layers;
  return Network({conv({{3, 3}, {}, Padding::same, 1.5, 0.1}), relu(),
                  conv({{3, 3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
}

inline Inputs<float> kill_inputs(Index count) {
  xt::xarray<float> values = random_inputs(5, {count, 8, 8, 3});
  return Inputs<float>(std::move(values));
}

}  // namespace widelimit::testing
