#include "widelimit/propagation/parameters.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::propagation;

namespace {

/// The message about parameters of which `change` changes one.
template <typename Change>
std::string refused(const Change& change) {
  Parameters parameters;
  change(parameters);
  return testing::error_message<ArgumentError>([&] { return require_parameters("where", parameters), 0; });
}

}  // namespace

TEST_CASE("parameters: the last gain is 1, that of the hidden matrices, or a number of its own") {
  for (const double sigma_w : {0.0, 0.5, 3.0}) {
    CHECK(OutputGain::unit().value(sigma_w) == 1);
    CHECK(OutputGain::shared().value(sigma_w) == sigma_w);
    CHECK(OutputGain::fixed(0.25).value(sigma_w) == 0.25);
  }
}

TEST_CASE("parameters: those of the paper and the ends of all ranges are accepted") {
  CHECK(refused([](Parameters&) {}) == "no error");
  CHECK(refused([](Parameters& p) { p.tokens = 2, p.mlp_depth = 1; }) == "no error");
  CHECK(refused([](Parameters& p) { p.sigma_A = p.sigma_w = 0; }) == "no error");
  CHECK(refused([](Parameters& p) { p.alpha_A = 0, p.alpha_M = 1; }) == "no error");
  CHECK(refused([](Parameters& p) { p.alpha_A = 1, p.alpha_M = 0; }) == "no error");
}

TEST_CASE("parameters: one that is out of range is named with its value") {
  CHECK(refused([](Parameters& p) { p.tokens = 1; }) == "where: tokens must be at least 2, got 1");
  CHECK(refused([](Parameters& p) { p.mlp_depth = 0; }) == "where: mlp_depth must be at least 1, got 0");
  CHECK(refused([](Parameters& p) { p.sigma_A = -1; }) ==
        "where: sigma_A must be at least 0 and finite, got -1");
  CHECK(refused([](Parameters& p) { p.sigma_w = HUGE_VAL; }) ==
        "where: sigma_w must be at least 0 and finite, got inf");
  CHECK(refused([](Parameters& p) { p.sigma_out = OutputGain::fixed(std::nan("")); }) ==
        "where: sigma_out must be at least 0 and finite, got nan");
  CHECK(refused([](Parameters& p) { p.alpha_A = 1.5; }) == "where: alpha_A must lie in [0, 1], got 1.5");
  CHECK(refused([](Parameters& p) { p.alpha_M = std::nan(""); }) ==
        "where: alpha_M must lie in [0, 1], got nan");
  CHECK(refused([](Parameters& p) {
          p.alpha_A = p.alpha_M = 0;
        }).starts_with("where: alpha_A and alpha_M must not both be 0"));
  CHECK(refused([](Parameters& p) { p.skip_A = -0.5; }) ==
        "where: skip_A must be at least 0 and finite, got -0.5");
  CHECK(refused([](Parameters& p) { p.skip_M = HUGE_VAL; }) ==
        "where: skip_M must be at least 0 and finite, got inf");
  CHECK(refused([](Parameters& p) { p.activation = nullptr; }) ==
        "where: activation must be given, got none");
}

TEST_CASE("parameters: norms have a fixed point where skip connections lose something") {
  Parameters parameters;
  CHECK(has_fixed_norm(parameters));
  parameters.skip_A = 1;
  CHECK(has_fixed_norm(parameters));
  parameters.skip_M = 1;
  CHECK_FALSE(has_fixed_norm(parameters));
  parameters.skip_A = 0.5;
  parameters.skip_M = 1.9;
  CHECK(has_fixed_norm(parameters));
  parameters.skip_M = 2.1;
  CHECK_FALSE(has_fixed_norm(parameters));
}

TEST_CASE("parameters: activations by their names") {
  const auto error = [](const char* name) {
    return testing::error_message<ArgumentError>([&] { return activation_named(name) != nullptr; });
  };
  for (const char* name : {"tanh", "erf", "relu", "gelu", "linear", "silu", "abs", "sigmoid", "softplus"})
    CHECK(error(name) == "no error");
  CHECK(error("step") ==
        "expected one of abs, cos, erf, exp, gabor, gaussian, gelu, identity, linear, rbf, relu, sigmoid, "
        "sigmoid_like, silu, sin, softplus, tanh, got 'step'");
  // What was made is kept.
  CHECK(activation_named("tanh") == activation_named("tanh"));
  CHECK(activation_named("tanh") != activation_named("erf"));
  for (const std::string& name : activation_names())
    CHECK(refused([&](Parameters& p) { p.activation = activation_named(name); }) == "no error");
}

TEST_CASE("parameters: activations that jump are refused, those with kinks are not") {
  CHECK(refused([](Parameters& p) {
          p.activation = numerics::sign();
        }).starts_with("where: activation must be continuous"));
  CHECK(refused([](Parameters& p) { p.activation = numerics::relu(); }) == "no error");
  CHECK(refused([](Parameters& p) { p.activation = numerics::abs(); }) == "no error");
}
