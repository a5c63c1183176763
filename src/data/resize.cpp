#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "widelimit/data/preprocessing.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

/// Index of the pixel that stands at `position` when the line is mirrored about the centres of its end
/// pixels.
std::size_t mirrored(std::ptrdiff_t position, std::size_t size) {
  if (size == 1) return 0;
  const auto last = static_cast<std::ptrdiff_t>(size) - 1;
  // The mirrored line repeats itself after one way forwards and one back.
  const std::ptrdiff_t period = 2 * last;
  const std::ptrdiff_t folded = ((position % period) + period) % period;
  return static_cast<std::size_t>(folded <= last ? folded : period - folded);
}

/// Weights of a normalised Gaussian at -radius ... radius, radius = 4 standard deviations rounded.
std::vector<double> gaussian_weights(double standard_deviation) {
  const auto radius = std::ptrdiff_t{std::lround(4 * standard_deviation)};
  std::vector<double> weights;
  double sum = 0;
  for (std::ptrdiff_t k = -radius; k <= radius; ++k) {
    // A radius of 0 leaves the line as it is; the standard deviation, by which one divides, may then be 0.
    const double z = radius == 0 ? 0 : static_cast<double>(k) / standard_deviation;
    weights.push_back(std::exp(-z * z / 2));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Blur and interpolation along one axis are linear: together a matrix [new size, old size].
Matrix<double> resize_matrix(std::size_t old_size, std::size_t new_size) {
  const double factor = static_cast<double>(old_size) / static_cast<double>(new_size);
  const auto weights = gaussian_weights(std::max(0.0, (factor - 1) / 2));
  const auto radius = static_cast<std::ptrdiff_t>(weights.size() / 2);
  Matrix<double> matrix =
      Matrix<double>::Zero(static_cast<Eigen::Index>(new_size), static_cast<Eigen::Index>(old_size));
  for (std::size_t i = 0; i < new_size; ++i) {
    // Pixel centres are at whole numbers, so that the line reaches from -1/2 to its size less 1/2.
    const double centre = (static_cast<double>(i) + 0.5) * factor - 0.5;
    const double left = std::floor(centre);
    for (std::ptrdiff_t side = 0; side < 2; ++side) {
      const double share = side == 0 ? 1 - (centre - left) : centre - left;
      // The blurred line is mirrored where the interpolation reaches past it, then the line itself under the
      // blur.
      const auto at =
          static_cast<std::ptrdiff_t>(mirrored(static_cast<std::ptrdiff_t>(left) + side, old_size));
      for (std::ptrdiff_t k = -radius; k <= radius; ++k) {
        matrix(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(mirrored(at + k, old_size))) +=
            share * weights[static_cast<std::size_t>(k + radius)];
      }
    }
  }
  return matrix;
}

}  // namespace

xt::xtensor<float, 4> resize_anti_aliased(const xt::xtensor<float, 4>& images, std::size_t height,
                                          std::size_t width) {
  const auto& shape = images.shape();
  if (height == 0 || width == 0 || shape[1] == 0 || shape[2] == 0) {
    throw ArgumentError(fmt::format("resize_anti_aliased: sizes must be positive, got {} x {} to {} x {}",
                                    shape[1], shape[2], height, width));
  }
  const Matrix<double> down = resize_matrix(shape[1], height);
  const Matrix<double> across = resize_matrix(shape[2], width);
  xt::xtensor<float, 4> result = xt::xtensor<float, 4>::from_shape({shape[0], height, width, shape[3]});

  const auto rows = static_cast<Eigen::Index>(shape[1]), columns = static_cast<Eigen::Index>(shape[2]);
  const auto new_rows = static_cast<Eigen::Index>(height), new_columns = static_cast<Eigen::Index>(width);
  const auto channels = static_cast<Eigen::Index>(shape[3]);
  // One row of an image holds its pixels' channels side by side: a row pass is one product for all channels,
  // a column pass one product for each new row.
  Matrix<double> narrowed(rows, new_columns * channels);
  for (std::size_t n = 0; n < shape[0]; ++n) {
    const Eigen::Map<const Matrix<float>> image(
        images.data() + static_cast<Eigen::Index>(n) * rows * columns * channels, rows * columns, channels);
    for (Eigen::Index r = 0; r < rows; ++r) {
      Eigen::Map<Matrix<double>> row(narrowed.row(r).data(), new_columns, channels);
      row.noalias() = across * image.middleRows(r * columns, columns).cast<double>();
    }
    Eigen::Map<Matrix<float>> target(
        result.data() + static_cast<Eigen::Index>(n) * new_rows * new_columns * channels, new_rows,
        new_columns * channels);
    target = (down * narrowed).cast<float>();
  }
  return result;
}

}  // namespace widelimit::data
