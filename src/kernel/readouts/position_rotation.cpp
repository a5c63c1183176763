#include "kernel/readouts/position_rotation.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cstdint>

#include "numerics/gemm.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit {
namespace {

using numerics::gemm;
using numerics::Transpose;

/// Positions of a group. Groups of a fixed size keep the rotation cheap for any number of positions.
constexpr Index group_size = 32;
/// Columns that are rotated at once; their numbers in double fit the second-level cache.
constexpr Index tile_size = 64;
// The letters "turn". A fixed seed makes states, and so kernels, reproducible.
constexpr std::uint64_t rotation_seed = 0x7475726e;

/// A random orthogonal matrix whose last row takes the mean, so that a sum adds its largest term to the small ones and
/// rounds once where it would round to the last place of the largest all the way. Entries differ in size, unlike those
/// of a Hadamard matrix, which would make equal terms of a single position.
Matrix<double> random_rotation(Index size) {
  if (size == 0) return {};
  numerics::RandomStream random(rotation_seed, static_cast<std::uint64_t>(size));
  Eigen::MatrixXd columns = Eigen::MatrixXd::NullaryExpr(size, size, [&] { return random.normal(); });
  columns.col(0).setOnes();
  const Eigen::HouseholderQR<Eigen::MatrixXd> factors(columns);
  const Eigen::MatrixXd rotation = factors.householderQ() * Eigen::MatrixXd::Identity(size, size);
  return rotation.rowwise().reverse().transpose();
}

/// Q for inputs of one number of positions: within each group, then between the groups; positions that are left over
/// have a rotation of their own.
class PositionRotation {
 public:
  explicit PositionRotation(Index positions)
      : groups_{positions / group_size},
        rest_{positions % group_size},
        within_{random_rotation(group_size)},
        between_{random_rotation(groups_)},
        of_rest_{random_rotation(rest_)} {}

  /// Rotates the rows of `tile` [positions, columns].
  void apply(Matrix<double>& tile) {
    const Index columns = tile.cols(), group = group_size * columns;
    turned_.resize(tile.rows(), columns);
    for (Index i = 0; i < groups_; ++i)
      multiply(within_, tile.data() + i * group, columns, turned_.data() + i * group);
    // The rows of a group side by side are one row of a matrix [groups, group].
    if (groups_ > 0) multiply(between_, turned_.data(), group, tile.data());
    if (rest_ == 0) return;
    const Index grouped = groups_ * group;
    multiply(of_rest_, tile.data() + grouped, columns, turned_.data() + grouped);
    tile.bottomRows(rest_) = turned_.bottomRows(rest_);
  }

 private:
  static void multiply(const Matrix<double>& rotation, const double* from, Index columns, double* to) {
    const Index size = rotation.rows();
    gemm(Transpose::no, Transpose::no, size, columns, size, 1.0, {rotation.data(), size}, {from, columns},
         0.0, to, columns);
  }

  Index groups_;
  Index rest_;
  Matrix<double> within_;
  Matrix<double> between_;
  Matrix<double> of_rest_;
  Matrix<double> turned_;
};

}  // namespace

void rotate_rows(float* matrix, Index rows, Index columns) {
  PositionRotation rotation(rows);
  Eigen::Map<Matrix<float>> all(matrix, rows, columns);
  Matrix<double> tile;
  for (Index first = 0; first < columns; first += tile_size) {
    auto part = all.middleCols(first, std::min(tile_size, columns - first));
    tile = part.cast<double>();
    rotation.apply(tile);
    part = tile.cast<float>();
  }
}

void rotate_columns(float* matrix, Index rows, Index columns) {
  PositionRotation rotation(columns);
  Eigen::Map<Matrix<float>> all(matrix, rows, columns);
  Matrix<double> tile;
  for (Index first = 0; first < rows; first += tile_size) {
    auto part = all.middleRows(first, std::min(tile_size, rows - first));
    tile = part.transpose().cast<double>();
    rotation.apply(tile);
    part = tile.transpose().cast<float>();
  }
}

}  // namespace widelimit
