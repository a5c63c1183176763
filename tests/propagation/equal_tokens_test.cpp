// Which blocks keep equal tokens equal (repeated_block.hpp), over blocks drawn from layers that do and that do not.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/propagation/block_diagram.hpp"
#include "widelimit/propagation/repeated_block.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;

namespace {

constexpr Index tokens = 5;

Network block_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers + "]}");
}

std::string residual(const std::string& layers) {
  return R"({"layer": "sum", "branches": [{"layers": []}, {"layers": [)" + layers + "]}]}";
}

/// Layers that treat all tokens alike, or average those that are.
const std::vector<std::string> keeping = {
    R"({"layer": "dense", "weight_variance": 1.3, "bias_variance": 0.1})",
    R"({"layer": "tanh"})",
    R"({"layer": "rms_norm"})",
    R"({"layer": "attention", "scaling": "inverse_width"})",
    R"({"layer": "attention", "scaling": "inverse_sqrt_width"})",
    R"({"layer": "attention", "scaling": "inverse_sqrt_width", "causal": true})",
    R"({"layer": "attention", "scaling": "inverse_sqrt_width", "positions": {"kind": "identity"}, "samples": 32})",
    R"({"layer": "conv", "filter": [3], "padding": "circular"})",
    R"({"layer": "attention", "scaling": "inverse_sqrt_width", "weights": "erf"})"};
/// Layers that part equal tokens.
const std::vector<std::string> parting = {
    R"({"layer": "dropout", "keep": 0.9})", R"({"layer": "conv", "filter": [3]})",
    R"({"layer": "attention", "scaling": "inverse_width", "positions": {"kind": "identity", "in_values": true}})",
    R"({"layer": "attention", "scaling": "inverse_sqrt_width", "weights": "erf", "causal": true})"};

Matrix<double> nearly_equal(double q, double gap) {
  Matrix<double> gram = Matrix<double>::Constant(tokens, tokens, q * (1 - gap));
  gram.diagonal().setConstant(q);
  return gram;
}

/// The mean squared distance of tokens from their mean, over their squared norm.
double contrast(const Matrix<double>& gram) {
  const auto n = static_cast<double>(gram.rows());
  return (gram.trace() - gram.sum() / n) / (n - 1) / gram.diagonal().mean();
}

/// Up to four layers, at random inside a residual branch.
std::string drawn_block(numerics::RandomStream& random, const std::vector<std::string>& layers) {
  const auto pick = [&](std::size_t count) {
    return std::min(count - 1, static_cast<std::size_t>(random.uniform() * static_cast<double>(count)));
  };
  std::string block;
  for (std::size_t k = 0, count = 1 + pick(4); k < count; ++k) {
    const std::string& layer = layers[pick(layers.size())];
    const std::string closed = layer + R"(, {"layer": "dense"})";
    block += (k == 0 ? "" : ", ") + (random.uniform() < 0.4 ? residual(closed) : layer);
  }
  return block;
}

}  // namespace

TEST_CASE("equal tokens: where they stay equal, lambda_a_log is the growth of a small gap") {
  numerics::RandomStream random(11);
  for (int draw = 0; draw < 60; ++draw) {
    const std::string layers = drawn_block(random, keeping);
    CAPTURE(layers);
    const Network block = block_of(layers);
    const double q = 0.5 + random.uniform();
    const BlockExponents found = block_exponents(block, tokens, 1, q);
    CHECK(found.no_angles.empty());
    constexpr double gap = 1e-4;
    const auto passed = propagate(block, nearly_equal(q, gap), 1);
    const double growth = std::log(contrast(passed[1].gram) / contrast(passed[0].gram));
    // Even averages leave nothing of a gap but what is of second order in it.
    if (std::isinf(found.angle.value))
      CHECK(growth < std::log(gap) + 2);
    else
      CHECK(std::abs(found.angle.value - growth) <
            0.01 * (1 + std::abs(growth)) + 5 * found.angle.standard_error);
  }
}

TEST_CASE("equal tokens: a block that parts them has no angles, and says so") {
  numerics::RandomStream random(12);
  for (const std::string& layer : parting)
    for (int draw = 0; draw < 6; ++draw) {
      const std::string before = drawn_block(random, keeping);
      const std::string layers = before + R"(, {"layer": "dense"}, )" +
                                 residual(R"({"layer": "dense"}, )" + layer + R"(, {"layer": "dense"})");
      CAPTURE(layers);
      const Network block = block_of(layers);
      const BlockExponents found = block_exponents(block, tokens, 2);
      CHECK(std::isnan(found.angle.value));
      CHECK(std::isnan(found.last_angle.value));
      CHECK(found.no_angles.starts_with("equal tokens do not stay equal"));
      CHECK_FALSE(found.at_fixed_point);
      CHECK(found.start_norm == 1);
      CHECK_FALSE(collapsed_norm(block, tokens));
      // Gradients and norms have no need of a collapsed point: they are those of the run from equal tokens.
      const auto run = propagate(block, Matrix<double>::Ones(tokens, tokens), 2);
      CHECK(found.gradient.value == Approx(run.back().log_gradient.value / 2).epsilon(1e-6).scale(1));
      CHECK(found.norm.value == Approx(std::log(run.back().squared_norm.value) / 2).epsilon(1e-6).scale(1));
    }
}

TEST_CASE("equal tokens: a line of zeros keeps away from points that have no angles") {
  const Network block = block_of(
      R"({"layer": "dense", "weight_variance": 2}, {"layer": "tanh"}, {"layer": "dropout", "keep": 0.5})");
  const BlockVariation variation(block,
                                 {{"layers[0].weight_variance", {0.5, 2, 4}}, {"layers[2].keep", {0.5, 1}}});
  const VariationRun run{4, 2, 1.0, {}};
  const auto grid = exponents_over(variation, run);
  for (const VariedExponents& point : grid)
    CHECK(point.exponents.no_angles.empty() == (point.values[1] == 1));
  for (const auto& point : zeros_over(variation, grid, ZeroOf::angle, run).points) CHECK(point[1] == 1);
}

TEST_CASE("equal tokens: layers without a slope there that part nearly equal ones have no angles") {
  for (const std::string layer : {R"({"layer": "sign"})", R"({"layer": "rectified_monomial", "degree": 0})",
                                  R"({"layer": "matern"})"}) {
    CAPTURE(layer);
    const BlockExponents found = block_exponents(block_of(R"({"layer": "dense"}, )" + layer), tokens, 3);
    CHECK(found.no_angles.starts_with("a layer has no slope at equal tokens"));
    CHECK(std::isnan(found.angle.value));
    CHECK_FALSE(std::isnan(found.gradient.standard_error));
  }
}
