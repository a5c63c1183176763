#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/backends/cpu/planes/pair_layout.hpp"
#include "kernel/readouts/pull_back.hpp"
#include "widelimit/network/network_file.hpp"

/// What tests of the plane engine share: a network as the engine sees it, and numbers.
namespace widelimit::testing {

/// The program of a network for inputs of one shape; pairs and states as they lie.
struct EngineProgram {
  Program program;
  PairLayout pair;
  StateLayout state;

  /// `layers`: the network's layers in JSON.
  EngineProgram(const std::string& layers, const Shape& shape, Index channels)
      : EngineProgram(layers, shape, shape, channels) {}
  /// For pairs of inputs of different shape, the larger one first; the state is that of the left input.
  EngineProgram(const std::string& layers, const Shape& left, const Shape& right, Index channels)
      : program{scheduled(layers, left, right)},
        pair(program, {Purpose::result, Kernel::with_ntk, false}, left, right),
        state{make_state_layout(program, node_shapes(program.graph, left), left, channels)} {}
  EngineProgram(const EngineProgram&) = delete;
  EngineProgram& operator=(const EngineProgram&) = delete;

  [[nodiscard]] const PlaneStep& plane_step(std::size_t number) const {
    return std::get<PlaneStep>(program.steps.at(number));
  }

 private:
  static Program scheduled(const std::string& layers, const Shape& left, const Shape& right) {
    const Network network = parse_network(R"({"widelimit": 1, "layers": )" + layers + "}");
    Graph graph = lower_with_readouts(network, left, Replicate{});
    std::vector<std::vector<Shape>> shapes{node_shapes(graph, left)};
    if (right != left) shapes.push_back(node_shapes(graph, right));
    return make_program(std::move(graph), shapes, {});
  }
};

inline std::vector<double> normal_numbers(Index count, std::mt19937& generator) {
  std::normal_distribution<double> normal;
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (double& number : numbers) number = normal(generator);
  return numbers;
}

}  // namespace widelimit::testing
