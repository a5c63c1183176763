// Kept nodes of the pairs of a tile: planes go in and come out, against the covariances that they are cut from.
#include "kernel/backends/cpu/planes/pair_stores.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "kernel/backends/cpu/planes/plane_numbers.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

constexpr Index pairs = 3;

/// The first step that keeps a node of a kind as its chain's root.
std::size_t keeping_step(const Program& program, bool as_matrix) {
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    if (const auto* plane = std::get_if<PlaneStep>(&program.steps[s]))
      if (plane->target == plane->chain.root && program.as_matrix[plane->target] == as_matrix) return s;
  FAIL("no such node");
  return 0;
}

/// The stores of some pairs, and the covariances of a node that a step keeps there.
class StoreCheck {
 public:
  StoreCheck(const EngineProgram& engine, std::size_t step)
      : engine_{engine},
        step_{step},
        node_{engine.plane_step(step).target},
        left_{engine.pair.geometry.left_sizes[node_]},
        right_{engine.pair.geometry.right_sizes[node_]},
        nngp_(left_, right_, pairs, generator_),
        ntk_(left_, right_, pairs, generator_),
        numbers_(static_cast<std::size_t>(pairs * engine.pair.stores.size + row_padding), 7.0),
        stores_(engine.pair, numbers_.data()) {}

  void save() {
    stores_.forget(node_, pairs);
    for_each_root_plane(
        engine_, step_,
        [&](const PlacedPlane& plane) {
          // One pair alone, the others as a stack.
          save(plane, 0, 1);
          save(plane, 1, pairs - 1);
        },
        [] {});
  }

  /// Every demanded entry is there, in its pair's store; of a matrix, the others are NaN.
  void check_entries() const {
    const Offsets& demanded = engine_.pair.geometry.demanded[node_];
    const StoreLayout& layout = stores_.layout(node_);
    for (Index pair = 0; pair < pairs; ++pair)
      for_each_position_pair([&](const Index3& a, const Index3& b) {
        const bool is_kept = demanded.contains({b[0] - a[0], b[1] - a[1], b[2] - a[2]});
        if (!is_kept && !layout.is_matrix()) return;
        const Index entry = layout.entry(a, b);
        const double nngp = stores_.at(node_, pair).nngp[entry], ntk = stores_.at(node_, pair).ntk[entry];
        CHECK((is_kept ? nngp == nngp_.at(pair, a, b) : std::isnan(nngp)));
        CHECK((is_kept ? ntk == ntk_.at(pair, a, b) : std::isnan(ntk)));
      });
  }

  /// Planes come out as they went in, with zeros in their guards.
  void check_loaded() const {
    for_each_root_plane(
        engine_, step_, [&](const PlacedPlane& plane) { check_loaded(plane); }, [] {});
    // Alone, and without guards.
    engine_.pair.geometry.demanded[node_].for_each([&](const Index3& offset) {
      const PlacedPlane plane = PlacedPlane::alone(offset, left_, right_);
      if (!plane.empty()) check_loaded(plane);
    });
  }

  void check_matrices() const {
    std::vector<double> space(static_cast<std::size_t>(2 * padded(product(left_) * product(right_)) + 1));
    for (Index pair = 0; pair < pairs; ++pair) {
      const PairMatrices<double> matrices = stores_.matrices(node_, pair, space.data());
      CHECK(matrices.scratch >= space.data());
      CHECK(matrices.scratch < space.data() + space.size());
      for_each_position_pair([&](const Index3& a, const Index3& b) {
        const Index entry = position_number(a, left_) * product(right_) + position_number(b, right_);
        CHECK(matrices.nngp[entry] == nngp_.at(pair, a, b));
        CHECK(matrices.ntk[entry] == ntk_.at(pair, a, b));
      });
    }
  }

 private:
  template <typename Body>
  void for_each_position_pair(const Body& body) const {
    Offsets::all(left_, right_).for_each([&](const Index3& offset) {
      const PlacedPlane plane = PlacedPlane::alone(offset, left_, right_);
      if (!plane.empty())
        for_each_entry(plane, [&](const Index3& a, const Index3& b, Index /*place*/) { body(a, b); });
    });
  }

  void save(const PlacedPlane& plane, Index first_pair, Index count) {
    StackOfPlanes nngp(plane, count), ntk(plane, count);
    nngp.fill(plane, nngp_, first_pair, count);
    ntk.fill(plane, ntk_, first_pair, count);
    stores_.save(node_, plane, first_pair, count, {nngp.planes(), ntk.planes()});
  }

  void check_loaded(const PlacedPlane& plane) const {
    StackOfPlanes nngp(plane, pairs), ntk(plane, pairs);
    nngp.fill_with(7);
    ntk.fill_with(7);
    stores_.load(node_, plane, 0, pairs, {nngp.planes(), ntk.planes()});
    int wrong = 0;
    for (Index pair = 0; pair < pairs; ++pair) {
      std::vector<bool> has_entry(static_cast<std::size_t>(plane.layout.length));
      for_each_entry(plane, [&](const Index3& a, const Index3& b, Index place) {
        has_entry[static_cast<std::size_t>(place)] = true;
        if (nngp.at(pair, place) != nngp_.at(pair, a, b) || ntk.at(pair, place) != ntk_.at(pair, a, b))
          ++wrong;
      });
      for (Index place = 0; place < plane.layout.length; ++place)
        if (!has_entry[static_cast<std::size_t>(place)] &&
            (nngp.at(pair, place) != 0 || ntk.at(pair, place) != 0))
          ++wrong;
    }
    CHECK(wrong == 0);
  }

  std::mt19937 generator_{13};
  const EngineProgram& engine_;
  std::size_t step_;
  NodeId node_;
  Index3 left_, right_;
  PairCovariances nngp_, ntk_;
  std::vector<double> numbers_;
  PairStores<double> stores_;
};

/// A node that two chains read, after a convolution.
std::string branches(const std::string& convolution, const std::string& window, const std::string& readout) {
  return R"([{"layer": "conv", )" + convolution + R"(}, {"layer": "relu"}, {"layer": "sum", "branches": [
             {"layers": []}, {"layers": [{"layer": "average_pool", "window": )" +
         window + R"(, "strides": )" + (window.size() > 3 ? "[1, 1]" : "[1]") +
         R"(, "padding": "same"}, {"layer": "dense"}]}]},
             {"layer": "dense"}, {"layer": "relu"}, {"layer": ")" +
         readout + R"("}, {"layer": "dense"}])";
}

void check_stores(const EngineProgram& engine, bool as_matrix) {
  StoreCheck check(engine, keeping_step(engine.program, as_matrix));
  check.save();
  check.check_entries();
  check.check_loaded();
}

}  // namespace

TEST_CASE("planes that are kept as such: single offsets and complementary ones, stacks and guards") {
  for (const char* padding : {"same", "valid"})
    for (const char* readout : {"global_average_pool", "flatten"}) {
      const EngineProgram engine(
          branches(R"("filter": [3, 3], "padding": ")" + std::string(padding) + "\"", "[3, 2]", readout),
          {6, 7}, 2);
      check_stores(engine, false);
    }
  const EngineProgram joined(branches(R"("filter": [3, 3])", "[3, 2]", "global_average_pool"), {6, 7}, 2);
  CHECK(joined.pair.geometry.chains.at(keeping_step(joined.program, false)).complements);
}

TEST_CASE("planes between sequences of different length, and put together as a matrix") {
  const EngineProgram engine(branches(R"("filter": [3])", "[3]", "global_average_pool"), {9}, {6}, 2);
  check_stores(engine, false);
  StoreCheck check(engine, keeping_step(engine.program, false));
  check.save();
  check.check_matrices();
}

TEST_CASE("planes that are kept as a matrix") {
  const std::string attention = R"([
      {"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "attention", "scaling": "inverse_width"}, {"layer": "relu"},
      {"layer": "global_average_pool"}, {"layer": "dense"}])";
  const EngineProgram engine(attention, {8}, 2);
  check_stores(engine, true);
  StoreCheck check(engine, keeping_step(engine.program, true));
  check.save();
  check.check_matrices();
  const EngineProgram lengths(attention, {8}, {5}, 2);
  check_stores(lengths, true);
}

TEST_CASE("what nobody writes to a matrix is NaN; planes are left alone") {
  const EngineProgram engine(R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"},
      {"layer": "attention", "scaling": "inverse_width"}, {"layer": "relu"},
      {"layer": "average_pool", "window": [2]}, {"layer": "dense"}, {"layer": "relu"},
      {"layer": "global_average_pool"}, {"layer": "dense"}])",
                             {8}, 2);
  const auto entries = static_cast<std::size_t>(engine.pair.stores.size);
  std::vector<double> numbers(static_cast<std::size_t>(pairs) * entries + row_padding, 7.0);
  const PairStores<double> stores(engine.pair, numbers.data());
  std::set<bool> kinds;
  for (NodeId node = 0; node < engine.program.graph.nodes.size(); ++node) {
    const Index size = stores.layout(node).size();
    if (!engine.program.kept[node] || size == 0) continue;
    std::fill(numbers.begin(), numbers.end(), 7.0);
    stores.forget(node, 2);
    const bool is_matrix = stores.layout(node).is_matrix();
    kinds.insert(is_matrix);
    for (Index pair = 0; pair < pairs; ++pair) {
      const bool forgets = is_matrix && pair < 2;
      const Plane<double> kept = stores.at(node, pair);
      for (const double* kernel : {kept.nngp, kept.ntk})
        CHECK(std::count_if(kernel, kernel + size, [](double number) { return std::isnan(number); }) ==
              (forgets ? size : 0));
    }
  }
  CHECK(kinds == std::set<bool>{false, true});
}

TEST_CASE("an ntk that is not kept is loaded as zeros") {
  const EngineProgram engine(R"([{"layer": "local_conv", "filter": [3, 3]}, {"layer": "relu"},
                                 {"layer": "flatten"}, {"layer": "dense"}])",
                             {5, 6}, 2);
  REQUIRE(engine.program.kept[0]);
  REQUIRE(!engine.pair.stores.keeps_ntk[0]);
  std::vector<double> numbers(static_cast<std::size_t>(2 * engine.pair.stores.size + row_padding), 3.0);
  const PairStores<double> stores(engine.pair, numbers.data());
  const PlacedPlane plane = PlacedPlane::alone({0, 0, 0}, {1, 5, 6}, {1, 5, 6});
  StackOfPlanes nngp(plane, 2), ntk(plane, 2);
  ntk.fill_with(7);
  stores.load(0, plane, 0, 2, {nngp.planes(), ntk.planes()});
  for (Index n = 0; n < 2; ++n)
    for (Index place = 0; place < plane.layout.length; ++place) {
      CHECK(nngp.at(n, place) == 3);
      CHECK(ntk.at(n, place) == 0);
    }
}
