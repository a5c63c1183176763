// Gram matrices tile by tile: the same numbers whatever the blocks of states, the threads and the parts.
#include "kernel/run/gram_computation.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "kernel/run/recorded_batch.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"

namespace widelimit::testing::gram_computation_test {
namespace {

const std::string vectors =
    R"([{"layer": "dense", "bias_variance": 0.2}, {"layer": "relu"}, {"layer": "dense"}, {"layer": "erf"}])";
const std::string sequences =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"}, {"layer": "dense"}])";

struct KernelPair {
  Matrix<double> nngp, ntk;

  KernelPair(Index rows, Index columns)
      : nngp{Matrix<double>::Constant(rows, columns, 77)}, ntk{Matrix<double>::Constant(rows, columns, 77)} {}
  [[nodiscard]] GramTarget<double> target() { return {nngp.data(), ntk.data(), nngp.cols()}; }
};

using Computation = GramComputation<double, double>;

/// run(computation) under a plan for a batch; gives the pairs that were counted.
template <typename Chain>
Index compute(const std::string& layers, const Inputs<double>& x, const GramOptions& options,
              const Chain& run) {
  const GramPlan plan = plan_for(layers, x, options);
  ProgressCounter progress(options, 1000000);
  Computation computation(plan, options, progress);
  run(computation, plan);
  CHECK(computation.is_finite());
  return progress.done();
}

KernelPair symmetric(const std::string& layers, const Inputs<double>& x, const GramOptions& options = {}) {
  KernelPair result(x.size(), x.size());
  const Index pairs = compute(layers, x, options, [&](Computation& computation, const GramPlan&) {
    computation.symmetric(x, result.target());
  });
  CHECK(pairs == x.size() * (x.size() + 1) / 2);
  return result;
}

Inputs<double> ragged(const std::vector<Index>& lengths) {
  std::vector<xt::xarray<double>> arrays;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    arrays.push_back(random_inputs(static_cast<unsigned>(80 + i), {lengths[i], 2}));
  return Inputs<double>(std::move(arrays));
}

TEST_CASE("GramComputation: the bits do not depend on threads, tiles or the memory for states") {
  const Inputs<double> x = ragged({4, 6, 4, 5, 6, 6, 4});
  const KernelPair whole = symmetric(sequences, x);
  CHECK(whole.nngp == whole.nngp.transpose());
  for (const GramOptions& options : {GramOptions{.threads = 3}, GramOptions{.tile_size = 1},
                                     GramOptions{.tile_size = 3}, GramOptions{.state_memory_bytes = 1}}) {
    const KernelPair part = symmetric(sequences, x, options);
    CHECK(part.nngp == whole.nngp);
    CHECK(part.ntk == whole.ntk);
  }
}

TEST_CASE("GramComputation: the diagonal, a rectangle and kept states are parts of the whole") {
  for (const bool positions : {false, true}) {
    const Inputs<double> x(
        random_inputs(81, positions ? std::vector<Index>{6, 5, 2} : std::vector<Index>{6, 5}));
    const std::string& layers = positions ? sequences : vectors;
    const KernelPair whole = symmetric(layers, x);
    for (const std::size_t memory : {std::size_t{1} << 30, std::size_t{1}}) {
      const GramOptions options{.state_memory_bytes = memory};
      KernelPair diagonal(6, 1), rectangle(6, 6), kept(6, 6), kept_columns(6, 6);
      CHECK(compute(layers, x, options, [&](Computation& computation, const GramPlan&) {
              computation.diagonal(x, diagonal.target());
            }) == 6);
      CHECK(diagonal.nngp == whole.nngp.diagonal());
      CHECK(diagonal.ntk == whole.ntk.diagonal());
      CHECK(compute(layers, x, options, [&](Computation& computation, const GramPlan&) {
              computation.rectangular(x, x, rectangle.target());
            }) == 36);
      compute(layers, x, options, [&](Computation& computation, const GramPlan& plan) {
        const std::shared_ptr<const GramPlan> unowned(&plan, [](const GramPlan*) {});
        Computation::Kept states(unowned, x, "x");
        computation.fill(states, 1);
        computation.symmetric(states, kept.target());
        computation.rectangular(x, states, kept_columns.target());
      });
      CHECK(kept.nngp == whole.nngp);
      CHECK(kept.ntk == whole.ntk);
      CHECK(kept_columns.nngp == rectangle.nngp);
      CHECK(kept_columns.ntk == rectangle.ntk);
      for (Index i = 0; i < 6; ++i)
        for (Index j = 0; j < 6; ++j) {
          CHECK(rectangle.nngp(i, j) == doctest::Approx(whole.nngp(i, j)).epsilon(1e-13));
          if (i != j) CHECK(rectangle.ntk(i, j) == doctest::Approx(whole.ntk(i, j)).epsilon(1e-13));
        }
    }
  }
}

TEST_CASE("GramComputation: parts of a ragged batch take the input of the first shape as the left one") {
  const Inputs<double> x = ragged({6, 4, 5, 4});
  const KernelPair whole = symmetric(sequences, x);
  KernelPair parts(4, 4);
  compute(sequences, x, {}, [&](Computation& computation, const GramPlan& plan) {
    const OrderedInputs<double> ordered(x, plan, "x");
    // In the order of lengths; the later block first.
    const auto first = computation.make_states(ordered, 0, 2), last = computation.make_states(ordered, 2, 4);
    computation.compute(last, first, Batches::two, parts.target(), LeftInput::of_first_shape);
  });
  const std::vector<Index> order{1, 3, 2, 0};
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      const Index row = order[i], column = order[j];
      const bool written = i >= 2 && j < 2;
      CHECK(parts.nngp(row, column) == (written ? whole.nngp(row, column) : 77));
      CHECK(parts.ntk(row, column) == (written ? whole.ntk(row, column) : 77));
    }
}

TEST_CASE("GramComputation: an NTK that leaves the range is told, and its layer found") {
  std::string layers = "[";
  for (int i = 0; i < 12; ++i)
    layers += R"({"layer": "dense", "weight_variance": 1e30}, {"layer": "sin", "a": 1, "b": 1, "c": 0}, )";
  layers += R"({"layer": "dense"}])";
  const Inputs<double> x(random_inputs(82, {3, 4}));
  const GramPlan plan = plan_for(layers, x);
  const GramOptions options;
  ProgressCounter progress(options, 6);
  Computation computation(plan, options, progress);
  KernelPair result(3, 3);
  const std::string message = error_message<NumericalError>([&] {
    computation.symmetric(x, result.target());
    return 0;
  });
  CHECK_FALSE(computation.is_finite());
  CHECK(message.find("gram: input 0 of x: layers[") == 0);
  CHECK(message.find("the ntk is not finite") != std::string::npos);
}

TEST_CASE("GramComputation: the error of the first input is told, whatever the threads") {
  xt::xarray<double> numbers = random_inputs(83, {20, 4});
  for (const std::size_t i : {7, 11, 19}) numbers(i, 2) = 1e200;
  for (const int threads : {1, 4}) {
    const Inputs<double> x(numbers);
    const GramOptions options{.threads = threads};
    const GramPlan plan = plan_for(vectors, x, options);
    ProgressCounter progress(options, 210);
    Computation computation(plan, options, progress);
    KernelPair result(20, 20);
    CHECK(error_message<NumericalError>([&] {
            computation.symmetric(x, result.target());
            return 0;
          }).find("gram: input 7 of x: ") == 0);
  }
}

TEST_CASE("GramComputation: a batch of one input, and of none") {
  const Inputs<double> one(random_inputs(84, {1, 5, 2}));
  const KernelPair alone = symmetric(sequences, one);
  CHECK(alone.nngp(0, 0) > 0);
  CHECK(alone.ntk(0, 0) > alone.nngp(0, 0));
  const Inputs<double> none(random_inputs(84, {0, 5, 2}));
  CHECK(symmetric(sequences, none).nngp.size() == 0);
}

TEST_CASE("GramComputation: a stop ends it, and tells how far it came") {
  std::stop_source source;
  const Inputs<double> x(random_inputs(85, {6, 5, 2}));
  GramOptions options{.threads = 1, .tile_size = 2};
  options.stop = source.get_token();
  options.progress = [&](const GramProgress&) { source.request_stop(); };
  const GramPlan plan = plan_for(sequences, x, options);
  ProgressCounter progress(options, 21);
  Computation computation(plan, options, progress);
  KernelPair result(6, 6);
  CHECK(error_message<Cancelled>([&] {
          computation.symmetric(x, result.target());
          return 0;
        }) == "gram: stopped on request after 3 of 21 pairs");
}

}  // namespace
}  // namespace widelimit::testing::gram_computation_test
