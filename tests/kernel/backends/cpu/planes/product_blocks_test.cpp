// Products of blocks of inputs against plain loops over the channels.
#include "kernel/backends/cpu/planes/product_blocks.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernel/backends/cpu/planes/plane_numbers.hpp"
#include "kernel/backends/cpu/planes/random_states.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// A chain whose first instruction is an input, and a tile of random features.
class BlockCheck {
 public:
  BlockCheck(const EngineProgram& engine, Index lefts, Index rights)
      : engine_{engine},
        step_{engine.plane_step(0)},
        side_{std::max(lefts, rights)},
        node_{step_.chain.instructions.front().node},
        left_(engine.state, lefts, node_, generator_),
        right_(engine.state, rights, node_, generator_),
        tile_{left_.states(), right_.states(), {}},
        chain_{make_run()} {}

  void check() {
    REQUIRE(std::holds_alternative<InputNode>(engine_.pair.node(node_).operation));
    PlacedPlane plane;
    PlacedInstruction<double> input;
    input.plane = &plane;
    input.instruction = &step_.chain.instructions.front();
    place_arrays(input);
    ProductBlocks<double> blocks(chain_);
    const ChainGeometry& geometry = engine_.pair.geometry.chains.front();
    const bool strips = engine_.pair.geometry.uses_strips(step_.chain.root);
    for (const AxisOffsets& z : geometry.offsets[2]) {
      bool cuts = strips;
      for (const AxisOffsets& x : geometry.offsets[0])
        for (const AxisOffsets& y : geometry.offsets[1]) {
          plane.place(geometry, 0, {x, y, z}, engine_.pair.geometry.left_sizes[node_],
                      engine_.pair.geometry.right_sizes[node_]);
          input.arrays->expect_packs(input.at());
          input.arrays->place(
              input.at(), {.uses_strips = strips, .cuts_strips = cuts, .stacked = false, .right_places = 0});
          cuts = false;
          if (input.at().empty()) continue;
          blocks.begin_offset();
          check_products(blocks, input);
        }
    }
  }

 private:
  TileWork<double> make_run() {
    workspace_.carve(WorkspaceLayout(engine_.pair, engine_.state, {side_, side_}), engine_.pair.planes, true);
    return {.pair = engine_.pair,
            .size = {side_, side_},
            .workspace = workspace_,
            .stores = {engine_.pair, workspace_.part(WorkspacePart::stores)},
            .timer = timer_,
            .stop = {},
            .current = &tile_};
  }

  void place_arrays(PlacedInstruction<double>& input) {
    const PairGeometry& geometry = engine_.pair.geometry;
    const ChainGeometry& chain = geometry.chains.front();
    const Index arrays = engine_.state.arrays[node_];
    const StripLayout left(chain, 0, geometry.left_sizes[node_], Side::left),
        right(chain, 0, geometry.right_sizes[node_], Side::right);
    input.arrays.emplace(SideStates<double>{Side::left, tile_.left, node_, arrays, left},
                         SideStates<double>{Side::right, tile_.right, node_, arrays, right});
    double *packs = workspace_.part(WorkspacePart::packs), *strips = workspace_.part(WorkspacePart::strips);
    input.arrays->take_room(packs, strips, geometry.uses_strips(step_.chain.root), engine_.pair.planes,
                            {side_, side_});
  }

  /// Block by block, as pairs that stand alone follow each other.
  void check_products(ProductBlocks<double>& blocks, const PlacedInstruction<double>& input) {
    const auto lefts = static_cast<Index>(tile_.left.size()), rights = static_cast<Index>(tile_.right.size());
    for (Index left_block = 0; left_block < lefts; left_block += block_side)
      for (Index right_block = 0; right_block < rights; right_block += block_side)
        for (Index i = left_block; i < std::min(left_block + block_side, lefts); ++i)
          for (Index j = right_block; j < std::min(right_block + block_side, rights); ++j) {
            const Stack stack{i, j, j, 0, 1, false};
            const Plane<double> product = blocks.product(input, stack);
            CHECK(product.ntk == nullptr);
            check_product(product.nngp, input, i, j);
          }
  }

  /// The mean over the channels at every entry, zero in the guards.
  void check_product(const double* product, const PlacedInstruction<double>& input, Index i, Index j) const {
    const Index channels = engine_.state.arrays[node_];
    std::vector<double> expected(static_cast<std::size_t>(input.at().layout.length));
    for_each_entry(input.at(), [&](const Index3& a, const Index3& b, Index place) {
      double sum = 0;
      for (Index k = 0; k < channels; ++k)
        sum += value_at(*tile_.left[static_cast<std::size_t>(i)], node_, k, a) *
               value_at(*tile_.right[static_cast<std::size_t>(j)], node_, k, b);
      expected[static_cast<std::size_t>(place)] = sum / static_cast<double>(channels);
    });
    int wrong = 0;
    const Index end = input.arrays->are_guarded() ? input.at().layout.length : input.at().end_of_rows();
    for (Index place = 0; place < input.at().layout.length; ++place) {
      const double value = expected[static_cast<std::size_t>(place)];
      // Arrays that lie in strips or states go on after a row: what is there belongs to nobody.
      const bool is_gap = !input.arrays->are_guarded() && value == 0 && place < end;
      if (!is_gap && std::abs(product[place] - value) > 1e-12) ++wrong;
    }
    CHECK(wrong == 0);
  }

  std::mt19937 generator_{17};
  const EngineProgram& engine_;
  const PlaneStep& step_;
  Index side_;
  NodeId node_;
  RandomStates left_, right_;
  Tile<double> tile_;
  Workspace<double> workspace_;
  StepTimer timer_;
  TileWork<double> chain_;
};

const char* const products_network = R"([
    {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "global_average_pool"},
    {"layer": "dense"}])";

}  // namespace

TEST_CASE("products of whole and of cut blocks, on either side") {
  const EngineProgram engine(products_network, {7, 6}, 3);
  REQUIRE(engine.pair.geometry.chains.front().complements);
  for (const auto& [lefts, rights] : {std::pair<Index, Index>{1, 1}, {6, 6}, {7, 2}, {4, 13}})
    BlockCheck(engine, lefts, rights).check();
}

TEST_CASE("products of inputs at offset 0 only, of one channel, of sequences and of volumes") {
  BlockCheck(EngineProgram(R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "flatten"},
                               {"layer": "dense"}])",
                           {7, 6}, 1),
             7, 8)
      .check();
  BlockCheck(EngineProgram(R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"},
                               {"layer": "global_average_pool"}, {"layer": "dense"}])",
                           {9}, 4),
             3, 7)
      .check();
  BlockCheck(EngineProgram(R"([{"layer": "conv", "filter": [2, 1, 3]}, {"layer": "relu"},
                               {"layer": "global_average_pool"}, {"layer": "dense"}])",
                           {2, 3, 4}, 2),
             7, 3)
      .check();
}

TEST_CASE(
    "blocks are made of a chain's only input, whose ntk nobody writes, and never while states are recorded") {
  const auto find = [](const char* layers, bool skips_ntk, Purpose purpose) {
    const EngineProgram engine(layers, {6, 6}, 2);
    const PairLayout pair(engine.program, {purpose, Kernel::with_ntk, false}, {6, 6}, {6, 6});
    Workspace<double> workspace;
    workspace.carve(WorkspaceLayout(pair, engine.state, {1, 1}), pair.planes, true);
    StepTimer timer;
    const TileWork<double> chain{.pair = pair,
                                 .size = {1, 1},
                                 .workspace = workspace,
                                 .stores = {pair, workspace.part(WorkspacePart::stores)},
                                 .timer = timer,
                                 .stop = {}};
    std::vector<PlacedInstruction<double>> placed(engine.plane_step(0).chain.instructions.size());
    for (std::size_t i = 0; i < placed.size(); ++i) {
      placed[i].instruction = &engine.plane_step(0).chain.instructions[i];
      placed[i].skips_ntk = skips_ntk;
    }
    return blocked_input(chain, placed);
  };
  CHECK(find(products_network, true, Purpose::result) == std::optional<std::size_t>(0));
  CHECK(!find(products_network, false, Purpose::result));
  CHECK(!find(products_network, true, Purpose::state));
  // Nothing but the input, which is kept.
  CHECK(!find(R"([{"layer": "local_conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "flatten"},
                  {"layer": "dense"}])",
              true, Purpose::result));
}
