#pragma once

#include "widelimit/propagation/parameters.hpp"

namespace widelimit::propagation_test {

inline propagation::Parameters parameters_with(
    double alpha_A, double alpha_M, double sigma_w, propagation::Index tokens = 256,
    propagation::OutputGain gain = propagation::OutputGain::unit()) {
  propagation::Parameters parameters;
  parameters.alpha_A = alpha_A;
  parameters.alpha_M = alpha_M;
  parameters.sigma_w = sigma_w;
  parameters.tokens = tokens;
  parameters.sigma_out = gain;
  return parameters;
}

}  // namespace widelimit::propagation_test
