// What is kept of an input: every node's numbers are where no other's are, as many as it needs.
#include "kernel/backends/cpu/planes/input_state.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/inputs/features.hpp"
#include "kernel/vector_padding.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// The first node of a kind.
template <typename Operation>
NodeId first_node(const Graph& graph) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (std::holds_alternative<Operation>(graph.nodes[id].operation)) return id;
  FAIL("no such node");
  return 0;
}

/// Arrays and own numbers of all nodes follow each other, those of several numbers on boundaries of vectors.
void check_no_overlap(const StateLayout& layout) {
  Index end = 0;
  for (std::size_t node = 0; node < layout.offset.size(); ++node) {
    CHECK(layout.offset[node] >= end);
    if (layout.arrays[node] > 0 && layout.positions[node] > 1) {
      CHECK(layout.positions[node] % row_padding == 0);
      CHECK(layout.offset[node] % row_padding == 0);
    }
    CHECK(layout.extra[node] == layout.offset[node] + layout.arrays[node] * layout.positions[node]);
    end = layout.extra[node];  // and own numbers after it
  }
  CHECK(layout.size >= end);
  CHECK(layout.size % row_padding == 0);
}

}  // namespace

TEST_CASE("state of an image: features of every channel, and the arrays of row stages, guards included") {
  const EngineProgram engine(R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"},
                                 {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"},
                                 {"layer": "global_average_pool"}, {"layer": "dense"}])",
                             {5, 6}, 3);
  const StateLayout& layout = engine.state;
  check_no_overlap(layout);
  const Graph& graph = engine.program.graph;
  for (NodeId node = 0; node < graph.nodes.size(); ++node) {
    const auto* row = std::get_if<RowNode>(&graph.nodes[node].operation);
    const bool is_input = std::holds_alternative<InputNode>(graph.nodes[node].operation);
    CHECK(layout.arrays[node] == (is_input         ? 3
                                  : row != nullptr ? static_cast<Index>(row->stage->auxiliary_count())
                                                   : 0));
    if (layout.arrays[node] == 0) continue;
    // A convolution of 3 x 3 reads one position further, so that a guard follows every row, and the rows.
    CHECK(layout.planes[node].extent == Index3{1, 5, 6});
    CHECK(layout.planes[node].stride[1] == 7);
    CHECK(layout.positions[node] == padded(layout.planes[node].length));
  }
}

TEST_CASE("state of a sequence before attention: variances and what the stage keeps, without guards") {
  const EngineProgram engine(R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"},
                                 {"layer": "attention", "scaling": "inverse_width"}, {"layer": "relu"},
                                 {"layer": "global_average_pool"}, {"layer": "dense"}])",
                             {9}, 2);
  const StateLayout& layout = engine.state;
  check_no_overlap(layout);
  const NodeId attention = first_node<PairNode>(engine.program.graph);
  const auto& stage = *std::get<PairNode>(engine.program.graph.nodes[attention].operation).stage;
  CHECK(layout.arrays[attention] == 1);
  CHECK(layout.positions[attention] == row_padding);
  CHECK(layout.planes[attention].length == 9);
  const Index own = layout.offset[attention + 1] - layout.extra[attention];
  CHECK(padded(own) == padded(static_cast<Index>(stage.state_size({9}))));
}

TEST_CASE("state of a vector: its channels in one array, and its variance after them") {
  const EngineProgram engine(R"([{"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"}])", {}, 20);
  const StateLayout& layout = engine.state;
  check_no_overlap(layout);
  const NodeId input = first_node<InputNode>(engine.program.graph);
  CHECK(layout.arrays[input] == 1);
  CHECK(layout.positions[input] == padded(20));
  CHECK(layout.extra[input] == layout.offset[input] + padded(20));
  const NodeId row = first_node<RowNode>(engine.program.graph);
  CHECK(layout.positions[row] == 1);
  CHECK(layout.offset[row] == layout.extra[input] + 1);
}

TEST_CASE("states of a block follow each other, whatever their shapes") {
  const char* const layers = R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"},
                                 {"layer": "global_average_pool"}, {"layer": "dense"}])";
  const EngineProgram first(layers, {9}, 2), second(layers, {4}, 2);
  StateBlock<double> block({&first.state, &second.state, &first.state}, 7);
  CHECK(block.begin() == 7);
  CHECK(block.end() == 10);
  for (Index i = 7; i < 10; ++i) {
    CHECK(&block[i].layout() == (i == 8 ? &second.state : &first.state));
    CHECK(reinterpret_cast<std::uintptr_t>(block[i].array(0, 0)) % 64 == 0);
    std::fill_n(block[i].array(0, 0), block[i].layout().size, static_cast<double>(i));
  }
  CHECK(block[8].array(0, 0) == block[7].array(0, 0) + first.state.size);
  for (Index i = 7; i < 10; ++i) {
    const InputState<double>& state = block[i];
    const Index size = state.layout().size;
    CHECK(std::count(state.array(0, 0), state.array(0, 0) + size, static_cast<double>(i)) == size);
    for (NodeId node = 0; node < state.layout().offset.size(); ++node)
      for (Index k = 0; k < state.layout().arrays[node]; ++k)
        CHECK(state.array(node, k) ==
              state.array(0, 0) + state.layout().offset[node] + k * state.layout().positions[node]);
  }
}
