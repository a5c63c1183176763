// Tiles from states to kernels: against the kernels straight from their formulas, and however tiles are cut.
#include "kernel/run/pair_worker.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernel/backends/reference/naive_check.hpp"
#include "kernel/run/recorded_batch.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram_tiles.hpp"

namespace widelimit::testing::pair_worker_test {
namespace {

const std::string vectors =
    R"([{"layer": "dense", "weight_variance": 1.7, "bias_variance": 0.2}, {"layer": "relu"}, {"layer": "dense"},
        {"layer": "erf"}])";
const std::string sequences =
    R"([{"layer": "conv", "filter": [3], "bias_variance": 0.1}, {"layer": "relu"}, {"layer": "conv", "filter": [3]},
        {"layer": "global_average_pool"}, {"layer": "dense"}, {"layer": "erf"}])";

/// A batch, and its kernels tile by tile.
template <typename Scalar, typename Result = Scalar>
class TileRunner {
 public:
  TileRunner(const std::string& layers, const Inputs<Scalar>& x, const GramOptions& options = {})
      : plan_{plan_for(layers, x, options)},
        states_(plan_, x),
        worker_(plan_, {x.size(), x.size()}, StopRequest()),
        n_{x.size()},
        places_(static_cast<std::size_t>(n_)) {
    std::iota(places_.begin(), places_.end(), Index{0});
    clear();
  }

  void clear() {
    constexpr Result nothing = std::numeric_limits<Result>::lowest();
    result.nngp.setConstant(n_, n_, nothing);
    result.ntk.setConstant(n_, n_, nothing);
  }

  /// One tile, to the places of its inputs.
  bool run(const InputRange& rows, const InputRange& columns, Batches batches, bool nngp = true,
           bool ntk = true) {
    const auto place = [&](const InputRange& range) {
      return std::span<const Index>(places_).subspan(static_cast<std::size_t>(range.begin),
                                                     static_cast<std::size_t>(range.size()));
    };
    return worker_.run(
        states_.range(rows.begin, rows.end), states_.range(columns.begin, columns.end), batches,
        {place(rows), place(columns)},
        GramTarget<Result>{nngp ? result.nngp.data() : nullptr, ntk ? result.ntk.data() : nullptr, n_});
  }

  std::vector<Index>& places() { return places_; }
  PairWorker<Scalar>& worker() { return worker_; }
  const GramPlan& plan() { return plan_; }

  GramResult<Result> result;

 private:
  GramPlan plan_;
  RecordedInputs<Scalar> states_;
  PairWorker<Scalar> worker_;
  Index n_;
  std::vector<Index> places_;
};

TEST_CASE("PairWorker: one tile of a batch with itself has the naive kernels, mirrored") {
  for (const bool positions : {false, true}) {
    const Inputs<double> x(
        random_inputs(71, positions ? std::vector<Index>{5, 4, 2} : std::vector<Index>{21, 4}));
    const std::string& layers = positions ? sequences : vectors;
    TileRunner<double> tiles(layers, x);
    CHECK(tiles.run({0, x.size()}, {0, x.size()}, Batches::one));
    check_against(NaiveKernel(network_with(layers)), x, x, true, tiles.result, 1e-12);
    CHECK(tiles.result.nngp == tiles.result.nngp.transpose());
    CHECK(tiles.result.ntk == tiles.result.ntk.transpose());
  }
}

TEST_CASE("PairWorker: tiles of sequences have the same bits however they are cut, down to single pairs") {
  const Inputs<double> x(random_inputs(72, {6, 5, 2}));
  TileRunner<double> whole(sequences, x), parts(sequences, x);
  whole.run({0, 6}, {0, 6}, Batches::one);
  for (const Index side : {1, 2, 4}) {
    parts.clear();
    for (Index i = 0; i < 6; i += side)
      for (Index j = i; j < 6; j += side)
        CHECK(parts.run({i, std::min<Index>(i + side, 6)}, {j, std::min<Index>(j + side, 6)}, Batches::one));
    CHECK(parts.result.nngp == whole.result.nngp);
    CHECK(parts.result.ntk == whole.result.ntk);
  }
}

TEST_CASE(
    "PairWorker: two batches that happen to be one have no inputs with themselves, but the same kernels") {
  for (const bool positions : {false, true}) {
    const Inputs<double> x(
        random_inputs(73, positions ? std::vector<Index>{5, 4, 2} : std::vector<Index>{21, 4}));
    TileRunner<double> one(positions ? sequences : vectors, x), two(positions ? sequences : vectors, x);
    one.run({0, x.size()}, {0, x.size()}, Batches::one);
    two.run({0, x.size()}, {0, x.size()}, Batches::two);
    // A matrix product of vectors, and covariances of positions, round otherwise than variances do.
    CHECK((one.result.nngp - two.result.nngp).cwiseAbs().maxCoeff() < 1e-13);
    CHECK((one.result.ntk - two.result.ntk).cwiseAbs().maxCoeff() < 1e-6);
  }
}

TEST_CASE("PairWorker: entries go where they are told, and only those of the tile") {
  const Inputs<double> x(random_inputs(74, {5, 4, 2}));
  TileRunner<double> plain(sequences, x), moved(sequences, x);
  plain.run({0, 5}, {0, 5}, Batches::one);
  moved.places() = {3, 0, 4, 1, 2};
  moved.run({0, 2}, {2, 5}, Batches::two);
  for (Index i = 0; i < 5; ++i)
    for (Index j = 0; j < 5; ++j) {
      const Index row = moved.places()[static_cast<std::size_t>(i)],
                  column = moved.places()[static_cast<std::size_t>(j)];
      const bool written = i < 2 && j >= 2;
      CHECK(moved.result.nngp(row, column) ==
            (written ? plain.result.nngp(i, j) : std::numeric_limits<double>::lowest()));
    }
}

TEST_CASE("PairWorker: a kernel that is not wanted is left alone") {
  const Inputs<double> x(random_inputs(75, {4, 4}));
  TileRunner<double> both(vectors, x), alone(vectors, x);
  both.run({0, 4}, {0, 4}, Batches::one);
  alone.run({0, 4}, {0, 4}, Batches::one, false, true);
  CHECK((alone.result.nngp.array() == std::numeric_limits<double>::lowest()).all());
  CHECK(alone.result.ntk == both.result.ntk);
}

TEST_CASE("PairWorker: results in float are those in double, rounded; what float cannot hold is told") {
  const Inputs<double> x(random_inputs(76, {6, 4}));
  TileRunner<double> exact(vectors, x);
  TileRunner<double, float> rounded(vectors, x);
  exact.run({0, 6}, {0, 6}, Batches::one);
  CHECK(rounded.run({0, 6}, {0, 6}, Batches::one));
  CHECK(rounded.result.nngp == exact.result.nngp.cast<float>());
  CHECK(rounded.result.ntk == exact.result.ntk.cast<float>());
  const std::string large = R"([{"layer": "dense", "weight_variance": 1e50}])";
  CHECK(TileRunner<double>(large, x).run({0, 6}, {0, 6}, Batches::one));
  CHECK_FALSE(TileRunner<double, float>(large, x).run({0, 6}, {0, 6}, Batches::one));
}

TEST_CASE("PairWorker: inputs that are multiples of each other stay perfectly correlated") {
  xt::xarray<double> numbers = random_inputs(77, {4, 3});
  for (std::size_t c = 0; c < 3; ++c) {
    numbers(1, c) = numbers(0, c);
    numbers(3, c) = 0.3 * numbers(2, c);
  }
  TileRunner<double> tiles(
      R"([{"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"}, {"layer": "relu"}])",
      Inputs<double>(numbers));
  tiles.run({0, 4}, {0, 4}, Batches::one);
  for (const Matrix<double>& k : {tiles.result.nngp, tiles.result.ntk}) {
    CHECK(k(0, 1) == k(0, 0));
    CHECK(k(2, 3) == doctest::Approx(0.3 * k(2, 2)).epsilon(1e-14));
  }
}

TEST_CASE("PairWorker: what every node takes is measured once that is asked for") {
  const Inputs<double> x(random_inputs(78, {5, 4, 2}));
  TileRunner<double> tiles(sequences, x);
  std::vector<double> seconds(tiles.plan().program.graph.nodes.size());
  tiles.run({0, 5}, {0, 5}, Batches::one);
  tiles.worker().add_seconds(seconds);
  CHECK(std::accumulate(seconds.begin(), seconds.end(), 0.0) == 0);
  tiles.worker().start_timer();
  tiles.run({0, 5}, {0, 5}, Batches::one);
  tiles.worker().add_seconds(seconds);
  CHECK(std::accumulate(seconds.begin(), seconds.end(), 0.0) > 0);
}

}  // namespace
}  // namespace widelimit::testing::pair_worker_test
