// The places of a pair's kept nodes, against the lives of all nodes step by step.
#include "kernel/backends/cpu/planes/store_places.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/vector_padding.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// The nodes whose values a step takes from stores, and the node that it leaves there.
std::set<NodeId> nodes_read(const Program& program, const Step& step) {
  if (const auto* pair = std::get_if<PairStep>(&step)) return {program.graph.nodes[pair->node].inputs[0]};
  const auto* plane = std::get_if<PlaneStep>(&step);
  if (plane == nullptr) return {};
  std::set<NodeId> nodes;
  for (const Instruction& instruction : plane->chain.instructions) {
    const auto& inputs = program.graph.nodes[instruction.node].inputs;
    if (instruction.loads) nodes.insert(instruction.node);
    // Local and circular convolutions read what lies in their input's store.
    if (!instruction.loads && instruction.inputs.empty()) nodes.insert(inputs.begin(), inputs.end());
  }
  return nodes;
}

NodeId node_written(const Step& step) {
  if (const auto* plane = std::get_if<PlaneStep>(&step)) return plane->target;
  if (const auto* pair = std::get_if<PairStep>(&step)) return pair->node;
  return std::get<InputStep>(step).node;
}

/// From the step that writes a node to the last one that reads it.
struct Life {
  NodeId node;
  std::size_t first;
  std::size_t last;
  Index begin;
  Index end;
};

std::vector<Life> lives_of(const Program& program, const StorePlaces& places) {
  std::vector<Life> lives;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const NodeId node = node_written(program.steps[s]);
    if (!program.kept[node] || places.layouts[node].size() == 0) continue;
    std::size_t last = s;
    for (std::size_t reader = s; reader < program.steps.size(); ++reader)
      if (nodes_read(program, program.steps[reader]).contains(node)) last = reader;
    const Index kernels = places.keeps_ntk[node] ? 2 : 1;
    lives.push_back({node, s, last, places.begin[node],
                     places.begin[node] + kernels * padded(places.layouts[node].size())});
  }
  return lives;
}

/// No two nodes that live at one time share a place.
void check_places(const Program& program, const StorePlaces& places) {
  const std::vector<Life> lives = lives_of(program, places);
  CHECK(!lives.empty());
  for (const Life& life : lives) {
    CHECK(life.begin >= 0);
    CHECK(life.begin % row_padding == 0);
    CHECK(life.end <= places.size);
    for (const Life& other : lives) {
      const bool at_one_time = life.first <= other.last && other.first <= life.last;
      if (&life != &other && at_one_time) CHECK((life.end <= other.begin || other.end <= life.begin));
    }
  }
}

std::string blocks(int count) {
  std::string layers = R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "dense"})";
  for (int block = 0; block < count; ++block)
    layers +=
        R"(, {"layer": "sum", "branches": [{"layers": []}, {"layers": [{"layer": "attention", "scaling": "inverse_width"}]}]},
                 {"layer": "layer_norm"})";
  return layers + R"(, {"layer": "relu"}, {"layer": "global_average_pool"}, {"layer": "dense"}])";
}

const char* const pooled_branches = R"([
    {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"},
    {"layer": "sum", "branches": [
        {"layers": []},
        {"layers": [{"layer": "average_pool", "window": [3, 3], "strides": [1, 1], "padding": "same"},
                    {"layer": "dense"}]}]},
    {"layer": "dense"}, {"layer": "relu"}, {"layer": "average_pool", "window": [2, 2]}, {"layer": "conv", "filter": [3, 3]},
    {"layer": "relu"}, {"layer": "global_average_pool"}, {"layer": "dense"}])";
const char* const local_layers = R"([
    {"layer": "local_conv", "filter": [3, 3]}, {"layer": "relu"},
    {"layer": "local_conv", "filter": [2, 2], "strides": [2, 2]}, {"layer": "relu"}, {"layer": "flatten"},
    {"layer": "dense"}])";

}  // namespace

TEST_CASE("kept nodes that live at one time have places of their own") {
  for (const char* layers : {pooled_branches, local_layers}) {
    const EngineProgram engine(layers, {6, 8}, 2);
    check_places(engine.program, engine.pair.stores);
    check_places(engine.program, place_stores(engine.program, engine.pair.geometry, Kernel::nngp_only));
  }
  const EngineProgram engine(blocks(3), {9}, 2);
  check_places(engine.program, engine.pair.stores);
}

TEST_CASE("a place is used again once its node is read for the last time: blocks need the room of few") {
  const EngineProgram two(blocks(2), {9}, 2), six(blocks(6), {9}, 2);
  CHECK(six.pair.stores.size == two.pair.stores.size);
  // All are of one size, so that what lives at one time fills the store.
  const std::vector<Life> lives = lives_of(six.program, six.pair.stores);
  Index most = 0;
  for (std::size_t s = 0; s < six.program.steps.size(); ++s) {
    Index living = 0;
    for (const Life& life : lives) living += life.first <= s && s <= life.last ? life.end - life.begin : 0;
    most = std::max(most, living);
  }
  CHECK(six.pair.stores.size == most);
  CHECK(lives.size() > lives_of(two.program, two.pair.stores).size() + 3);
}

TEST_CASE("half the room without an ntk; that of an input is not kept, unless a pair stage reads it") {
  const EngineProgram engine(pooled_branches, {6, 8}, 2);
  const StorePlaces nngp = place_stores(engine.program, engine.pair.geometry, Kernel::nngp_only);
  CHECK(2 * nngp.size == engine.pair.stores.size);
  CHECK(std::none_of(nngp.keeps_ntk.begin(), nngp.keeps_ntk.end(), [](bool keeps) { return keeps; }));
  const auto keeps_ntk_of_input = [](const EngineProgram& of) {
    return of.pair.stores.keeps_ntk[0] && of.program.kept[0] &&
           std::holds_alternative<InputNode>(of.program.graph.nodes[0].operation);
  };
  const EngineProgram local(local_layers, {6, 8}, 2);
  REQUIRE(local.program.kept[0]);
  CHECK(!keeps_ntk_of_input(local));
  const EngineProgram attention(
      R"([{"layer": "attention", "scaling": "inverse_width"}, {"layer": "relu"}, {"layer": "global_average_pool"}, {"layer": "dense"}])",
      {9}, 2);
  REQUIRE(attention.program.kept[0]);
  CHECK(keeps_ntk_of_input(attention));
}

TEST_CASE("the room of matrices is what pair stages read and write") {
  const EngineProgram engine(blocks(1), {9}, 2);
  const StorePlaces& places = engine.pair.stores;
  Index matrices = 0;
  for (const Life& life : lives_of(engine.program, places)) {
    const bool is_read =
        std::any_of(engine.program.steps.begin(), engine.program.steps.end(), [&](const Step& step) {
          const auto* pair = std::get_if<PairStep>(&step);
          return pair != nullptr && engine.pair.input_of(pair->node) == life.node;
        });
    if (is_read || places.layouts[life.node].is_matrix()) matrices += life.end - life.begin;
  }
  CHECK(matrices > 0);
  CHECK(places.matrix_size == matrices);
}
