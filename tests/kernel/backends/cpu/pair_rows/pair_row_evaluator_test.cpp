// Every operation on rows of pairs alone, against loops over the pairs.
#include "kernel/backends/cpu/pair_rows/pair_row_evaluator.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>

#include "kernel/backends/cpu/pair_rows/pair_row_program.hpp"
#include "kernel/inputs/multiples.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// Two left and three right inputs, and an operation on the values that are given for their pairs.
class OperationCheck {
 public:
  OperationCheck(const Operation& operation, const std::vector<NodeId>& inputs)
      : points_({{InputNode{}, {}}, {dense_node(1.5, 0.25), {0}}, {operation, inputs}}) {
    const Plane<double> given = memory_.source(0);
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      given.nngp[k] = 0.25 * static_cast<double>(k) - 1;
      given.ntk[k] = 3 - 0.5 * static_cast<double>(k);
    }
  }

  /// The output is expected(input, dense, row, column): the input's values and those after the dense layer.
  template <typename Expected>
  void check(const Expected& expected) {
    PairRowEvaluator<double> evaluator(work_, rows_, nullptr);
    StepTimer timer;
    interpret(points_.program.pair_rows, points_.program.graph, timer, {}, evaluator);
    const Plane<double> output = memory_.slot(points_.program.pair_rows.instructions.back().slot);
    rows_.for_each([&](const PairRow<double>& row, Index place) {
      for (std::size_t column = 0; column < rows_.right.size(); ++column) {
        const auto k = place + static_cast<Index>(column);
        const Value input{memory_.source(0).nngp[k], memory_.source(0).ntk[k]};
        const double behind = 1.5 * input.nngp + 0.25;
        const Value dense{behind, behind + 1.5 * input.ntk};
        const Value value = expected(input, dense, row, *rows_.right[column]);
        CHECK(output.nngp[k] == doctest::Approx(value.nngp).epsilon(1e-14).scale(1));
        CHECK(output.ntk[k] == doctest::Approx(value.ntk).epsilon(1e-14).scale(1));
      }
    });
  }

  struct Value {
    double nngp, ntk;
  };

  /// Of the operation's node: the k-th number of an input, or its own state.
  static double number(const InputState<double>& state) { return state.array(2, 0)[0]; }
  static double extra(const InputState<double>& state) { return state.extra(2)[0]; }

  /// Lays out the arrays of an instruction's right inputs, as an executor does for a tile.
  void gather(std::size_t instruction) { memory_.arrays(instruction).gather_right(rows_, 2); }

  void check_refusal() {
    PairRowEvaluator<double> evaluator(work_, rows_, nullptr);
    CHECK_THROWS_WITH_AS(evaluator.evaluate(1, PoolNode{}), "kernel: node 1 cannot be an instruction here",
                         std::logic_error);
  }

 private:
  const PairRowProgram points_;
  const PairRowStates states_{points_, {1, 2, 3, 4, 5}};
  const std::vector<NodeId> sources_{0};
  const std::vector<bool> keeps_multiples_ = keeps_multiples(points_.program.graph);
  PairRowMemory<double> memory_{points_.program, points_.state, true, 2 * row_padding, 1};
  const PairRowWork<double> work_{points_.program, sources_, keeps_multiples_, memory_, {}};
  const std::vector<PairRow<double>> lefts_{{&states_[0], -1, {}}, {&states_[3], 1, {}}};
  const std::vector<const InputState<double>*> right_ = states_.some(2, 5);
  const PairRows<double> rows_{lefts_, right_};
};

using PairValue = OperationCheck::Value;

}  // namespace

TEST_CASE("point evaluator: dense layers") {
  OperationCheck(dense_node(0.5, 2), {1})
      .check([](const PairValue&, const PairValue& dense, const auto&, const auto&) {
        const double nngp = 0.5 * dense.nngp + 2;
        return PairValue{nngp, nngp + 0.5 * dense.ntk};
      });
}

TEST_CASE("point evaluator: sums and products of branches") {
  OperationCheck(SumNode{{0.3, 0.7}}, {0, 1})
      .check([](const PairValue& input, const PairValue& dense, const auto&, const auto&) {
        return PairValue{0.3 * input.nngp + 0.7 * dense.nngp, 0.3 * input.ntk + 0.7 * dense.ntk};
      });
  OperationCheck(ProductNode{2}, {0, 1})
      .check([](const PairValue& input, const PairValue& dense, const auto&, const auto&) {
        return PairValue{2 * input.nngp * dense.nngp, 2 * (input.ntk * dense.nngp + input.nngp * dense.ntk)};
      });
}

TEST_CASE("point evaluator: row stages, of which an input with itself has its own rule") {
  OperationCheck check(RowNode{std::make_shared<LoopRowStage>()}, {1});
  check.gather(2);
  check.check([](const PairValue&, const PairValue& dense, const PairRow<double>& row,
                 const InputState<double>& right) {
    const double factor = row.left == &right ? LoopRowStage::itself : LoopRowStage::usual;
    const double product = OperationCheck::number(*row.left) * OperationCheck::number(right);
    return PairValue{factor * dense.nngp + product, LoopRowStage::ntk * dense.ntk};
  });
}

TEST_CASE("point evaluator: pair stages see both inputs' variances and states") {
  OperationCheck(PairNode{std::make_shared<LoopPairStage>()}, {1})
      .check([](const PairValue&, const PairValue& dense, const PairRow<double>& row,
                const InputState<double>& right) {
        const double states = OperationCheck::extra(*row.left) * OperationCheck::extra(right);
        const double variances = OperationCheck::number(*row.left) - OperationCheck::number(right);
        return PairValue{dense.nngp + states + variances + (row.left == &right ? 1 : 0), 2 * dense.ntk};
      });
}

TEST_CASE("point evaluator: what has positions is no instruction here") {
  OperationCheck(dense_node(1, 0), {1}).check_refusal();
}
