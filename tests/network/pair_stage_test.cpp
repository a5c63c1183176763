#include "widelimit/network/pair_stage.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include "kernel/loop_stages.hpp"

using namespace widelimit;

namespace {

/// K' = 3 K, and a backward pass; `with_state` also one through prepare().
template <bool with_state>
class ReversiblePairStage final : public PairStageOf<ReversiblePairStage<with_state>> {
 public:
  [[nodiscard]] StageRules rules() const override { return {}; }
  [[nodiscard]] Shape output_shape(const Shape& input) const override { return input; }
  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}
  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    result.nngp = 3 * pair.nngp;
  }
  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>&, const PairAdjoint<Scalar>& adjoint) const {
    auto nngp = adjoint.nngp;
    nngp += 3 * adjoint.nngp_after;
  }
  template <typename Scalar>
  void adjoint_input(const SelfView<Scalar>&, const SelfAdjoint<Scalar>& adjoint) const requires with_state {
    auto nngp = adjoint.nngp;
    nngp.array() += adjoint.state_adjoint[0];
  }
};

/// Two inputs of two and three positions, and everything that a stage sees of them.
template <typename Scalar>
struct Pair {
  Shape left_shape{2}, right_shape{3};
  Matrix<Scalar> left{{4, 1}, {1, 5}}, nngp{{1, 2, 3}, {4, 5, 6}}, ntk{{6, 5, 4}, {3, 2, 1}};
  std::vector<Scalar> left_variance{4, 5}, right_variance{7, 8, 9}, left_state{8, 10},
      right_state{14, 16, 18};
  Matrix<Scalar> nngp_result = Matrix<Scalar>::Constant(2, 3, -1), ntk_result = nngp_result;
  std::vector<Scalar> scratch = std::vector<Scalar>(3);

  [[nodiscard]] SelfView<Scalar> self() const { return {{left.data(), 2, 2}, left_shape}; }
  [[nodiscard]] PairView<Scalar> view(Entries wanted, bool same_input) const {
    return {{nngp.data(), 2, 3},  {ntk.data(), 2, 3},
            left_variance.data(), right_variance.data(),
            left_state.data(),    right_state.data(),
            left_shape,           right_shape,
            same_input,           wanted};
  }
  [[nodiscard]] PairResult<Scalar> result() {
    return {{nngp_result.data(), 2, 3}, {ntk_result.data(), 2, 3}, scratch.data()};
  }
  [[nodiscard]] PairAdjoint<Scalar> adjoint() {
    return {{nngp.data(), 2, 3},
            {nullptr, 0, 0},
            {nngp_result.data(), 2, 3},
            {nullptr, 0, 0},
            nullptr,
            nullptr,
            nullptr,
            nullptr};
  }
};

template <typename Scalar>
void check_loop_pair_stage() {
  const testing::LoopPairStage loops;
  const PairStage& stage = loops;
  for (const bool same_input : {false, true}) {
    Pair<Scalar> pair;
    std::vector<Scalar> state(2);
    stage.prepare(pair.self(), state.data());
    CHECK(state == pair.left_state);
    PairResult<Scalar> result = pair.result();
    stage.apply(pair.view(Entries::all, same_input), result);
    for (Index a = 0; a < 2; ++a)
      for (Index b = 0; b < 3; ++b) {
        const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
        CHECK(pair.nngp_result(a, b) == pair.nngp(a, b) + pair.left_state[i] * pair.right_state[j] +
                                            pair.left_variance[i] - pair.right_variance[j] +
                                            (same_input ? 1 : 0));
        CHECK(pair.ntk_result(a, b) == 2 * pair.ntk(a, b));
      }
  }
  Pair<Scalar> pair;
  PairResult<Scalar> result = pair.result();
  stage.apply(pair.view(Entries::diagonal, false), result);
  CHECK(pair.nngp_result(0, 1) == -1);
  CHECK(pair.nngp_result(1, 1) == 5 + 160 + 5 - 8);
}

template <typename Scalar>
void check_adjoints_of_pairs() {
  Pair<Scalar> pair;
  Matrix<Scalar> self = Matrix<Scalar>::Zero(2, 2);
  const Scalar state = 0, slope = 2.5;
  const SelfAdjoint<Scalar> self_adjoint{&state, &slope, {self.data(), 2, 2}};
  const ReversiblePairStage<false> without;
  const PairStage& stage = without;
  stage.apply_adjoint(pair.view(Entries::all, false), pair.adjoint());
  CHECK(pair.nngp_result == (3 * pair.nngp.array() - 1).matrix());
  stage.prepare_adjoint(pair.self(), self_adjoint);
  CHECK(self.isZero(0));
  const ReversiblePairStage<true> with;
  const PairStage& other = with;
  other.prepare_adjoint(pair.self(), self_adjoint);
  CHECK((self.array() == slope).all());
  const testing::LoopPairStage loops;
  const PairStage& none = loops;
  CHECK_THROWS_WITH_AS(none.apply_adjoint(pair.view(Entries::all, false), pair.adjoint()),
                       "kernel: the adjoint of a stage that has none was called", std::logic_error);
  CHECK_NOTHROW(none.prepare_adjoint(pair.self(), self_adjoint));
}

}  // namespace

TEST_CASE("pair stage: both precisions go through the templates of the derived class") {
  check_loop_pair_stage<float>();
  check_loop_pair_stage<double>();
}

TEST_CASE("pair stage: a stage that says no more reads all covariances and keeps nothing") {
  const ReversiblePairStage<false> reversible;
  const PairStage& stage = reversible;
  CHECK(stage.input_entries(Entries::diagonal) == Entries::all);
  CHECK(stage.self_entries() == Entries::diagonal);
  CHECK(stage.state_size({7}) == 0);
  CHECK(stage.scratch_size({7}, {7}) == 0);
  CHECK(stage.flops({2, 3, Entries::all, true}) == 0);
  CHECK_NOTHROW(stage.check_graph(nullptr, {7}));
}

TEST_CASE("pair stage: a backward pass is there where the derived class has one, and an error elsewhere") {
  CHECK(ReversiblePairStage<false>().has_adjoint());
  CHECK(ReversiblePairStage<true>().has_adjoint());
  CHECK_FALSE(testing::LoopPairStage().has_adjoint());
  check_adjoints_of_pairs<float>();
  check_adjoints_of_pairs<double>();
}
