#include "widelimit/network/row_stage.hpp"

#include <doctest/doctest.h>

#include <array>
#include <stdexcept>

#include "kernel/loop_stages.hpp"

using namespace widelimit;
using widelimit::numerics::AdjointRow;
using widelimit::numerics::DualRow;

namespace {

/// K' = 2 K, T' = 3 T, with a backward pass that adds 1 for inputs with themselves.
class ReversibleRowStage final : public RowStageOf<ReversibleRowStage> {
 public:
  [[nodiscard]] StageRules rules() const override { return {}; }
  [[nodiscard]] std::size_t auxiliary_count() const override { return 0; }
  template <typename Scalar>
  void prepare_row(const Scalar*, std::size_t, Scalar* const*) const {}
  template <typename Scalar>
  void apply_row(const DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) row.nngp[i] *= 2;
  }
  template <typename Scalar>
  void adjoint_row(const AdjointRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) row.nngp_adjoint[i] *= 2;
  }
  template <typename Scalar>
  void self_adjoint_row(const AdjointRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) row.nngp_adjoint[i] = 2 * row.nngp_adjoint[i] + 1;
  }
};

template <typename Scalar>
AdjointRow<Scalar> row_of(std::array<Scalar, 3>& adjoint) {
  AdjointRow<Scalar> row{};
  row.nngp_adjoint = adjoint.data();
  row.size = adjoint.size();
  return row;
}

template <typename Scalar>
void check_loop_row_stage() {
  const testing::LoopRowStage loops;
  const RowStage& stage = loops;
  const std::array<Scalar, 3> left{1, 2, 3}, right{0, 5, 4};
  std::array<Scalar, 3> left_numbers{}, right_numbers{};
  Scalar* left_place = left_numbers.data();
  Scalar* right_place = right_numbers.data();
  stage.prepare(left.data(), 3, &left_place);
  stage.prepare(right.data(), 3, &right_place);
  const auto applied = [&](auto member, bool with_ntk) {
    std::array<Scalar, 6> entries{1, -2, 3, 4, 5, 6};
    const Scalar* l = left_place;
    const Scalar* r = right_place;
    member(DualRow<Scalar>{entries.data(), with_ntk ? entries.data() + 3 : nullptr, &l, &r, 3});
    return entries;
  };
  using Six = std::array<Scalar, 6>;
  CHECK(applied([&](const auto& row) { stage.apply(row); }, true) == Six{4, 14, 26, 12, 15, 18});
  CHECK(applied([&](const auto& row) { stage.apply(row); }, false) == Six{4, 14, 26, 4, 5, 6});
  CHECK(applied([&](const auto& row) { stage.apply_self(row); }, true) == Six{7, 8, 35, 12, 15, 18});
  CHECK(applied([&](const auto& row) { stage.apply_to_multiples(row); }, true) == Six{9, 4, 41, 12, 15, 18});
}

template <typename Scalar>
void check_adjoints() {
  const ReversibleRowStage reversible;
  const RowStage& stage = reversible;
  std::array<Scalar, 3> adjoint{1, 2, 3};
  stage.apply_adjoint(row_of(adjoint));
  CHECK(adjoint == std::array<Scalar, 3>{2, 4, 6});
  stage.apply_self_adjoint(row_of(adjoint));
  CHECK(adjoint == std::array<Scalar, 3>{5, 9, 13});
  const testing::LoopRowStage loops;
  const RowStage& other = loops;
  CHECK_THROWS_WITH_AS(other.apply_adjoint(row_of(adjoint)),
                       "kernel: the adjoint of a stage that has none was called", std::logic_error);
  CHECK_THROWS_AS(other.apply_self_adjoint(row_of(adjoint)), std::logic_error);
  CHECK(adjoint == std::array<Scalar, 3>{5, 9, 13});
  other.prepare_adjoint(adjoint.data(), adjoint.size());
  CHECK(adjoint == std::array<Scalar, 3>{5, 9, 13});
}

}  // namespace

TEST_CASE("row stage: both precisions go through the templates of the derived class") {
  check_loop_row_stage<float>();
  check_loop_row_stage<double>();
}

TEST_CASE(
    "row stage: inputs with themselves and multiples are entries like others unless a stage says more") {
  const ReversibleRowStage reversible;
  const RowStage& stage = reversible;
  std::array<double, 2> entries{1, 2};
  const DualRow<double> row{entries.data(), nullptr, nullptr, nullptr, 2};
  stage.apply_self(row);
  CHECK(entries == std::array<double, 2>{2, 4});
  stage.apply_to_multiples(row);
  CHECK(entries == std::array<double, 2>{4, 8});
  CHECK(stage.multiples() == Multiples::unknown);
  CHECK_FALSE(stage.clears_gaps());
  CHECK_FALSE(stage.mixes_variances());
}

TEST_CASE("row stage: a backward pass is there where the derived class has one, and an error elsewhere") {
  CHECK(ReversibleRowStage().has_adjoint());
  CHECK_FALSE(testing::LoopRowStage().has_adjoint());
  check_adjoints<float>();
  check_adjoints<double>();
}
