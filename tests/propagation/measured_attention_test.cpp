#include "widelimit/propagation/measured_attention.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;

TEST_CASE("measured attention: entropies of uniform, sharp and causal heads") {
  constexpr Index tokens = 3;
  std::vector<double> weights;
  for (Index i = 0; i < tokens; ++i)
    for (Index j = 0; j < tokens; ++j) weights.push_back(1.0 / tokens);
  for (Index i = 0; i < tokens; ++i)
    for (Index j = 0; j < tokens; ++j) weights.push_back(j == 0 ? 1 : 0);
  for (Index i = 0; i < tokens; ++i)
    for (Index j = 0; j < tokens; ++j) weights.push_back(j <= i ? 1.0 / static_cast<double>(i + 1) : 0);
  const auto heads = measured_attention(weights, 1, 3, tokens);
  REQUIRE(heads.size() == 3);
  CHECK(heads[0].entropy.value == Approx(std::log(3)));
  CHECK(heads[0].uniform.value == Approx(std::log(3)));
  CHECK(heads[0].largest_weight.value == Approx(1.0 / 3));
  CHECK(std::isnan(heads[0].entropy.standard_error));
  CHECK(heads[1].entropy.value == 0);
  CHECK(heads[1].first_weight.value == 1);
  CHECK(heads[2].entropy.value == Approx((std::log(2) + std::log(3)) / 3));
  CHECK(heads[2].first_weight.value == Approx((1 + 0.5 + 1.0 / 3) / 3));
}

TEST_CASE("measured attention: padding is left out, wherever it stands") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  // The first sequence keeps tokens 1 and 2, the second 0 and 2.
  const std::vector<bool> kept{false, true, true, true, false, true};
  const std::vector<double> weights{none, none, none, 0, 0.25, 0.75, 0, 0.5, 0.5,
                                    0.1,  0,    0.9,  5, none, 0,    1, 0,   0};
  const auto heads = measured_attention(weights, 2, 1, 3, kept);
  const auto entropy = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
  const double first = (entropy(0.25) + std::log(2)) / 2, second = entropy(0.1) / 2;
  CHECK(heads[0].entropy.value == Approx((first + second) / 2));
  CHECK(heads[0].entropy.standard_error == Approx(std::abs(first - second) / 2));
  CHECK(heads[0].uniform.value == Approx(std::log(2)));
  CHECK(heads[0].first_weight.value == Approx((0.375 + 0.55) / 2));
}

TEST_CASE("measured attention: where a sink is left out, rows are brought to 1 over what is kept") {
  // Token 0 is the sink; of token 3, padding, columns hold anything.
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<bool> kept{false, true, true, false};
  const std::vector<double> weights{1,   0,   0,   none, 0.9,  0.1,  0,    none,
                                    0.6, 0.1, 0.3, none, none, none, none, none};
  const auto heads = measured_attention(weights, 1, 1, 4, kept);
  const auto entropy = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
  CHECK(heads[0].entropy.value == Approx(entropy(0.25) / 2));
  CHECK(heads[0].first_weight.value == Approx((1 + 0.25) / 2));
  CHECK(heads[0].largest_weight.value == Approx((1 + 0.75) / 2));
  CHECK(heads[0].uniform.value == Approx(std::log(2)));
  CHECK(heads[0].kept_weight.value == Approx((0.1 + 0.4) / 2));
  CHECK(heads[0].rows_left_out == 0);
  // As much as if the sink had never been there.
  const auto alone = measured_attention(std::vector<double>{1, 0, 0.25, 0.75}, 1, 1, 2);
  CHECK(heads[0].entropy.value == Approx(alone[0].entropy.value));
  CHECK(alone[0].kept_weight.value == 1);
}

TEST_CASE("measured attention: rows with nothing on what is kept have no distribution") {
  const std::vector<bool> kept{false, true, true};
  const std::vector<double> weights{1, 0, 0, 1, 0, 0, 0.5, 0.25, 0.25, /**/ 1, 0, 0, 1, 0, 0, 1, 0, 0};
  const auto heads = measured_attention(weights, 1, 2, 3, kept);
  CHECK(heads[0].rows_left_out == 1);
  CHECK(heads[0].entropy.value == Approx(std::log(2)));
  CHECK(heads[0].kept_weight.value == Approx(0.25));
  CHECK(heads[1].rows_left_out == 2);
  CHECK(std::isnan(heads[1].entropy.value));
  CHECK(heads[1].kept_weight.value == 0);
}

TEST_CASE("measured attention: what is no attention is named") {
  const auto message = [](const std::vector<double>& weights, Index tokens,
                          const std::vector<bool>& kept = {}) {
    return testing::error_message<ArgumentError>(
        [&] { return measured_attention(weights, 1, 1, tokens, kept).size(); });
  };
  CHECK(message({1, 0, 0}, 2) ==
        "expected weights [sequences, heads, tokens, tokens], got 3 numbers for 1 x 1 x 2 x 2");
  CHECK(message({1, 0, -0.5, 1.5}, 2) ==
        "token 1 of head 0 in sequence 0: expected weights of at least 0, got -0.5 for key 0");
  CHECK(message({1, 0, 0.5, 0.4}, 2)
            .starts_with("token 1 of head 0 in sequence 0: expected weights that sum to 1, got 0.9"));
  // Weights on what is left out count, unless they are none.
  CHECK(message({0.5, 0.3, 0, 1}, 2, {true, false}).find("got 0.8") != std::string::npos);
  CHECK(message({0.5, 7, 0, 1}, 2, {true, false}).find("got 0.5") != std::string::npos);
  CHECK(message({1, 0, 0, 1}, 2, {false, false}) ==
        "sequence 0 keeps none of its tokens; leave the sequence out");
  CHECK(message({1, 0, 0, 1}, 2, {true}) == "expected a mask of 1 x 2 tokens, got 1 entries");
}
