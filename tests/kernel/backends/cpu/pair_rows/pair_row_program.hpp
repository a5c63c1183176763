#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "kernel/backends/cpu/pair_rows/pair_row_executor.hpp"
#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/loop_stages.hpp"

/// Programs without positions, and inputs for them: vectors of one channel.
namespace widelimit::testing {

/// A program of some operations on vectors, each after the earlier nodes that it names; the last is the output.
struct PairRowProgram {
  Program program;
  StateLayout state;

  explicit PairRowProgram(const std::vector<std::pair<Operation, std::vector<NodeId>>>& operations)
      : program{scheduled(operations)},
        state{make_state_layout(program, node_shapes(program.graph, {}), {}, 1)} {}
  PairRowProgram(const PairRowProgram&) = delete;
  PairRowProgram& operator=(const PairRowProgram&) = delete;

 private:
  static Program scheduled(const std::vector<std::pair<Operation, std::vector<NodeId>>>& operations) {
    Graph graph;
    for (const auto& [operation, inputs] : operations) graph.nodes.push_back({operation, inputs, "layer"});
    graph.output = graph.nodes.size() - 1;
    const std::vector<std::vector<Shape>> shapes{node_shapes(graph, {})};
    return make_program(std::move(graph), shapes, {});
  }
};

inline AffineNode dense_node(double weight_variance, double bias_variance) {
  return {Window{}, weight_variance, bias_variance};
}

/// The states of some vectors: recorded by an executor for the values that are given, which stand for the covariance of
/// each with itself.
class PairRowStates {
 public:
  PairRowStates(const PairRowProgram& points, const std::vector<double>& variances)
      : block_(std::vector<const StateLayout*>(variances.size(), &points.state), 0) {
    PairRowExecutor<double> executor(points.program, points.state, Kernel::nngp_only, 1, 1);
    for (std::size_t i = 0; i < variances.size(); ++i) {
      executor.source(0).nngp[0] = variances[i];
      executor.record_state(block_[static_cast<Index>(i)]);
      inputs_.push_back(&block_[static_cast<Index>(i)]);
    }
  }

  [[nodiscard]] const std::vector<const InputState<double>*>& inputs() const { return inputs_; }
  [[nodiscard]] const InputState<double>& operator[](std::size_t i) const { return *inputs_[i]; }
  [[nodiscard]] std::vector<const InputState<double>*> some(std::size_t begin, std::size_t end) const {
    return {inputs_.begin() + static_cast<std::ptrdiff_t>(begin),
            inputs_.begin() + static_cast<std::ptrdiff_t>(end)};
  }

 private:
  StateBlock<double> block_;
  std::vector<const InputState<double>*> inputs_;
};

}  // namespace widelimit::testing
