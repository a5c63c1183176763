// Auxiliary arrays as instructions read them, against the states that they come from.
#include "kernel/backends/cpu/planes/auxiliary_arrays.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/backends/cpu/planes/random_states.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// A chain of a program whose arrays are laid out offset by offset, and checked.
class ArrayCheck {
 public:
  ArrayCheck(const EngineProgram& engine, Index lefts, Index rights, std::size_t step = 0)
      : engine_{engine},
        step_{std::get<PlaneStep>(engine.program.steps.at(step))},
        geometry_{engine.pair.geometry.chains.at(step)},
        lefts_{lefts},
        rights_{rights} {}

  /// The sources that were read from.
  std::set<bool> check(bool stacked) {
    std::set<bool> guarded;
    for (std::size_t i = 0; i < step_.chain.instructions.size(); ++i)
      if (reads_arrays(engine_.program, step_.chain.instructions[i])) check_instruction(i, stacked, guarded);
    return guarded;
  }

 private:
  void check_instruction(std::size_t number, bool stacked, std::set<bool>& guarded) {
    const NodeId node = step_.chain.instructions[number].node;
    const Index arrays = engine_.state.arrays[node], side = std::max(lefts_, rights_);
    const PairGeometry& geometry = engine_.pair.geometry;
    const RandomStates left(engine_.state, lefts_, node, generator_),
        right(engine_.state, rights_, node, generator_);
    const StripLayout left_strip(geometry_, number, geometry.left_sizes[node], Side::left),
        right_strip(geometry_, number, geometry.right_sizes[node], Side::right);
    AuxiliaryArrays<double> auxiliary({Side::left, left.states(), node, arrays, left_strip},
                                      {Side::right, right.states(), node, arrays, right_strip});
    const bool strips = geometry.uses_strips(step_.chain.root);
    const PlaneSizes& sizes = engine_.pair.planes;
    std::vector<double> pack_room(static_cast<std::size_t>(3 * side * arrays * sizes.capacity)),
        strip_room(static_cast<std::size_t>(2 * side * arrays * sizes.strip));
    double *packs = pack_room.data(), *strip = strip_room.data();
    auxiliary.take_room(packs, strip, strips, sizes, {side, side});
    CHECK(packs <= pack_room.data() + pack_room.size());
    CHECK(strip <= strip_room.data() + strip_room.size());

    std::vector<TilePair> pairs;
    for_each_pair(lefts_, rights_, [&](Index i, Index j) { pairs.push_back({i, j, false}); });
    for (const AxisOffsets& z : geometry_.offsets[2]) {
      bool cuts = strips;
      for (const AxisOffsets& y : geometry_.offsets[1]) {
        PlacedPlane plane;
        plane.place(geometry_, number, {geometry_.offsets[0][0], y, z}, geometry.left_sizes[node],
                    geometry.right_sizes[node]);
        PairStacks stacks;
        stacks.begin_tile(pairs, rights_);
        stacks.cut(stacked ? planes_a_stack(plane.layout.length) : 1);
        auxiliary.expect_packs(plane);
        auxiliary.place(plane, {.uses_strips = strips,
                                .cuts_strips = cuts,
                                .stacked = stacks.has_many(),
                                .right_places = stacks.right_places()});
        cuts = false;
        guarded.insert(auxiliary.are_guarded());
        for (const Stack& stack : stacks) {
          auxiliary.choose(stack, stacks.has_many());
          check_stack(auxiliary, plane, node, stack, pairs, left, right);
        }
      }
    }
  }

  void check_stack(const AuxiliaryArrays<double>& auxiliary, const PlacedPlane& plane, NodeId node,
                   const Stack& stack, const std::vector<TilePair>& pairs, const RandomStates& left,
                   const RandomStates& right) const {
    for (Index n = 0; n < stack.count; ++n) {
      const TilePair& pair = pairs[static_cast<std::size_t>(stack.first_pair + n)];
      for (Index k = 0; k < auxiliary.count(); ++k) {
        const Index begin = n * plane.layout.length;
        check_plane(auxiliary.rows(Side::left)[k] + begin, plane, auxiliary.are_guarded(),
                    [&](const Index3& a, const Index3& /*b*/) {
                      return value_at(*left.states()[static_cast<std::size_t>(pair.left)], node, k, a);
                    });
        check_plane(auxiliary.rows(Side::right)[k] + begin, plane, auxiliary.are_guarded(),
                    [&](const Index3& /*a*/, const Index3& b) {
                      return value_at(*right.states()[static_cast<std::size_t>(pair.right)], node, k, b);
                    });
      }
    }
  }

  /// Entries are what they should be, and guards zero where that is promised.
  template <typename Value>
  static void check_plane(const double* row, const PlacedPlane& plane, bool is_guarded, const Value& value) {
    std::vector<bool> has_entry(static_cast<std::size_t>(plane.layout.length));
    int wrong = 0;
    plane.for_each_piece([&](const Box& box, Index begin) {
      for_each_row(box.extent, [&](Index x, Index y) {
        for (Index z = 0; z < box.extent[2]; ++z) {
          const Index place = begin + plane.layout.at(x, y) + z;
          const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
          const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
          if (row[place] != value(a, b)) ++wrong;
          has_entry[static_cast<std::size_t>(place)] = true;
        }
      });
    });
    for (std::size_t place = 0; is_guarded && place < has_entry.size(); ++place)
      if (!has_entry[place] && row[place] != 0) ++wrong;
    CHECK(wrong == 0);
  }

  const EngineProgram& engine_;
  const PlaneStep& step_;
  const ChainGeometry& geometry_;
  Index lefts_, rights_;
  std::mt19937 generator_{3};
};

const char* const convolution_network = R"([
    {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "conv", "filter": [3, 3]},
    {"layer": "relu"}, {"layer": "global_average_pool"}, {"layer": "dense"}])";
const char* const strided_network = R"([
    {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"},
    {"layer": "conv", "filter": [3, 3], "strides": [2, 2]}, {"layer": "relu"},
    {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "global_average_pool"},
    {"layer": "dense"}])";
const char* const sequence_network = R"([
    {"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"},
    {"layer": "dense"}])";

}  // namespace

TEST_CASE("complementary offsets of images: packed in stacks, in strips where pairs stand alone") {
  for (const char* layers : {convolution_network, strided_network}) {
    const EngineProgram engine(layers, {6, 8}, 2);
    REQUIRE(engine.pair.geometry.chains.back().complements);
    CHECK(ArrayCheck(engine, 3, 4).check(true).contains(true));
    CHECK(ArrayCheck(engine, 4, 3).check(true).contains(true));
    // Offset 0 is read in the states, others in strips.
    CHECK(ArrayCheck(engine, 2, 3).check(false) == std::set<bool>{false, true});
  }
}

TEST_CASE("images of which few offsets are demanded: none has its complement") {
  const EngineProgram engine(R"([
      {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"},
      {"layer": "average_pool", "window": [2, 2], "strides": [2, 2]}, {"layer": "flatten"},
      {"layer": "dense"}])",
                             {6, 8}, 2);
  const ChainGeometry& chain = engine.pair.geometry.chains.front();
  REQUIRE(chain.complements);
  REQUIRE(chain.offsets[1].size() == 3);
  REQUIRE(chain.offsets[1].back().offset[0] == -1);
  CHECK(ArrayCheck(engine, 3, 4).check(true).contains(true));
  CHECK(ArrayCheck(engine, 2, 3).check(false) == std::set<bool>{false, true});
}

TEST_CASE("offsets of images, one by one") {
  const EngineProgram engine(R"([
      {"layer": "conv", "filter": [3, 3], "padding": "valid"}, {"layer": "relu"},
      {"layer": "global_average_pool"}, {"layer": "dense"}])",
                             {5, 6}, 2);
  REQUIRE(!engine.pair.geometry.chains.back().complements);
  CHECK(ArrayCheck(engine, 3, 4).check(true).contains(true));
  CHECK(ArrayCheck(engine, 2, 3).check(false).contains(false));
}

TEST_CASE("offsets of sequences: packed in stacks, in the states where pairs stand alone") {
  const EngineProgram engine(sequence_network, {9}, 2);
  CHECK(ArrayCheck(engine, 3, 4).check(true).contains(true));
  CHECK(ArrayCheck(engine, 2, 3).check(false).contains(false));
}
