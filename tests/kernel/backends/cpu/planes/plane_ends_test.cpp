// Where planes end: what comes of the covariances that they are cut from, by loops over all pairs of positions.
#include "kernel/backends/cpu/planes/plane_ends.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernel/backends/cpu/planes/pair_tile.hpp"
#include "kernel/backends/cpu/planes/plane_numbers.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

constexpr Index left_inputs = 2, right_inputs = 3, end_pairs = left_inputs * right_inputs;

/// The end of a network's only run of planes, and covariances of a tile's pairs before it.
class EndCheck {
 public:
  explicit EndCheck(const EngineProgram& engine, std::size_t step = 0)
      : engine_{engine},
        step_{step},
        target_{engine.plane_step(step).target},
        tile_(engine.pair, engine.state, engine.state, left_inputs, right_inputs),
        sums_(engine.program.graph, end_pairs),
        end_{make_plane_end(tile_.run(), sums_, target_)},
        nngp_(left(), right(), end_pairs, generator_),
        ntk_(left(), right(), end_pairs, generator_) {}

  /// Takes the planes of all pairs, `at_once` in a stack; twice, so that nothing is left of the tile before.
  void take_planes(Index at_once) {
    for (int tile = 0; tile < 2; ++tile) {
      end_->begin_tile();
      for_each_root_plane(
          engine_, step_,
          [&](const PlacedPlane& plane) {
            end_->place(plane);
            for (Index first = 0; first < end_pairs; first += at_once)
              put(plane, first, std::min(at_once, end_pairs - first));
          },
          [&] { end_->end_group(); });
    }
  }

  /// A readout's mean over pairs of positions, or over equal positions.
  void check_readout(bool is_diagonal) const {
    for (Index pair = 0; pair < end_pairs; ++pair) {
      const auto value = sums_.value(engine_.pair, target_, pair);
      CHECK(value.nngp == doctest::Approx(mean(nngp_, pair, is_diagonal)).epsilon(1e-13).scale(1));
      CHECK(value.ntk == doctest::Approx(mean(ntk_, pair, is_diagonal)).epsilon(1e-13).scale(1));
    }
  }

  /// The mean over windows of two positions that do not overlap, of sequences.
  void check_pool() {
    const StoreLayout& layout = tile_.run().stores.layout(target_);
    for (Index pair = 0; pair < end_pairs; ++pair) {
      const Plane<double> pooled = tile_.run().stores.at(target_, pair);
      for (Index a = 0; a < left()[2] / 2; ++a)
        for (Index b = 0; b < right()[2] / 2; ++b) {
          const Index entry = layout.entry({0, 0, a}, {0, 0, b});
          CHECK(pooled.nngp[entry] ==
                doctest::Approx(window_mean(nngp_, pair, a, b)).epsilon(1e-13).scale(1));
          CHECK(pooled.ntk[entry] == doctest::Approx(window_mean(ntk_, pair, a, b)).epsilon(1e-13).scale(1));
        }
    }
  }

  /// All entries of a sequence's matrix.
  void check_store() {
    const StoreLayout& layout = tile_.run().stores.layout(target_);
    for (Index pair = 0; pair < end_pairs; ++pair) {
      const Plane<double> kept = tile_.run().stores.at(target_, pair);
      for (Index a = 0; a < left()[2]; ++a)
        for (Index b = 0; b < right()[2]; ++b) {
          const Index3 i{0, 0, a}, j{0, 0, b};
          CHECK(kept.nngp[layout.entry(i, j)] == nngp_.at(pair, i, j));
          CHECK(kept.ntk[layout.entry(i, j)] == ntk_.at(pair, i, j));
        }
    }
  }

  /// A new tile knows nothing of the last one.
  void check_forgets() {
    end_->begin_tile();
    const Index size = tile_.run().stores.layout(target_).size();
    const double* nngp = tile_.run().stores.at(target_, end_pairs - 1).nngp;
    CHECK(std::all_of(nngp, nngp + size, [](double number) { return std::isnan(number); }));
  }

 private:
  [[nodiscard]] NodeId root() const { return engine_.plane_step(step_).chain.root; }
  [[nodiscard]] const Index3& left() const { return engine_.pair.geometry.left_sizes[root()]; }
  [[nodiscard]] const Index3& right() const { return engine_.pair.geometry.right_sizes[root()]; }

  void put(const PlacedPlane& plane, Index first_pair, Index count) {
    StackOfPlanes nngp(plane, count), ntk(plane, count);
    nngp.fill(plane, nngp_, first_pair, count);
    ntk.fill(plane, ntk_, first_pair, count);
    const TilePair& pair = tile_.tile().pair(first_pair);
    end_->put(plane, {pair.left, pair.right, pair.right, first_pair, count, false},
              {nngp.planes(), ntk.planes()});
  }

  [[nodiscard]] double mean(const PairCovariances& covariances, Index pair, bool is_diagonal) const {
    double sum = 0, count = 0;
    for_each_position(left(), [&](const Index3& a) {
      for_each_position(right(), [&](const Index3& b) {
        if (is_diagonal && a != b) return;
        sum += covariances.at(pair, a, b);
        count += 1;
      });
    });
    return sum / count;
  }

  static double window_mean(const PairCovariances& covariances, Index pair, Index a, Index b) {
    double sum = 0;
    for (const Index i : {2 * a, 2 * a + 1})
      for (const Index j : {2 * b, 2 * b + 1}) sum += covariances.at(pair, {0, 0, i}, {0, 0, j});
    return sum / 4;
  }

  template <typename Body>
  static void for_each_position(const Index3& sizes, const Body& body) {
    for_each_row(sizes, [&](Index x, Index y) {
      for (Index z = 0; z < sizes[2]; ++z) body(Index3{x, y, z});
    });
  }

  std::mt19937 generator_{5};
  const EngineProgram& engine_;
  std::size_t step_;
  NodeId target_;
  PairTile tile_;
  ReadoutSums<double> sums_;
  std::unique_ptr<PlaneEnd<double>> end_;
  PairCovariances nngp_, ntk_;
};

std::string network_ending_in(const std::string& layers) {
  return R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, )" + layers + "]";
}

}  // namespace

TEST_CASE("planes end in readouts: all offsets, or the diagonal only") {
  const EngineProgram image(R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"},
                                {"layer": "global_average_pool"}, {"layer": "dense"}])",
                            {4, 5}, 2);
  const EngineProgram sequence(network_ending_in(R"({"layer": "global_average_pool"}, {"layer": "dense"})"),
                               {7}, {4}, 2);
  const EngineProgram flat(network_ending_in(R"({"layer": "flatten"}, {"layer": "dense"})"), {7}, 2);
  for (const Index at_once : {1, 2, 6}) {
    for (const EngineProgram* engine : {&image, &sequence}) {
      EndCheck check(*engine);
      check.take_planes(at_once);
      check.check_readout(false);
    }
    EndCheck diagonal(flat);
    diagonal.take_planes(at_once);
    diagonal.check_readout(true);
  }
}

TEST_CASE("planes end in a pooling") {
  const EngineProgram engine(network_ending_in(R"({"layer": "average_pool", "window": [2], "strides": [2]},
                                                  {"layer": "dense"}, {"layer": "relu"},
                                                  {"layer": "global_average_pool"}, {"layer": "dense"})"),
                             {8}, 2);
  for (const Index at_once : {1, 2, 6}) {
    EndCheck check(engine);
    check.take_planes(at_once);
    check.check_pool();
  }
}

TEST_CASE("planes end in the store of their root, whose entries are unknown before") {
  const EngineProgram engine(network_ending_in(R"({"layer": "attention", "scaling": "inverse_width"},
                                                  {"layer": "relu"}, {"layer": "global_average_pool"},
                                                  {"layer": "dense"})"),
                             {6}, {4}, 2);
  for (const Index at_once : {1, 2, 6}) {
    EndCheck check(engine);
    check.take_planes(at_once);
    check.check_store();
    check.check_forgets();
  }
}
