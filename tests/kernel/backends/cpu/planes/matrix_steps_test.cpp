// Steps that need a pair's covariance as a whole, against loops over the pairs of positions.
#include "kernel/backends/cpu/planes/matrix_steps.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/backends/cpu/planes/pair_tile.hpp"
#include "kernel/loop_stages.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// An input and a pair stage after it, which is read by a readout: its covariances are matrices.
Graph stage_graph(const std::string& path = "layer") {
  Graph graph;
  graph.nodes = {{InputNode{}, {}, "input"},
                 {PairNode{std::make_shared<LoopPairStage>()}, {0}, path},
                 {RowNode{std::make_shared<LoopRowStage>()}, {1}, "row"},
                 {ReadoutNode{ReadoutKind::average}, {2}, "readout"}};
  graph.output = 3;
  return graph;
}

constexpr Index stage_channels = 3;

/// The graph scheduled with its inputs as matrices, for pairs of inputs of these lengths.
struct StageProgram {
  StageProgram(Index left, Index right, Purpose purpose)
      : left_shape{left},
        right_shape{right},
        program{make_program(
            stage_graph(), {node_shapes(stage_graph(), left_shape), node_shapes(stage_graph(), right_shape)},
            {0})},
        pair(program, {purpose, purpose == Purpose::state ? Kernel::nngp_only : Kernel::with_ntk, false},
             left_shape, right_shape),
        left_state{
            make_state_layout(program, node_shapes(program.graph, left_shape), left_shape, stage_channels)},
        right_state{make_state_layout(program, node_shapes(program.graph, right_shape), right_shape,
                                      stage_channels)} {}

  template <typename Kind>
  [[nodiscard]] const Kind& step() const {
    for (const Step& candidate : program.steps)
      if (const auto* found = std::get_if<Kind>(&candidate)) return *found;
    FAIL("no such step");
    throw std::logic_error("no such step");
  }

  Shape left_shape, right_shape;
  Program program;
  PairLayout pair;
  StateLayout left_state, right_state;
};

/// Random numbers in every array of every input of a side.
void fill_states(StateBlock<double>& block, std::mt19937& generator) {
  for (Index i = block.begin(); i < block.end(); ++i) {
    const StateLayout& layout = block[i].layout();
    const std::vector<double> numbers = normal_numbers(layout.size, generator);
    std::copy(numbers.begin(), numbers.end(), block[i].array(0, 0));
  }
}

}  // namespace

TEST_CASE("products of inputs are the means over stage_channels, of every pair of positions") {
  const StageProgram stage(6, 4, Purpose::result);
  PairTile tile(stage.pair, stage.left_state, stage.right_state, 2, 3);
  std::mt19937 generator(3);
  fill_states(tile.left(), generator);
  fill_states(tile.right(), generator);
  execute(tile.run(), stage.step<InputStep>());
  const StoreLayout& layout = tile.run().stores.layout(0);
  for (Index pair = 0; pair < tile.tile().pair_count(); ++pair) {
    const Plane<double> product = tile.run().stores.at(0, pair);
    for (Index a = 0; a < 6; ++a)
      for (Index b = 0; b < 4; ++b) {
        double sum = 0;
        for (Index c = 0; c < stage_channels; ++c)
          sum += tile.tile().left_of(pair).array(0, c)[a] * tile.tile().right_of(pair).array(0, c)[b];
        const Index entry = layout.entry({0, 0, a}, {0, 0, b});
        CHECK(product.nngp[entry] == doctest::Approx(sum / stage_channels).epsilon(1e-14).scale(1));
        if (product.ntk != nullptr) CHECK(product.ntk[entry] == 0);
      }
  }
}

TEST_CASE("a pair stage sees the covariance of a pair, and what is kept of both inputs") {
  const StageProgram stage(5, 4, Purpose::result);
  PairTile tile(stage.pair, stage.left_state, stage.right_state, 2, 2);
  std::mt19937 generator(4);
  fill_states(tile.left(), generator);
  fill_states(tile.right(), generator);
  tile.tile().pairs[1].same_input = true;
  execute(tile.run(), stage.step<InputStep>());
  const StoreLayout &before = tile.run().stores.layout(0), &behind = tile.run().stores.layout(1);
  std::vector<std::vector<double>> inputs;
  for (Index pair = 0; pair < 4; ++pair) {
    const double* nngp = tile.run().stores.at(0, pair).nngp;
    inputs.emplace_back(nngp, nngp + before.size());
  }
  execute(tile.run(), stage.step<PairStep>());
  for (Index pair = 0; pair < 4; ++pair) {
    const Plane<double> result = tile.run().stores.at(1, pair);
    const InputState<double>&left = tile.tile().left_of(pair), &right = tile.tile().right_of(pair);
    for (Index a = 0; a < 5; ++a)
      for (Index b = 0; b < 4; ++b) {
        const Index3 i{0, 0, a}, j{0, 0, b};
        const double expected =
            inputs[static_cast<std::size_t>(pair)][static_cast<std::size_t>(before.entry(i, j))] +
            left.extra(1)[a] * right.extra(1)[b] + left.array(1, 0)[a] - right.array(1, 0)[b] +
            (pair == 1 ? 1 : 0);
        CHECK(result.nngp[behind.entry(i, j)] == doctest::Approx(expected).epsilon(1e-14).scale(1));
        CHECK(result.ntk[behind.entry(i, j)] == 0);
      }
  }
}

TEST_CASE("recording keeps an input's variances, and what the stage makes of them") {
  const StageProgram stage(5, 5, Purpose::state);
  PairTile tile(stage.pair, stage.left_state, stage.left_state, 1, 1);
  std::mt19937 generator(5);
  fill_states(tile.left(), generator);
  InputState<double>& state = tile.left()[0];
  tile.tile().right = tile.tile().left;
  tile.tile().pairs = {{0, 0, true}};
  tile.run().recorded = &state;
  execute(tile.run(), stage.step<InputStep>());
  execute(tile.run(), stage.step<PairStep>());
  for (Index a = 0; a < 5; ++a) {
    double variance = 0;
    for (Index c = 0; c < stage_channels; ++c) variance += std::pow(state.array(0, c)[a], 2) / stage_channels;
    CHECK(state.array(1, 0)[a] == doctest::Approx(variance).epsilon(1e-14));
    CHECK(state.extra(1)[a] == 2 * state.array(1, 0)[a]);
  }
  state.array(0, 0)[2] = HUGE_VAL;
  execute(tile.run(), stage.step<InputStep>());
  CHECK_THROWS_WITH_AS(execute(tile.run(), stage.step<PairStep>()),
                       doctest::Contains("layer: the variance of position 2 is not finite"), NumericalError);
}

TEST_CASE("a stop is heeded between pairs") {
  std::stop_source source;
  source.request_stop();
  const std::stop_token token = source.get_token();
  const StageProgram stage(5, 4, Purpose::result);
  PairTile tile(stage.pair, stage.left_state, stage.right_state, 1, 1);
  tile.run().stop = StopRequest(token);
  CHECK_THROWS_AS(execute(tile.run(), stage.step<InputStep>()), Cancelled);
  CHECK_THROWS_AS(execute(tile.run(), stage.step<PairStep>()), Cancelled);
}
