#include "widelimit/propagation/transformer.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/propagation/repeated_block.hpp"

using namespace widelimit;
using namespace widelimit::propagation;

TEST_CASE("transformer: its block as layers has the exponents of the closed forms") {
  for (const char* activation : {"tanh", "erf", "linear"})
    for (const double skip : {0.0, 0.8, 1.0}) {
      CAPTURE(activation);
      CAPTURE(skip);
      Transformer transformer{.parameters = {.tokens = 6, .sigma_w = 1.5, .mlp_depth = 1}};
      transformer.activation = activation;
      transformer.parameters.activation = activation_named(activation);
      transformer.depth = 4;
      if (skip > 0) transformer.parameters.skip_A = transformer.parameters.skip_M = skip;
      const BlockExponents found =
          block_exponents(transformer.block(), 6, 4, skip == 1 ? std::optional(1.0) : std::nullopt);
      const ExponentOptions options = transformer.exponent_options();
      CHECK(found.angle.value ==
            doctest::Approx(std::log1p(exponent(Exponent::angle, transformer.parameters, options)))
                .epsilon(1e-8)
                .scale(1));
      CHECK(found.gradient.value ==
            doctest::Approx(exponent(Exponent::gradient, transformer.parameters, options))
                .epsilon(1e-8)
                .scale(1));
    }
}

TEST_CASE("transformer: where tokens start") {
  const BlockTask task{.tokens = 4, .q0 = 2.0, .c0 = 0.25};
  const Matrix<double> gram = task.start();
  CHECK(gram(2, 2) == 2);
  CHECK(gram(0, 3) == 0.5);
  CHECK(BlockTask{.tokens = 1}.start()(0, 0) == 1);
  const auto refused = [](const BlockTask& wrong) {
    return testing::error_message<ArgumentError>([&] { return wrong.start().size(); });
  };
  CHECK(refused({.tokens = 4, .c0 = -0.5}) == "expected a number from -0.333333 to 1 for 4 tokens, got -0.5");
  CHECK(refused({.tokens = 1, .c0 = 0.5}) == "one token has no cosine; leave it out");
  const Matrix<double> halves = GroupStart{.q0 = 1, .p_inside = 0.6, .p_across = 0.2}.gram(5);
  CHECK((halves(0, 1) == 0.6 && halves(0, 2) == 0.2 && halves(2, 4) == 0.6 && halves(3, 3) == 1));
  // Without a norm tokens are equal, at the norm that a block keeps.
  const Parameters parameters;
  CHECK(CosineStart{}.norm(parameters) == equal_tokens_norm(parameters));
  CHECK(CosineStart{.q0 = 3.0}.norm(parameters) == 3);
}
