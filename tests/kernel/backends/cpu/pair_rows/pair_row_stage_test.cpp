// A row stage on rows of pairs, against the rule that belongs to each pair.
#include "kernel/backends/cpu/pair_rows/pair_row_stage.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "kernel/backends/cpu/pair_rows/pair_row_program.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// Inputs 1 and 2 on the left, 0 to 3 on the right; input 1 has a multiple on the right, input 3, and 2 has none.
class StageCheck {
 public:
  explicit StageCheck(bool with_ntk) : memory_(points_.program, points_.state, with_ntk, 2 * row_padding, 1) {
    const Plane<double> target = memory_.slot(0);
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      target.nngp[k] = 0.5 + static_cast<double>(k);
      if (with_ntk) target.ntk[k] = 10 - static_cast<double>(k);
    }
  }

  void check(bool keeps_multiples) {
    const Plane<double> target = memory_.slot(0);
    memory_.arrays(row_instruction).gather_right(rows_, 2);
    apply_row_stage(stage_, rows_, memory_.arrays(row_instruction), keeps_multiples, target);
    rows_.for_each([&](const PairRow<double>& row, Index place) {
      for (Index column = 0; column < 4; ++column) {
        const bool is_multiple =
            keeps_multiples && std::count(row.multiples.begin(), row.multiples.end(), column) > 0;
        const double factor = column == row.same ? LoopRowStage::itself
                              : is_multiple      ? LoopRowStage::multiple
                                                 : LoopRowStage::usual;
        const double left = number(*row.left), right = number(states_[static_cast<std::size_t>(column)]);
        const auto k = static_cast<double>(place + column);
        CHECK(target.nngp[place + column] ==
              doctest::Approx(factor * (0.5 + k) + left * right).epsilon(1e-14));
        if (target.ntk != nullptr) CHECK(target.ntk[place + column] == LoopRowStage::ntk * (10 - k));
      }
    });
  }

 private:
  static constexpr std::size_t row_instruction = 1;
  static double number(const InputState<double>& state) { return state.array(1, 0)[0]; }

  const LoopRowStage stage_;
  const PairRowProgram points_{{{InputNode{}, {}}, {RowNode{std::make_shared<LoopRowStage>()}, {0}}}};
  const PairRowStates states_{points_, {1, 2, 3, 4}};
  const std::vector<PairRow<double>> lefts_{{&states_[1], 1, {3}}, {&states_[2], 2, {}}};
  const PairRows<double> rows_{lefts_, states_.inputs()};
  PairRowMemory<double> memory_;
};

}  // namespace

TEST_CASE("row stage after positions: inputs with themselves, multiples and the rest") {
  for (const bool with_ntk : {false, true})
    for (const bool keeps_multiples : {false, true}) StageCheck(with_ntk).check(keeps_multiples);
}
