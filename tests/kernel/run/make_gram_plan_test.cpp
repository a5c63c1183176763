// What is decided before anything of a Gram matrix is computed.
#include "kernel/run/make_gram_plan.hpp"

#include <doctest/doctest.h>

#include "kernel/backends/cpu/planes/workspace.hpp"
#include "kernel/readouts/pull_back.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::gram_plan_test {
namespace {

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": )" + layers + "}");
}

constexpr std::size_t in_float = sizeof(float), in_double = sizeof(double);

GramPlan plan_of(const std::string& layers, const Shape& shape, const GramSize& size,
                 const GramOptions& options = {}, std::size_t scalar_bytes = in_double) {
  return make_plan(network_of(layers), {{shape, "input 0 of x"}}, size, scalar_bytes, options);
}

GramSize symmetric(Index channels, Index inputs) {
  return {channels, inputs, inputs, inputs * (inputs + 1) / 2};
}

const std::string dense = R"([{"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"}])";
const std::string pooled =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"}])";
const std::string pooled_images =
    R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "global_average_pool"}])";
const std::string flat_images =
    R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "flatten"}])";

TEST_CASE("GramPlan: tiles of vectors depend on the number of inputs alone") {
  for (const Index inputs : {1, 300, 2047})
    CHECK(plan_of(dense, {}, symmetric(5, inputs)).tile_sides.at({}) == 256);
  for (const Index inputs : {2048, 60000}) {
    const GramPlan plan = plan_of(dense, {}, symmetric(5, inputs), {.threads = 7, .tile_size = 3});
    CHECK(plan.vectors_only);
    CHECK(plan.tile_sides.at({}) == largest_vector_tile_side);
    CHECK(plan.largest_tile_side == largest_vector_tile_side);
  }
}

TEST_CASE("GramPlan: tiles of images fit the caches, and leave work for every thread") {
  Index before = 16;
  for (const Shape& shape : {Shape{4, 4}, Shape{16, 16}, Shape{32, 32}, Shape{64, 64}}) {
    const GramPlan plan = plan_of(pooled_images, shape, symmetric(3, 1000), {.threads = 1});
    const Index side = plan.tile_sides.at(shape);
    CHECK_FALSE(plan.vectors_only);
    CHECK(side >= 1);
    CHECK(side <= before);
    before = side;
    const PairLayout pair(plan.program, plan.demand(Purpose::result), shape, shape);
    if (side > 1)
      CHECK(in_double * static_cast<std::size_t>(
                            WorkspaceLayout(pair, plan.state_layouts.at(shape), {side, side}).total()) <=
            std::size_t{8} << 20);
  }
  for (const int threads : {2, 8, 32})
    for (const Index inputs : {4, 20, 100}) {
      const GramSize size = symmetric(3, inputs);
      const GramPlan plan = plan_of(flat_images, {4, 4}, size, {.threads = threads});
      const Index side = plan.tile_sides.at({4, 4});
      if (side > 1) CHECK(size.pairs / (side * std::min(side, inputs)) >= 3 * threads);
    }
  CHECK(plan_of(pooled_images, {4, 4}, symmetric(3, 1000), {.tile_size = 5}).tile_sides.at({4, 4}) == 5);
}

TEST_CASE("GramPlan: a tile's side must not be negative") {
  CHECK(error_message<ArgumentError>([] {
          return plan_of(pooled_images, {4, 4}, symmetric(3, 5), {.tile_size = -2});
        }) == "gram: tile_size must not be negative, got -2");
}

/// Whether the input of a network is multiplied as a matrix.
bool is_matrix(const std::string& layers, const Shape& shape, Index channels) {
  const Graph graph = lower_with_readouts(network_of(layers), shape, Replicate{});
  const std::set<NodeId> inputs = matrix_inputs(graph, node_shapes(graph, shape), channels);
  for (const NodeId id : inputs) CHECK(std::holds_alternative<InputNode>(graph.nodes[id].operation));
  return !inputs.empty();
}

TEST_CASE("matrix_inputs: inputs of many channels, if most offsets are wanted, and those of attention") {
  CHECK(is_matrix(pooled, {9}, 16));
  CHECK_FALSE(is_matrix(pooled, {9}, 15));
  CHECK(is_matrix(pooled_images, {5, 5}, 32));
  CHECK_FALSE(is_matrix(pooled_images, {5, 5}, 31));
  // One offset of 25.
  CHECK_FALSE(
      is_matrix(R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "flatten"}])", {13}, 512));
  CHECK(is_matrix(
      R"([{"layer": "attention", "scaling": "inverse_width", "weights": "softmax"}, {"layer": "relu"},
                      {"layer": "global_average_pool"}])",
      {9}, 1));
  CHECK_FALSE(is_matrix(dense, {}, 512));
}

TEST_CASE("GramPlan: vectors of inputs of different shape are rows of one matrix") {
  const GramPlan plan =
      make_plan(network_of(R"([{"layer": "global_average_pool"}, {"layer": "dense"}, {"layer": "relu"}])"),
                {{Shape{5}, "a"}, {Shape{70}, "b"}}, symmetric(3, 10), in_double, {});
  CHECK(plan.vectors_only);
  CHECK(plan.state_layouts.at({5}).size == plan.state_layouts.at({70}).size);
}

TEST_CASE("GramPlan: float results of deep networks of vectors, and of graphs, are rounded from double") {
  const auto deep = [](int layers) {
    std::string text = "[";
    for (int i = 0; i < layers; ++i) text += R"({"layer": "dense"}, {"layer": "relu"}, )";
    return text + R"({"layer": "dense"}])";
  };
  CHECK_FALSE(plan_of(deep(10), {}, symmetric(5, 10), {}, in_float).in_double);
  CHECK(plan_of(deep(40), {}, symmetric(5, 10), {}, in_float).in_double);
  CHECK(
      plan_of(
          R"([{"layer": "aggregate"}, {"layer": "dense"}, {"layer": "relu"}, {"layer": "global_average_pool"}])",
          {6}, symmetric(5, 10), {}, in_float)
          .in_double);
  CHECK_FALSE(plan_of(pooled, {6}, symmetric(5, 10), {}, in_float).in_double);
}

TEST_CASE("GramPlan: constants that float cannot hold are errors in float alone, and name the layer") {
  const std::string tiny =
      R"([{"layer": "dense"}, {"layer": "relu"}, {"layer": "dense", "weight_variance": 1e-60}])";
  CHECK_NOTHROW(plan_of(tiny, {}, symmetric(5, 10)));
  const std::string message =
      error_message<NumericalError>([&] { return plan_of(tiny, {}, symmetric(5, 10), {}, in_float); });
  CHECK(message.find("layers[2] (dense): the weight variance is 1e-60") != std::string::npos);
}

/// The error of a network on inputs of these shapes.
std::string shape_error(const std::string& layers, const NamedShapes& shapes) {
  return error_message<NetworkError>(
      [&] { return make_plan(network_of(layers), shapes, symmetric(3, 5), in_double, {}); });
}

TEST_CASE("GramPlan: a shape that the network cannot take is an error that names the input that has it") {
  const std::string valid =
      R"([{"layer": "conv", "filter": [3], "padding": "valid"}, {"layer": "relu"}, {"layer": "global_average_pool"}])";
  CHECK(
      shape_error(valid, {{Shape{5}, "input 0 of x"}, {Shape{2}, "input 4 of x"}}) ==
      "input 4 of x (2): layers[0] (conv): expected at least 3 positions along axis 0 for the window, got 2");
  // The largest input, whose shape the others do not have, is the one that does not fit.
  const std::string mapped =
      R"([{"layer": "positions_map", "matrix": [[1, 2, 3], [4, 5, 6]]}, {"layer": "global_average_pool"}])";
  CHECK(shape_error(mapped, {{Shape{3}, "input 0 of x"}, {Shape{7}, "input 2 of x"}}) ==
        "input 2 of x (7): layers[0] (positions_map): expected inputs of 3 positions (columns of the "
        "matrix), got 7 "
        "(one axis of size 7)");
}

TEST_CASE("GramPlan: an error that all inputs have in common names the layer first, and their shape") {
  const std::string images =
      "expected inputs with 1 spatial axis (one window size an axis), got 2 axes of sizes ";
  CHECK(shape_error(pooled, {{Shape{4, 4}, "input 0 of x"}}) == "layers[0] (conv): " + images + "4x4");
  CHECK(shape_error(pooled, {{Shape{3, 3}, "input 0 of x"}, {Shape{4, 4}, "input 1 of x"}}) ==
        "layers[0] (conv): " + images + "4x4");
}

TEST_CASE("GramPlan: sampled networks run once a sample, sixteen times at most") {
  const auto replicates = [](int samples) {
    return sampled_replicates(lower_with_readouts(
        network_of(
            R"([{"layer": "attention", "scaling": "inverse_sqrt_width", "weights": "softmax", "samples": )" +
            std::to_string(samples) + R"(}, {"layer": "flatten"}])"),
        {4}, Replicate{}));
  };
  CHECK(replicates(3) == 3);
  CHECK(replicates(16) == 16);
  CHECK(replicates(1000) == 16);
  CHECK(sampled_replicates(lower_with_readouts(network_of(dense), {}, Replicate{})) == 1);
}

TEST_CASE("GramPlan: states need the NTK where leading outputs of long inputs are kept, and nowhere else") {
  const std::string attention =
      R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"},
          {"layer": "attention", "scaling": "inverse_width", "weights": "softmax"}, {"layer": "flatten"}])";
  const auto kernel_of_states = [&](const std::string& layers, const Shape& shape) {
    return plan_of(layers, shape, symmetric(3, 5), {.kernels = Kernels::nngp}).demand(Purpose::state).kernel;
  };
  CHECK(kernel_of_states(attention, {300}) == Kernel::with_ntk);
  CHECK(kernel_of_states(attention, {30}) == Kernel::nngp_only);
  CHECK(kernel_of_states(pooled, {300}) == Kernel::nngp_only);
  CHECK(
      plan_of(attention, {300}, symmetric(3, 5), {.kernels = Kernels::nngp}).demand(Purpose::result).kernel ==
      Kernel::nngp_only);
}

}  // namespace
}  // namespace widelimit::testing::gram_plan_test
