// What comes after the positions, against the operations carried out pair by pair.
#include "kernel/backends/cpu/pair_rows/pair_row_executor.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "kernel/backends/cpu/pair_rows/pair_row_program.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// A dense layer, a row stage, a dense layer, a pair stage, a sum with the input and a product with the first layer.
PairRowProgram program_with_bias(double bias) {
  return PairRowProgram({{InputNode{}, {}},
                         {dense_node(1.5, bias), {0}},
                         {RowNode{std::make_shared<LoopRowStage>()}, {1}},
                         {dense_node(0.5, 0.1), {2}},
                         {PairNode{std::make_shared<LoopPairStage>()}, {3}},
                         {SumNode{{0.3, 0.7}}, {4, 0}},
                         {ProductNode{2}, {5, 1}}});
}

struct PointValue {
  double nngp = 0, ntk = 0;
};

PointValue behind_dense(const PointValue& value, double weight, double bias) {
  const double nngp = weight * value.nngp + bias;
  return {nngp, nngp + weight * value.ntk};
}

/// Variances of an input before the row stage and of the pair stage.
struct Variances {
  double row = 0, pair = 0;
};

Variances variances_of(double variance, double bias) {
  const double row = 1.5 * variance + bias;
  return {row, 0.5 * (LoopRowStage::itself * row + (row + 1) * (row + 1)) + 0.1};
}

enum class Relation { different, same, multiple };

PointValue expected_value(const PointValue& input, const Variances& left, const Variances& right,
                          Relation relation, double bias) {
  const PointValue first = behind_dense(input, 1.5, bias);
  const double factor = relation == Relation::same       ? LoopRowStage::itself
                        : relation == Relation::multiple ? LoopRowStage::multiple
                                                         : LoopRowStage::usual;
  const PointValue row{factor * first.nngp + (left.row + 1) * (right.row + 1), LoopRowStage::ntk * first.ntk};
  const PointValue second = behind_dense(row, 0.5, 0.1);
  const PointValue pair{second.nngp + 4 * left.pair * right.pair + left.pair - right.pair +
                            (relation == Relation::same ? 1 : 0),
                        2 * second.ntk};
  const PointValue sum{0.3 * pair.nngp + 0.7 * input.nngp, 0.3 * pair.ntk + 0.7 * input.ntk};
  return {2 * sum.nngp * first.nngp, 2 * (sum.ntk * first.nngp + sum.nngp * first.ntk)};
}

/// All inputs with all: rows in the groups that the executor takes.
void check_rows(double bias, std::size_t inputs) {
  const PairRowProgram points = program_with_bias(bias);
  std::vector<double> given;
  for (std::size_t i = 0; i < inputs; ++i) given.push_back(0.5 + 0.25 * static_cast<double>(i % 7));
  const PairRowStates states(points, given);
  const auto count = static_cast<Index>(inputs);
  PairRowExecutor<double> executor(points.program, points.state, Kernel::with_ntk, count, count);
  REQUIRE(executor.source_nodes() == std::vector<NodeId>{0});
  executor.begin_tile(states.inputs());
  const auto covariance = [&](std::size_t i, std::size_t j) {
    return PointValue{0.1 * static_cast<double>(i + 1) - 0.05 * static_cast<double>(j),
                      0.01 * static_cast<double>(j)};
  };
  for (std::size_t begin = 0; begin < inputs; begin += static_cast<std::size_t>(executor.rows_at_once())) {
    const std::size_t end = std::min(inputs, begin + static_cast<std::size_t>(executor.rows_at_once()));
    std::vector<PairRow<double>> rows;
    // The next input is a multiple of each, and stands before none.
    for (std::size_t i = begin; i < end; ++i) {
      const auto next = static_cast<Index>((i + 1) % inputs);
      rows.push_back({&states[i], static_cast<Index>(i), {next}});
      for (std::size_t j = 0; j < inputs; ++j) {
        const auto place = static_cast<Index>(i - begin) * executor.row_step() + static_cast<Index>(j);
        executor.source(0).nngp[place] = covariance(i, j).nngp;
        executor.source(0).ntk[place] = covariance(i, j).ntk;
      }
    }
    const Plane<double> output = executor.run(rows);
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < inputs; ++j) {
        // With a bias multiples do not stay multiples.
        const Relation relation = i == j                               ? Relation::same
                                  : bias == 0 && j == (i + 1) % inputs ? Relation::multiple
                                                                       : Relation::different;
        const PointValue value = expected_value(covariance(i, j), variances_of(given[i], bias),
                                                variances_of(given[j], bias), relation, bias);
        const auto place = static_cast<Index>(i - begin) * executor.row_step() + static_cast<Index>(j);
        CHECK(output.nngp[place] == doctest::Approx(value.nngp).epsilon(1e-12));
        CHECK(output.ntk[place] == doctest::Approx(value.ntk).epsilon(1e-12));
      }
  }
}

}  // namespace

TEST_CASE("point executor: rows of few and of many right inputs") {
  check_rows(0.25, 5);
  check_rows(0, 5);
  // More than two rows do not fit at once.
  check_rows(0, 400);
}

TEST_CASE("point executor: what is recorded of inputs") {
  const PairRowProgram points = program_with_bias(0.25);
  const PairRowStates states(points, {1.25, 3});
  for (const double variance : {1.25, 3.0}) {
    const InputState<double>& state = states[variance == 3 ? 1 : 0];
    const Variances expected = variances_of(variance, 0.25);
    CHECK(state.array(2, 0)[0] == doctest::Approx(expected.row + 1).epsilon(1e-14));
    CHECK(state.array(4, 0)[0] == doctest::Approx(expected.pair).epsilon(1e-14));
    CHECK(state.extra(4)[0] == doctest::Approx(2 * expected.pair).epsilon(1e-14));
  }
}

TEST_CASE("point executor: variances out of range name the layer, and a stop is heeded") {
  const PairRowProgram points({{InputNode{}, {}}, {dense_node(1e300, 0), {0}}});
  CHECK_THROWS_WITH_AS(
      PairRowStates(points, {1e10}),
      "layer: the variance of the vector is not finite, it leaves the range of double: rescale the "
      "inputs or weights",
      NumericalError);
  std::stop_source source;
  source.request_stop();
  const std::stop_token token = source.get_token();
  const PairRowProgram stopped({{InputNode{}, {}}, {dense_node(1, 0), {0}}});
  const PairRowStates states(stopped, {1});
  PairRowExecutor<double> executor(stopped.program, stopped.state, Kernel::nngp_only, 1, 1,
                                   StopRequest(token));
  executor.begin_tile(states.inputs());
  const PairRow<double> row{&states[0], 0, {}};
  CHECK_THROWS_AS((void)executor.run({&row, 1}), Cancelled);
}
