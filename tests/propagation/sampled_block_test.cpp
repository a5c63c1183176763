#include "widelimit/propagation/sampled_block.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stop_token>
#include <vector>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using widelimit::testing::error_message;

namespace {

const Matrix<double> tokens{{1, 0.4, 0.1}, {0.4, 1.5, -0.2}, {0.1, -0.2, 0.8}};

Network sampled_network() {
  return Network({layers::dense({.weight_variance = 1.5}), layers::relu(),
                  layers::dense({.weight_variance = 0.8, .bias_variance = 0.1})});
}

std::string refusal(const SampledBlockOptions& options, const Matrix<double>& start = tokens,
                    Index depth = 1) {
  return error_message<ArgumentError>([&] { return sample_block(sampled_network(), start, depth, options); });
}

bool equal(const SampledBlock& a, const SampledBlock& b) {
  for (std::size_t l = 0; l < a.tokens.size(); ++l)
    if (a.tokens[l].gram != b.tokens[l].gram) return false;
  for (std::size_t k = 0; k < a.gradients.size(); ++k)
    for (std::size_t l = 0; l < a.gradients[k].blocks.size(); ++l)
      if (a.gradients[k].blocks[l].value != b.gradients[k].blocks[l].value) return false;
  return true;
}

}  // namespace

TEST_CASE("sampled block: means agree with the recursion of the limit within their errors and 1/width") {
  constexpr Index depth = 2;
  const auto theory = propagate(sampled_network(), tokens, depth);
  const auto gradients = layer_gradients(sampled_network(), tokens, depth);
  const SampledBlock sampled =
      sample_block(sampled_network(), tokens, depth, {.width = 128, .networks = 48, .seed = 3});
  const auto agrees = [](const numerics::Estimate& limit, const numerics::Estimate& networks) {
    return std::abs(limit.value - networks.value) <
           4 * networks.standard_error + 0.03 * std::abs(limit.value);
  };
  REQUIRE(sampled.tokens.size() == depth + 1);
  for (std::size_t l = 0; l <= depth; ++l) {
    CAPTURE(l);
    CHECK(agrees(theory[l].squared_norm, sampled.tokens[l].squared_norm));
    CHECK(agrees(theory[l].cosine, sampled.tokens[l].cosine));
    CHECK(std::isnan(sampled.tokens[l].log_gradient.value));
    CHECK(sampled.tokens[l].squared_norm.value ==
          doctest::Approx(sampled.tokens[l].gram.diagonal().mean()).epsilon(1e-12));
  }
  REQUIRE(sampled.gradients.size() == 2);
  REQUIRE(gradients.size() == 2);
  for (std::size_t k = 0; k < 2; ++k) {
    CHECK(sampled.gradients[k].path == gradients[k].path);
    CHECK(sampled.gradients[k].kind == "dense");
    for (std::size_t l = 0; l < depth; ++l)
      CHECK(agrees(gradients[k].blocks[l], sampled.gradients[k].blocks[l]));
  }
}

TEST_CASE("sampled block: numbers belong to the seed, whatever the threads; progress counts networks") {
  std::vector<std::ptrdiff_t> steps;
  RunControl run;
  run.threads = 1;
  run.progress = [&](std::ptrdiff_t done, std::ptrdiff_t all) {
    CHECK(all == 3);
    steps.push_back(done);
  };
  const SampledBlockOptions options{.width = 8, .networks = 3, .seed = 5};
  const SampledBlock once = sample_block(sampled_network(), tokens, 2, options, run);
  CHECK(steps == std::vector<std::ptrdiff_t>{1, 2, 3});
  CHECK(equal(once, sample_block(sampled_network(), tokens, 2, options, {.threads = 2})));
  CHECK_FALSE(
      equal(once, sample_block(sampled_network(), tokens, 2, {.width = 8, .networks = 3, .seed = 99})));
}

TEST_CASE("sampled block: a single token has no cosine") {
  const SampledBlock sampled =
      sample_block(sampled_network(), Matrix<double>{{2.0}}, 1, {.width = 16, .networks = 2});
  CHECK(std::isnan(sampled.tokens[1].cosine.value));
  CHECK(sampled.tokens[1].squared_norm.value > 0);
}

TEST_CASE("sampled block: what cannot be drawn is named") {
  CHECK(refusal({.width = 0}) == "sample_block: width must be at least 1, got 0");
  CHECK(refusal({.networks = 1}) == "sample_block: networks must be at least 2, got 1");
  CHECK(refusal({}, tokens, 0) == "sample_block: depth must be at least 1, got 0");
  CHECK(refusal({}, Matrix<double>::Zero(2, 3)) == "sample_block: gram must be square, got 2 x 3");
  CHECK(refusal({}, Matrix<double>{{1.0, 2.0}, {2.0, 1.0}}) ==
        "sample_block: the cosine of tokens 0 and 1 must lie in [-1, 1], got 2");
  CHECK(refusal({}, Matrix<double>{{1, 0.9, -0.9}, {0.9, 1, 0.9}, {-0.9, 0.9, 1}})
            .starts_with("sample_block: gram must be positive semidefinite"));
  CHECK(error_message<NetworkError>([] {
          return sample_block(Network({layers::dense(), layers::flatten()}), tokens, 1,
                              {.width = 4, .networks = 2});
        }) == "a block must leave as many tokens as came: expected 3 after it, got no positions");
  std::stop_source source;
  source.request_stop();
  CHECK_THROWS_AS((void)sample_block(sampled_network(), tokens, 1, {.width = 4, .networks = 2},
                                     {.stop = source.get_token()}),
                  Cancelled);
}
