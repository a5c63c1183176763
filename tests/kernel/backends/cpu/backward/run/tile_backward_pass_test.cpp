// Tiles of pairs of a batch, whatever the tiles, against differences of Gram matrices.
#include "kernel/backends/cpu/backward/run/tile_backward_pass.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "kernel/differences.hpp"
#include "kernel/run/gram_run.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::tile_backward_pass_test {
namespace {

Matrix<double> random_cotangent(unsigned seed, Index rows, Index columns) {
  const auto numbers = random_inputs(seed, {rows, columns});
  return Eigen::Map<const Matrix<double>>(numbers.data(), rows, columns);
}

struct Gradients {
  xt::xarray<double> left, right;
};

/// Two batches, or one with itself, and the gradients by them of sums over rectangles of their kernels.
class TileCase {
 public:
  TileCase(const std::string& layers, const std::vector<Index>& left, const std::vector<Index>& right)
      : network_{parse_network(R"({"widelimit": 1, "layers": )" + layers + "}")},
        left_(random_inputs(51, left)),
        right_(random_inputs(52, right)),
        plan_{make_backward_plan(
            network_, {shapes_of(left_, "x1"), shapes_of(right_, "x2"), left_.channels(), InputMasks::absent},
            true)} {}

  [[nodiscard]] const Network& network() const { return network_; }
  [[nodiscard]] const Inputs<double>& left() const { return left_; }
  [[nodiscard]] const Inputs<double>& right() const { return right_; }
  [[nodiscard]] InputRange rows() const { return {0, left_.size()}; }
  [[nodiscard]] InputRange columns() const { return {0, right_.size()}; }

  struct Rectangle {
    InputRange rows, columns;
  };

  /// Of all of these rectangles; cotangents are those of the whole matrix.
  [[nodiscard]] Gradients gradients(const KernelCotangents<double>& cotangents,
                                    const std::vector<Rectangle>& tiles, bool right_wanted = true) const {
    BatchRecords<double> left_records(plan_, left_), right_records(plan_, right_);
    TileBackwardPass<double> pass(plan_);
    for (Index i = 0; i < left_.size(); ++i) pass.record(left_, left_records, i, {});
    for (Index j = 0; j < right_.size(); ++j) pass.record(right_, right_records, j, {});
    BatchAdjoints<double> of_left(left_records), of_right(right_records);
    const TileBatch<double> left{left_, left_records, of_left},
        right{right_, right_records, of_right, right_wanted};
    for (const auto& [rows, columns] : tiles) {
      const auto part = [&, r = rows, c = columns](const Matrix<double>& whole) {
        return Matrix<double>(whole.block(r.begin, c.begin, r.size(), c.size()));
      };
      const Matrix<double> nngp = part(cotangents.nngp), ntk = part(cotangents.ntk);
      pass.tile(left, rows, right, columns, {&nngp, &ntk}, false, {});
      add_vectors(pass, left, rows, right, columns);
    }
    for (Index i = 0; i < left_.size(); ++i) pass.self_backward(left, i, {});
    for (Index j = 0; j < right_.size(); ++j) pass.self_backward(right, j, {});
    return {input_gradient(plan_, left_, of_left), input_gradient(plan_, right_, of_right)};
  }

  /// Of the left batch with itself, in one tile.
  [[nodiscard]] xt::xarray<double> symmetric_gradient(const KernelCotangents<double>& cotangents) const {
    BatchRecords<double> records(plan_, left_);
    TileBackwardPass<double> pass(plan_);
    for (Index i = 0; i < left_.size(); ++i) pass.record(left_, records, i, {});
    BatchAdjoints<double> adjoints(records), as_right(records);
    const TileBatch<double> left{left_, records, adjoints}, right{left_, records, as_right};
    const InputRange all{0, left_.size()};
    pass.tile(left, all, right, all, {&cotangents.nngp, &cotangents.ntk}, true, {});
    add_vectors(pass, left, all, right, all);
    for (std::size_t v = 0; v < plan_.vector_count; ++v) adjoints.vectors[v] += as_right.vectors[v];
    adjoints.add(as_right);
    for (Index i = 0; i < left_.size(); ++i) pass.self_backward(left, i, {});
    return input_gradient(plan_, left_, adjoints);
  }

 private:
  /// What the products of vectors give to the vectors, which a tile leaves to its caller.
  void add_vectors(const TileBackwardPass<double>& pass, const TileBatch<double>& left,
                   const InputRange& rows, const TileBatch<double>& right, const InputRange& columns) const {
    for (std::size_t v = 0; v < plan_.vector_count; ++v) {
      const auto of_left = left.records.vectors[v].rows(), of_right = right.records.vectors[v].rows();
      const auto channels = static_cast<double>(of_left.cols());
      for (const TileBatch<double>* batch : {&left, &right})
        if (Matrix<double>& vectors = batch->adjoints.vectors[v]; vectors.size() == 0)
          vectors.setZero(batch->x.size(), of_left.cols());
      const Matrix<double>& products = pass.product_adjoint(v);
      left.adjoints.vectors[v].middleRows(rows.begin, rows.size()) +=
          products * of_right.middleRows(columns.begin, columns.size()) / channels;
      right.adjoints.vectors[v].middleRows(columns.begin, columns.size()) +=
          products.transpose() * of_left.middleRows(rows.begin, rows.size()) / channels;
    }
  }

  Network network_;
  Inputs<double> left_, right_;
  BackwardPlan plan_;
};

/// The numbers of a batch, in the shape of its gradient.
xt::xarray<double> numbers_of(const Inputs<double>& x, const xt::xarray<double>& gradient) {
  xt::xarray<double> numbers = gradient;
  std::size_t next = 0;
  for (Index i = 0; i < x.size(); ++i)
    for (const double number : x[i]) numbers.flat(next++) = number;
  return numbers;
}

KernelCotangents<double> cotangents_of(Index rows, Index columns) {
  KernelCotangents<double> cotangents{random_cotangent(1, rows, columns), random_cotangent(2, rows, columns)};
  cotangents.nngp(0, columns - 1) = cotangents.ntk(0, columns - 1) = 0;  // A pair that is left out.
  return cotangents;
}

void check_near(const xt::xarray<double>& one, const xt::xarray<double>& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(one.flat(i) == doctest::Approx(other.flat(i)).epsilon(1e-11).scale(1e-2));
}

const std::string vectors =
    R"([{"layer": "dense", "weight_variance": 1.4, "bias_variance": 0.1}, {"layer": "erf"}, {"layer": "dense"},
        {"layer": "gelu"}, {"layer": "dense"}])";
const std::string sequences =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "erf"}, {"layer": "conv", "filter": [3]},
        {"layer": "global_average_pool"}, {"layer": "dense"}, {"layer": "erf"}, {"layer": "dense"}])";
/// Only a linear layer after the positions: readouts are not read there.
const std::string linear_end =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "erf"}, {"layer": "flatten"}, {"layer": "dense"}])";

std::vector<TileCase> cases() {
  std::vector<TileCase> all;
  all.emplace_back(vectors, std::vector<Index>{4, 3}, std::vector<Index>{5, 3});
  all.emplace_back(sequences, std::vector<Index>{3, 5, 2}, std::vector<Index>{4, 5, 2});
  all.emplace_back(linear_end, std::vector<Index>{3, 4, 2}, std::vector<Index>{2, 4, 2});
  return all;
}

TEST_CASE("TileBackwardPass: one tile has the slopes of the Gram matrix, by both batches") {
  for (const TileCase& batches : cases()) {
    const auto cotangents = cotangents_of(batches.left().size(), batches.right().size());
    const Gradients found = batches.gradients(cotangents, {{batches.rows(), batches.columns()}});
    const xt::xarray<double> left = numbers_of(batches.left(), found.left),
                             right = numbers_of(batches.right(), found.right);
    CHECK(worst_difference(left, found.left, [&](const xt::xarray<double>& x) {
            return weighted_sum(cotangents, gram(batches.network(), Inputs<double>(x), batches.right()));
          }) < 1e-8);
    CHECK(worst_difference(right, found.right, [&](const xt::xarray<double>& x) {
            return weighted_sum(cotangents, gram(batches.network(), batches.left(), Inputs<double>(x)));
          }) < 1e-8);
  }
}

TEST_CASE("TileBackwardPass: tiles add up to the whole, down to single pairs") {
  for (const TileCase& batches : cases()) {
    const auto cotangents = cotangents_of(batches.left().size(), batches.right().size());
    const InputRange rows = batches.rows(), columns = batches.columns();
    const Gradients whole = batches.gradients(cotangents, {{rows, columns}});
    std::vector<TileCase::Rectangle> quarters, single;
    for (const InputRange& r : {InputRange{0, 1}, InputRange{1, rows.end}})
      for (const InputRange& c : {InputRange{0, 1}, InputRange{1, columns.end}}) quarters.push_back({r, c});
    for (Index i = 0; i < rows.end; ++i)
      for (Index j = 0; j < columns.end; ++j) single.push_back({{i, i + 1}, {j, j + 1}});
    for (const auto& tiles : {quarters, single}) {
      const Gradients parts = batches.gradients(cotangents, tiles);
      check_near(parts.left, whole.left);
      check_near(parts.right, whole.right);
    }
  }
}

TEST_CASE("TileBackwardPass: no cotangents, no gradient; and none of a side that is not wanted") {
  for (const TileCase& batches : cases()) {
    const Index rows = batches.left().size(), columns = batches.right().size();
    const KernelCotangents<double> nothing{Matrix<double>::Zero(rows, columns),
                                           Matrix<double>::Zero(rows, columns)};
    const Gradients none = batches.gradients(nothing, {{batches.rows(), batches.columns()}});
    for (const xt::xarray<double>* gradient : {&none.left, &none.right})
      for (const double entry : *gradient) CHECK(entry == 0);
    const auto cotangents = cotangents_of(rows, columns);
    const std::vector<TileCase::Rectangle> all{{batches.rows(), batches.columns()}};
    CHECK(batches.gradients(cotangents, all, false).left == batches.gradients(cotangents, all).left);
  }
}

TEST_CASE("TileBackwardPass: a batch with itself, whose diagonal holds inputs with themselves") {
  for (const TileCase& batches : cases()) {
    const Index n = batches.left().size();
    KernelCotangents<double> cotangents = cotangents_of(n, n);
    for (Matrix<double>* matrix : {&cotangents.nngp, &cotangents.ntk})
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < i; ++j) (*matrix)(i, j) = 0;
    const xt::xarray<double> found = batches.symmetric_gradient(cotangents);
    const xt::xarray<double> x = numbers_of(batches.left(), found);
    CHECK(worst_difference(x, found, [&](const xt::xarray<double>& shifted) {
            return weighted_sum(cotangents, gram(batches.network(), Inputs<double>(shifted)));
          }) < 1e-8);
  }
}

}  // namespace
}  // namespace widelimit::testing::tile_backward_pass_test
