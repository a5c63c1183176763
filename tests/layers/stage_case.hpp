#pragma once

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "network/lowering.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/pair_stage.hpp"
#include "widelimit/numerics/random_stream.hpp"

/// Pair stages with random numbers before them and behind.
namespace widelimit::testing {

/// The first pair stage that the layer lowers to, after a dense layer.
inline std::shared_ptr<const PairStage> stage_of(const Layer& layer, const Shape& shape) {
  const Network network({layers::dense(), layer, layers::global_average_pool()});
  const Graph graph = Lowering::lower(network, shape);
  for (const Node& node : graph.nodes)
    if (const auto* pair = std::get_if<PairNode>(&node.operation)) return pair->stage;
  FAIL("no pair stage");
  return nullptr;
}

enum class Kernels { nngp, both };

/// What stands before a stage.
struct PairSide {
  Shape shape;
  std::vector<std::uint8_t> counts = {};
  const InputGraph* graph = nullptr;
};

struct StageCase {
  std::shared_ptr<const PairStage> stage;
  PairSide left;
  PairSide right;
  bool same_input = false;
  Entries wanted = Entries::all;
  Kernels kernels = Kernels::both;
};

/// The numbers that a pair's result depends on, or their adjoints. Those of an input with itself stand in `nngp` alone.
template <typename Scalar>
struct PairNumbers {
  Matrix<Scalar> nngp;
  Matrix<Scalar> ntk;
  Matrix<Scalar> left_self;
  Matrix<Scalar> right_self;

  [[nodiscard]] std::vector<Matrix<Scalar>*> blocks() { return {&nngp, &ntk, &left_self, &right_self}; }

  template <typename Other>
  [[nodiscard]] PairNumbers<Other> cast() const {
    return {nngp.template cast<Other>(), ntk.template cast<Other>(), left_self.template cast<Other>(),
            right_self.template cast<Other>()};
  }
};

/// Positions that do not count have covariances 0.
inline void clear_uncounted(const PairSide& side, auto&& covariances) {
  for (std::size_t a = 0; a < side.counts.size(); ++a)
    if (side.counts[a] == 0) covariances(static_cast<Index>(a)).setZero();
}

/// Covariances of random vectors, of either sign and far from 0, where weights may have a kink; entries that the stage
/// does not ask for are NaN.
inline PairNumbers<double> random_numbers(const StageCase& stage_case, std::uint64_t seed) {
  numerics::RandomStream random(seed);
  const auto normals = [&](Index rows, Index columns) {
    Matrix<double> matrix(rows, columns);
    for (double& x : matrix.reshaped()) x = random.normal();
    return matrix;
  };
  constexpr Index channels = 12;
  const auto vectors = [&](Index positions) {
    Matrix<double> x = normals(positions, channels).array() + 1.5;
    for (Index a = 1; a < positions; a += 2) x.row(a) *= -1;
    return x;
  };
  const Index d = position_count(stage_case.left.shape), e = position_count(stage_case.right.shape);
  Matrix<double> left = vectors(d), right = vectors(e);
  if (stage_case.same_input) right = left;
  clear_uncounted(stage_case.left, [&](Index a) { return left.row(a); });
  clear_uncounted(stage_case.right, [&](Index a) { return right.row(a); });
  const auto covariances = [](const Matrix<double>& x, const Matrix<double>& y) {
    return Matrix<double>(x * y.transpose() / static_cast<double>(channels));
  };
  PairNumbers<double> numbers{covariances(left, right), {}, {}, {}};
  if (stage_case.kernels == Kernels::both) {
    numbers.ntk = normals(d, e);
    clear_uncounted(stage_case.left, [&](Index a) { return numbers.ntk.row(a); });
    clear_uncounted(stage_case.right, [&](Index a) { return numbers.ntk.col(a); });
  }
  if (!stage_case.same_input) {
    numbers.left_self = covariances(left, left);
    numbers.right_self = covariances(right, right);
  }
  const auto hide = [](Matrix<double>& matrix) {
    for (Index a = 0; a < matrix.rows(); ++a)
      for (Index b = 0; b < matrix.cols(); ++b)
        if (a != b) matrix(a, b) = std::numeric_limits<double>::quiet_NaN();
  };
  const bool reads_diagonal = stage_case.stage->input_entries(stage_case.wanted) == Entries::diagonal,
             prepares_diagonal = stage_case.stage->self_entries() == Entries::diagonal;
  if (reads_diagonal && (prepares_diagonal || !stage_case.same_input)) hide(numbers.nngp), hide(numbers.ntk);
  if (prepares_diagonal) hide(numbers.left_self), hide(numbers.right_self);
  return numbers;
}

/// Random adjoints of the wanted entries, 0 elsewhere.
inline PairNumbers<double> random_cotangents(const StageCase& stage_case, std::uint64_t seed) {
  numerics::RandomStream random(seed);
  const Index rows = position_count(stage_case.stage->output_shape(stage_case.left.shape));
  const Index columns = position_count(stage_case.stage->output_shape(stage_case.right.shape));
  const auto draw = [&] {
    Matrix<double> matrix = Matrix<double>::Zero(rows, columns);
    for (Index a = 0; a < rows; ++a)
      for (Index b = 0; b < columns; ++b)
        if (stage_case.wanted == Entries::all || a == b) matrix(a, b) = random.normal();
    return matrix;
  };
  PairNumbers<double> cotangents{draw(), {}, {}, {}};
  if (stage_case.kernels == Kernels::both) cotangents.ntk = draw();
  return cotangents;
}

}  // namespace widelimit::testing
