#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "layers/stage_case.hpp"

/// The backward passes of pair stages against differences of the stages themselves.
namespace widelimit::testing {

/// A stage at some numbers.
template <typename Scalar>
class StageRun {
 public:
  StageRun(const StageCase& stage_case, const PairNumbers<Scalar>& numbers)
      : case_{stage_case},
        numbers_{numbers},
        stage_{*stage_case.stage},
        left_{prepared(stage_case.left, numbers.left_self)},
        right_{stage_case.same_input ? left_ : prepared(stage_case.right, numbers.right_self)},
        left_variance_{self(numbers.left_self).diagonal()},
        right_variance_{self(numbers.right_self).diagonal()} {}

  /// sum cotangent o result over the wanted entries.
  [[nodiscard]] double weighted(const PairNumbers<Scalar>& cotangents) const {
    const Index rows = cotangents.nngp.rows(), columns = cotangents.nngp.cols();
    const Scalar nan = std::numeric_limits<Scalar>::quiet_NaN();
    Matrix<Scalar> nngp = Matrix<Scalar>::Constant(rows, columns, nan), ntk = nngp;
    if (case_.kernels == Kernels::nngp) ntk.resize(0, 0);
    std::vector<Scalar> scratch(stage_.scratch_size(case_.left.shape, case_.right.shape));
    PairResult<Scalar> result{map(nngp), map(ntk), scratch.data()};
    stage_.apply(view(), result);
    double sum = 0;
    for (Index a = 0; a < rows; ++a)
      for (Index b = 0; b < columns; ++b) {
        if (case_.wanted == Entries::diagonal && a != b) continue;
        sum += static_cast<double>(nngp(a, b) * cotangents.nngp(a, b));
        if (ntk.size() > 0) sum += static_cast<double>(ntk(a, b) * cotangents.ntk(a, b));
      }
    return sum;
  }

  /// The adjoints of all numbers by the stage's backward pass, which is given arrays that are not 0.
  [[nodiscard]] PairNumbers<Scalar> adjoints(const PairNumbers<Scalar>& cotangents) const {
    const Scalar start = Scalar(0.5);
    PairNumbers<Scalar> bars = numbers_;
    for (Matrix<Scalar>* block : bars.blocks()) block->setConstant(start);
    std::vector<Scalar> left(left_.size(), 0), right(right_.size(), 0);
    std::vector<Scalar>& right_or_same = case_.same_input ? left : right;
    Vector<Scalar> left_variance = Vector<Scalar>::Zero(left_variance_.size()),
                   right_variance = Vector<Scalar>::Zero(right_variance_.size());
    stage_.apply_adjoint(view(),
                         {cmap(cotangents.nngp), cmap(cotangents.ntk), map(bars.nngp), map(bars.ntk),
                          left_variance.data(), right_variance.data(), left.data(), right_or_same.data()});
    go_back_in(case_.left, left_, left, numbers_.left_self, case_.same_input ? bars.nngp : bars.left_self);
    if (!case_.same_input) go_back_in(case_.right, right_, right, numbers_.right_self, bars.right_self);
    add_diagonal(left_variance, case_.same_input ? bars.nngp : bars.left_self);
    add_diagonal(right_variance, case_.same_input ? bars.nngp : bars.right_self);
    for (Matrix<Scalar>* block : bars.blocks()) block->array() -= start;
    return bars;
  }

 private:
  using Map = Eigen::Map<Matrix<Scalar>>;
  using ConstMap = Eigen::Map<const Matrix<Scalar>>;

  static Map map(Matrix<Scalar>& matrix) { return {matrix.data(), matrix.rows(), matrix.cols()}; }
  static ConstMap cmap(const Matrix<Scalar>& matrix) { return {matrix.data(), matrix.rows(), matrix.cols()}; }
  static void add_diagonal(const Vector<Scalar>& variance, Matrix<Scalar>& target) {
    target.diagonal() += variance;
  }

  [[nodiscard]] const Matrix<Scalar>& self(const Matrix<Scalar>& other) const {
    return case_.same_input ? numbers_.nngp : other;
  }
  [[nodiscard]] SelfView<Scalar> self_view(const PairSide& side, const Matrix<Scalar>& other) const {
    return {cmap(self(other)), side.shape, {}, side.counts, side.graph};
  }

  std::vector<Scalar> prepared(const PairSide& side, const Matrix<Scalar>& other) const {
    std::vector<Scalar> state(stage_.state_size(side.shape));
    stage_.prepare(self_view(side, other), state.data());
    return state;
  }
  void go_back_in(const PairSide& side, const std::vector<Scalar>& state, const std::vector<Scalar>& adjoint,
                  const Matrix<Scalar>& other, Matrix<Scalar>& target) const {
    stage_.prepare_adjoint(self_view(side, other), {state.data(), adjoint.data(), map(target)});
  }

  [[nodiscard]] PairView<Scalar> view() const {
    return {.nngp = cmap(numbers_.nngp),
            .ntk = cmap(numbers_.ntk),
            .left_variance = left_variance_.data(),
            .right_variance = right_variance_.data(),
            .left_state = left_.data(),
            .right_state = right_.data(),
            .left_shape = case_.left.shape,
            .right_shape = case_.right.shape,
            .same_input = case_.same_input,
            .wanted = case_.wanted,
            .left_graph = case_.left.graph,
            .right_graph = case_.right.graph};
  }

  const StageCase& case_;
  const PairNumbers<Scalar>& numbers_;
  const PairStage& stage_;
  std::vector<Scalar> left_;
  std::vector<Scalar> right_;
  Vector<Scalar> left_variance_;
  Vector<Scalar> right_variance_;
};

inline double largest(const Matrix<double>& matrix) {
  return matrix.size() == 0 ? 0 : matrix.cwiseAbs().maxCoeff();
}

/// The largest deviation of the backward pass in double from differences of sixth order of `reference`, a stage that
/// should make the same of them, and in float from double; both in units of the largest adjoint. Numbers that are NaN,
/// or 0 as of positions that do not count, are left out, and must have finite adjoints.
struct AdjointErrors {
  double in_double = 0;
  double in_float = 0;
};
inline AdjointErrors adjoint_errors(const StageCase& stage_case, const PairStage& reference,
                                    std::uint64_t seed) {
  const PairNumbers<double> numbers = random_numbers(stage_case, seed),
                            cotangents = random_cotangents(stage_case, seed + 1);
  PairNumbers<double> back = StageRun<double>(stage_case, numbers).adjoints(cotangents);
  const auto float_numbers = numbers.cast<float>(), float_cotangents = cotangents.cast<float>();
  PairNumbers<double> float_back =
      StageRun<float>(stage_case, float_numbers).adjoints(float_cotangents).cast<double>();
  StageCase reference_case = stage_case;
  reference_case.stage = std::shared_ptr<const PairStage>(std::shared_ptr<const PairStage>(), &reference);
  double scale = 0;
  for (const Matrix<double>* block : back.blocks()) scale = std::max(scale, largest(*block));
  PairNumbers<double> shifted = numbers;
  AdjointErrors errors;
  const auto value_at = [&](double& number, double middle, double shift) {
    number = middle + shift;
    const double value = StageRun<double>(reference_case, shifted).weighted(cotangents);
    number = middle;
    return value;
  };
  for (std::size_t k = 0; k < back.blocks().size(); ++k) {
    Matrix<double>& block = *shifted.blocks()[k];
    CHECK(back.blocks()[k]->allFinite());
    CHECK(float_back.blocks()[k]->allFinite());
    for (Index i = 0; i < block.size(); ++i) {
      double& number = block.data()[i];
      const double middle = number;
      if (std::isnan(middle) || middle == 0) continue;
      constexpr double h = 4e-3;
      double slope = 0, weight = 45;
      for (int step = 1; step <= 3; ++step) {
        slope +=
            weight * (value_at(number, middle, step * h) - value_at(number, middle, -step * h)) / (60 * h);
        weight = step == 1 ? -9 : 1;
      }
      const double way_back = back.blocks()[k]->data()[i];
      errors.in_double = std::max(errors.in_double, std::abs(way_back - slope) / scale);
      errors.in_float =
          std::max(errors.in_float, std::abs(way_back - float_back.blocks()[k]->data()[i]) / scale);
    }
  }
  return errors;
}

struct AdjointTolerances {
  double in_double;
  double in_float;
};

/// Checks pairs of ragged inputs and an input with itself, all entries
/// wanted or the diagonal, with and without the NTK.
inline void check_adjoint(const std::shared_ptr<const PairStage>& stage, const PairSide& left,
                          const PairSide& right, const AdjointTolerances& tolerances,
                          std::shared_ptr<const PairStage> reference = nullptr) {
  REQUIRE(stage->has_adjoint());
  if (!reference) reference = stage;
  std::uint64_t seed = 17;
  for (const bool same_input : {false, true})
    for (const Entries wanted : {Entries::all, Entries::diagonal})
      for (const Kernels kernels : {Kernels::both, Kernels::nngp}) {
        CAPTURE(same_input);
        CAPTURE((wanted == Entries::all));
        CAPTURE((kernels == Kernels::both));
        const auto errors = adjoint_errors(
            {stage, left, same_input ? left : right, same_input, wanted, kernels}, *reference, seed += 2);
        CHECK(errors.in_double < tolerances.in_double);
        CHECK(errors.in_float < tolerances.in_float);
      }
}

}  // namespace widelimit::testing
