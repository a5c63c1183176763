#include "propagation/block_sequence.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/propagation/repeated_block.hpp"
#include "widelimit/propagation/sampled_block.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;
using widelimit::testing::error_message;

namespace {

const Matrix<double> start{{1, 0.4, 0.1}, {0.4, 1.5, -0.2}, {0.1, -0.2, 0.8}};

Layer skip_and(double skip, double scale, Layers branch) {
  return layers::sum({{skip, {}}, {scale, std::move(branch)}});
}

/// A block whose attention sees its tokens by 1/width, so that nothing is sampled.
Network block(double skip, double scale, double variance) {
  return Network({skip_and(skip, scale, {layers::rms_norm(), layers::attention()}),
                  skip_and(skip, scale,
                           {layers::rms_norm(), layers::dense({.weight_variance = variance}), layers::tanh(),
                            layers::dense({.weight_variance = variance})})});
}

/// Factors of branches fall as those of stable initialisations do, variances rise.
std::vector<Network> schedule() {
  std::vector<Network> blocks;
  for (int l = 1; l <= 3; ++l) blocks.push_back(block(1 - 0.05 * l, 0.8 / std::sqrt(l), 1 + 0.5 * l));
  return blocks;
}

}  // namespace

TEST_CASE("blocks one after another: equal ones are a block that is repeated, to the last bit") {
  const Network one = block(0.9, 0.6, 1.5);
  const std::vector<Network> list(4, one);
  const auto repeated = propagate(one, start, 4), listed = propagate(list, start);
  REQUIRE(listed.size() == 5);
  for (std::size_t l = 0; l < listed.size(); ++l) {
    CHECK(listed[l].gram == repeated[l].gram);
    CHECK(listed[l].log_gradient.value == repeated[l].log_gradient.value);
  }
  const auto gradients = layer_gradients(one, start, 4), each = layer_gradients(list, start);
  REQUIRE(each.size() == gradients.size());
  for (std::size_t k = 0; k < each.size(); ++k) {
    CHECK(each[k].path == gradients[k].path);
    CHECK(each[k].parameter == gradients[k].parameter);
    for (std::size_t l = 0; l < 4; ++l) CHECK(each[k].blocks[l].value == gradients[k].blocks[l].value);
  }
  const BlockExponents ours = block_exponents(list, 5, 0.7),
                       theirs = block_exponents(one, 5, 4, std::optional<double>(0.7));
  CHECK(ours.angle.value == theirs.angle.value);
  CHECK(ours.gradient.value == theirs.gradient.value);
}

TEST_CASE("blocks one after another: each acts on what the ones before it left") {
  const std::vector<Network> blocks = schedule();
  const auto whole = propagate(blocks, start);
  Matrix<double> tokens = start;
  for (std::size_t l = 0; l < blocks.size(); ++l) {
    tokens = propagate(blocks[l], tokens, 1).back().gram;
    CHECK((whole[l + 1].gram - tokens).norm() < 1e-12 * tokens.norm());
  }
  // From equal tokens means over the depth are those of the blocks one by one, each from the norm before it.
  double norm = 1, angle = 0, gradient = 0;
  for (const Network& one : blocks) {
    const BlockExponents step = block_exponents(one, 3, 1, std::optional<double>(norm));
    norm *= std::exp(step.norm.value);
    angle += step.angle.value / 3;
    gradient += step.gradient.value / 3;
  }
  const BlockExponents all = block_exponents(blocks, 3, 1);
  CHECK(all.norm.value * 3 == Approx(std::log(norm)).epsilon(1e-12));
  CHECK(all.angle.value == Approx(angle).epsilon(1e-10));
  // Attention mixes tokens: gradients of the whole are not the product of those of equal tokens' blocks.
  CHECK(all.gradient.value != Approx(gradient).epsilon(1e-6));
  CHECK_FALSE(all.at_fixed_point);
}

TEST_CASE("blocks one after another: tokens that are alike take the short way") {
  const std::vector<Network> blocks = schedule();
  Matrix<double> alike = Matrix<double>::Constant(4, 4, 0.3);
  alike.diagonal().setConstant(1.2);
  CHECK(BlockSequence::of(blocks).of_two(4).has_value());
  // A start that differs by less than matters runs token by token.
  Matrix<double> nearly = alike;
  nearly(0, 0) *= 1 + 1e-13;
  const auto few = propagate(blocks, alike), all = propagate(blocks, nearly);
  for (std::size_t l = 0; l < few.size(); ++l) {
    CHECK((few[l].gram - all[l].gram).norm() < 1e-11 * all[l].gram.norm());
    CHECK(few[l].log_gradient.value == Approx(all[l].log_gradient.value).epsilon(1e-10));
  }
}

TEST_CASE("blocks one after another: a branch of factor 0 keeps its layers in the list") {
  std::vector<Network> blocks = schedule();
  blocks.back() = block(1, 0, 1);
  const auto gradients = layer_gradients(blocks, start), before = layer_gradients(schedule(), start);
  REQUIRE(gradients.size() == before.size());
  for (const LayerGradients& layer : gradients) {
    CHECK(layer.blocks.back().value == 0);
    // Tied scores over the width stand still, so that queries and keys have no gradient in any block.
    CHECK((layer.blocks.front().value > 0) == (layer.parameter != "query and key"));
  }
}

TEST_CASE(
    "blocks one after another: sampled networks of growing width have the limit's tokens and gradients") {
  std::vector<Network> blocks;
  for (int l = 1; l <= 3; ++l)
    blocks.push_back(Network({skip_and(1, 1 / std::sqrt(l),
                                       {layers::rms_norm(), layers::dense({.weight_variance = 1.0 + l}),
                                        layers::relu(), layers::dense()})}));
  const auto theory = propagate(blocks, start);
  const auto gradients = layer_gradients(blocks, start);
  for (const Index width : {64, 256}) {
    CAPTURE(width);
    const SampledBlock sampled = sample_block(blocks, start, {.width = width, .networks = 64, .seed = 5});
    const auto agrees = [&](const numerics::Estimate& limit, const numerics::Estimate& networks) {
      return std::abs(limit.value - networks.value) <
             4 * networks.standard_error + 3.0 / static_cast<double>(width) * std::abs(limit.value);
    };
    for (std::size_t l = 0; l <= 3; ++l) {
      CHECK(agrees(theory[l].squared_norm, sampled.tokens[l].squared_norm));
      CHECK(agrees(theory[l].cosine, sampled.tokens[l].cosine));
    }
    REQUIRE(sampled.gradients.size() == gradients.size());
    for (std::size_t k = 0; k < gradients.size(); ++k)
      for (std::size_t l = 0; l < 3; ++l)
        CHECK(agrees(gradients[k].blocks[l], sampled.gradients[k].blocks[l]));
  }
}

TEST_CASE("blocks one after another: errors say which block it is") {
  std::vector<Network> blocks = schedule();
  const auto error_of = [](const auto& compute) {
    return error_message<ArgumentError>([&] { static_cast<void>(compute()); });
  };
  CHECK(error_of([] { return propagate(std::vector<Network>{}, start); }) ==
        "propagate: blocks: expected one block at least, got none");
  CHECK(error_of([&] { return block_exponents(blocks, 3, 0); }).find("start_norm") != std::string::npos);
  blocks[1] = Network({layers::dense(), layers::relu()});
  CHECK(error_of([&] {
          return layer_gradients(blocks, start);
        }).find("layer_gradients: blocks[1]: expected layers of the same kinds") == 0);
  CHECK(error_of([&] { return sample_block(blocks, start); }).find("sample_block: blocks[1]:") == 0);
  const std::vector<Network> biased{Network({layers::dense()}),
                                    Network({layers::dense({.bias_variance = 1})})};
  CHECK(error_of([&] {
          return sample_block(biased, start, {.width = 8});
        }).find("sample_block: blocks[1]: expected 64 parameters") == 0);
}
