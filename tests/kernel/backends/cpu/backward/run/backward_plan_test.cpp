// What the backward pass of a network is planned to do.
#include "kernel/backends/cpu/backward/run/backward_plan.hpp"

#include <doctest/doctest.h>

#include "kernel/backends/cpu/backward/plan/graph_scalars.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::backward_plan_test {
namespace {

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": )" + layers + "}");
}

const std::string images =
    R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "flatten"}, {"layer": "dense"}])";

TEST_CASE("BackwardPlan: geometries of all pairs of shapes, and records of all shapes") {
  const NamedShapes left{{Shape{4, 4}, "a"}, {Shape{5, 4}, "b"}},
      right{{Shape{5, 4}, "c"}, {Shape{3, 3}, "d"}};
  const Network network = network_of(
      R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "global_average_pool"}])");
  const BackwardPlan plan = make_backward_plan(network, {left, right, 3, InputMasks::absent}, true);
  CHECK(plan.pairs.size() == 4);
  CHECK(plan.pairs.contains({Shape{4, 4}, Shape{3, 3}}));
  CHECK(plan.records.size() == 3);
  CHECK(plan.selves.size() == 3);
  CHECK(plan.with_ntk);
}

TEST_CASE("BackwardPlan: readouts are not pulled back, so that every layer has its scalars") {
  const NamedShapes shapes{{Shape{4, 4}, "x"}};
  const BackwardInputs inputs{shapes, shapes, 3, InputMasks::absent};
  // Weights and biases of the convolution and of the dense layer after the readout.
  CHECK(graph_scalars(backward_graph(network_of(images), inputs)).size() == 4);
  CHECK(graph_scalars(make_backward_plan(network_of(images), inputs, false).program.graph).size() == 4);
}

TEST_CASE("BackwardPlan: vectors are sources with a place, features with positions have none") {
  const NamedShapes vectors{{Shape{}, "x"}}, sequences{{Shape{6}, "x"}};
  const BackwardPlan of_vectors = make_backward_plan(network_of(R"([{"layer": "dense"}, {"layer": "relu"}])"),
                                                     {vectors, vectors, 5, InputMasks::absent}, true);
  REQUIRE(of_vectors.sources.size() == 1);
  CHECK(of_vectors.vector_count == 1);
  CHECK(of_vectors.vector_place(of_vectors.sources[0].node) == 0);
  const BackwardPlan of_sequences = make_backward_plan(
      network_of(R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "flatten"}])"),
      {sequences, sequences, 5, InputMasks::absent}, true);
  REQUIRE(of_sequences.sources.size() == 1);
  CHECK_FALSE(of_sequences.sources[0].vector_place);
}

TEST_CASE("BackwardPlan: small planes share blocks of many inputs, large ones of few") {
  const auto side = [](const Shape& shape) {
    const NamedShapes shapes{{shape, "x"}};
    return make_backward_plan(network_of(images), {shapes, shapes, 3, InputMasks::absent}, true).block_side;
  };
  CHECK(side({4, 4}) > side({32, 32}));
  CHECK(side({32, 32}) >= 1);
}

TEST_CASE("BackwardPlan: a layer without a backward pass is an error that names it") {
  const NamedShapes shapes{{Shape{6}, "x"}};
  CHECK_THROWS_WITH_AS(make_backward_plan(network_of(R"([{"layer": "attention", "weights": "softmax",
                                         "scaling": "inverse_sqrt_width", "samples": 16}, {"layer": "flatten"}])"),
                                          {shapes, shapes, 3, InputMasks::absent}, true),
                       doctest::Contains("layers[0]"), ArgumentError);
}

}  // namespace
}  // namespace widelimit::testing::backward_plan_test
