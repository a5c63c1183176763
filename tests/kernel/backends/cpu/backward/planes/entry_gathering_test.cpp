// Which entries meet in poolings and maps of positions, against dense matrices: K' = M K M'^T.
#include "kernel/backends/cpu/backward/planes/entry_gathering.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "network/plane_mapping.hpp"

namespace widelimit::testing::entry_gathering_test {
namespace {

using Axes = std::array<Matrix<double>, 3>;

/// The Kronecker product of matrices of the axes.
Matrix<double> all_axes(const Axes& axes) {
  Index3 rows, columns;
  for (std::size_t k = 0; k < 3; ++k) {
    rows[k] = axes[k].rows();
    columns[k] = axes[k].cols();
  }
  Matrix<double> matrix(product(rows), product(columns));
  for (Index r = 0; r < matrix.rows(); ++r)
    for (Index c = 0; c < matrix.cols(); ++c)
      matrix(r, c) = axes[0](r / (rows[1] * rows[2]), c / (columns[1] * columns[2])) *
                     axes[1](r / rows[2] % rows[1], c / columns[2] % columns[1]) *
                     axes[2](r % rows[2], c % columns[2]);
  return matrix;
}

Matrix<double> pooling(const PoolNode& node, const Index3& sizes) {
  const Window3 window(node.window);
  const Index3 front = window.front(sizes), output = window.output(sizes);
  Axes axes;
  for (std::size_t k = 0; k < 3; ++k) {
    axes[k] = Matrix<double>::Zero(output[k], sizes[k]);
    for (Index a = 0; a < output[k]; ++a)
      for (Index position = 0; position < sizes[k]; ++position) {
        const Index tap = position + front[k] - window.stride[k] * a;
        if (tap < 0 || tap >= window.size[k]) continue;
        axes[k](a, position) = node.kind == PoolKind::average ? 1 / static_cast<double>(window.size[k]) : 1.0;
      }
  }
  return all_axes(axes);
}

Matrix<double> mapping_matrix(const PlaneMapping& mapping, const Shape& shape) {
  const auto sparse = mapping.sparse_axes(shape);
  const Index3 sizes = three_axes(shape);
  Axes axes;
  for (std::size_t k = 0; k < 3; ++k) {
    axes[k] = Matrix<double>::Zero(sparse[k].rows(), sizes[k]);
    for (Index row = 0; row < sparse[k].rows(); ++row)
      for (std::size_t i = sparse[k].begin[static_cast<std::size_t>(row)];
           i < sparse[k].begin[static_cast<std::size_t>(row) + 1]; ++i)
        axes[k](row, sparse[k].column[i]) += sparse[k].weight[i];
  }
  return all_axes(axes);
}

/// All planes of a random covariance K, gathered, against M K M'^T.
void check_against(const EntryGathering& gathering, const Index3& left, const Index3& right,
                   const Matrix<double>& of_left, const Matrix<double>& of_right) {
  std::mt19937 generator(6);
  const std::vector<double> numbers = normal_numbers(product(left) * product(right), generator);
  const Eigen::Map<const Matrix<double>> covariance(numbers.data(), product(left), product(right));
  const Matrix<double> expected = of_left * covariance * of_right.transpose();
  Matrix<double> gathered = Matrix<double>::Zero(expected.rows(), expected.cols());
  for (Index x = 1 - left[0]; x < right[0]; ++x)
    for (Index y = 1 - left[1]; y < right[1]; ++y)
      for (Index z = 1 - left[2]; z < right[2]; ++z) {
        const auto plane = PlacedPlane::alone({x, y, z}, left, right);
        std::vector<double> entries(static_cast<std::size_t>(plane.layout.length));
        plane.for_each_piece([&](const Box& box, Index begin) {
          for_each_row(box.extent, [&](Index i, Index j) {
            for (Index k = 0; k < box.extent[2]; ++k) {
              const Index3 a{box.origin[0] + i, box.origin[1] + j, box.origin[2] + k};
              const Index3 b{a[0] + x, a[1] + y, a[2] + z};
              entries[static_cast<std::size_t>(begin + plane.layout.at(i, j) + k)] =
                  covariance(position_number(a, left), position_number(b, right));
            }
          });
        });
        gathering.for_each_meeting(plane, [&](std::size_t from, std::size_t to, double weight) {
          gathered.data()[to] += weight * entries[from];
        });
      }
  CHECK((gathered - expected).cwiseAbs().maxCoeff() < 1e-12);
}

TEST_CASE("EntryGathering: poolings of averages and sums, between inputs of one size and of two") {
  for (const PoolKind kind : {PoolKind::average, PoolKind::sum})
    for (const auto& [left, right] :
         {std::pair(Index3{1, 5, 4}, Index3{1, 5, 4}), std::pair(Index3{1, 5, 4}, Index3{1, 4, 3}),
          std::pair(Index3{3, 2, 4}, Index3{2, 2, 3})}) {
      const PoolNode node{{{2, 3, 2}, {1, 2, 1}, Padding::same}, kind};
      check_against(EntryGathering(node.window, node.kind, left, right), left, right, pooling(node, left),
                    pooling(node, right));
    }
}

TEST_CASE("EntryGathering: maps of positions") {
  const EngineProgram engine(
      R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "image_resize", "size": [5, 3]},
          {"layer": "conv", "filter": [3, 3]}, {"layer": "global_average_pool"}])",
      {3, 4}, 2);
  int maps = 0;
  for (const Node& node : engine.program.graph.nodes) {
    const auto* pair = std::get_if<PairNode>(&node.operation);
    const PlaneMapping* mapping = pair == nullptr ? nullptr : plane_mapping(pair->stage.get());
    if (mapping == nullptr) continue;
    ++maps;
    const Shape left{3, 4}, right{4, 2};
    check_against(EntryGathering(*mapping, left, right), three_axes(left), three_axes(right),
                  mapping_matrix(*mapping, left), mapping_matrix(*mapping, right));
  }
  CHECK(maps == 1);
}

}  // namespace
}  // namespace widelimit::testing::entry_gathering_test
