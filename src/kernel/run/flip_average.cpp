#include "widelimit/kernel/flip_average.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>
#include <xtensor/xview.hpp>

#include "widelimit/error.hpp"

namespace widelimit {
namespace {

template <typename Scalar>
constexpr std::array kernel_matrices{&GramResult<Scalar>::nngp, &GramResult<Scalar>::ntk,
                                     &GramResult<Scalar>::nngp_error, &GramResult<Scalar>::ntk_error};

template <typename Scalar>
xt::xarray<Scalar> first_inputs(const xt::xarray<Scalar>& x, std::size_t first, std::size_t count) {
  return xt::view(x, xt::range(first, std::min(first + count, x.shape(0))));
}

/// Adds up Gram matrices, and reports the progress of all of them as one.
template <typename Scalar>
class GramMean {
 public:
  /// `pairs` in all parts together.
  GramMean(const GramOptions& options, Index pairs) : options_{options}, pairs_{pairs} {}

  /// add(compute(options), transform): the next part, of so many pairs.
  template <typename Compute>
  void add(Index pairs, double weight, const Compute& compute) {
    GramOptions options = options_;
    if (options_.progress)
      options.progress = [this, pairs](const GramProgress& part) {
        const double share = static_cast<double>(part.done) / static_cast<double>(part.total);
        options_.progress({done_ + static_cast<Index>(share * static_cast<double>(pairs)), pairs_});
      };
    add(compute(options), weight);
    done_ += pairs;
  }

  [[nodiscard]] GramResult<Scalar> take() { return std::move(sum_); }

 private:
  void add(GramResult<Scalar> part, double weight) {
    for (const auto matrix : kernel_matrices<Scalar>) {
      part.*matrix *= static_cast<Scalar>(weight);
      if ((sum_.*matrix).size() == 0)
        sum_.*matrix = std::move(part.*matrix);
      else
        sum_.*matrix += part.*matrix;
    }
  }

  const GramOptions& options_;
  Index pairs_;
  Index done_ = 0;
  GramResult<Scalar> sum_;
};

/// Replaces A by (A + A^T) / 2.
template <typename Scalar>
GramResult<Scalar> symmetrised(GramResult<Scalar> result) {
  for (const auto member : kernel_matrices<Scalar>) {
    Matrix<Scalar>& matrix = result.*member;
    for (Index i = 0; i < matrix.rows(); ++i)
      for (Index j = 0; j < i; ++j) matrix(i, j) = matrix(j, i) = (matrix(i, j) + matrix(j, i)) / 2;
  }
  return result;
}

template <typename Scalar>
bool are_equal(const Matrix<Scalar>& kernel, const Matrix<Scalar>& flipped_kernel) {
  constexpr double tolerance = 100 * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  for (Index i = 0; i < kernel.rows(); ++i)
    for (Index j = 0; j < kernel.cols(); ++j) {
      const double scale = std::sqrt(static_cast<double>(kernel(i, i)) * static_cast<double>(kernel(j, j)));
      if (!(std::abs(static_cast<double>(kernel(i, j)) - static_cast<double>(flipped_kernel(i, j))) <=
            tolerance * scale))
        return false;
    }
  return true;
}

template <typename Scalar>
Index count_of(const xt::xarray<Scalar>& x) {
  return static_cast<Index>(x.shape(0));
}

}  // namespace

template <typename Scalar>
xt::xarray<Scalar> flipped(const xt::xarray<Scalar>& x) {
  if (x.dimension() < 3)
    throw ArgumentError(fmt::format(
        "flip: expected inputs [n, spatial..., channels] with a spatial axis, got {} axes", x.dimension()));
  const std::size_t channels = x.shape().back(), width = x.shape(x.dimension() - 2), row = width * channels;
  xt::xarray<Scalar> result = xt::xarray<Scalar>::from_shape(x.shape());
  for (std::size_t at = 0; at < x.size(); at += row)
    for (std::size_t column = 0; column < width; ++column)
      std::copy_n(x.data() + at + column * channels, channels,
                  result.data() + at + (width - 1 - column) * channels);
  return result;
}

template <typename Scalar>
FlipAverage<Scalar>::FlipAverage(const Network& network, const xt::xarray<Scalar>& probes,
                                 const GramOptions& options)
    : network_{network} {
  constexpr std::size_t probe_count = 4;
  GramOptions quiet = options;
  quiet.progress = nullptr;
  quiet.seconds_per_line = nullptr;
  const auto x = first_inputs(probes, 0, probe_count);
  const auto straight = widelimit::gram<Scalar>(network, x, quiet),
             mirrored = widelimit::gram<Scalar>(network, flipped(x), quiet);
  flips_both_ = !are_equal(straight.nngp, mirrored.nngp) || !are_equal(straight.ntk, mirrored.ntk);
}

template <typename Scalar>
GramResult<Scalar> FlipAverage<Scalar>::gram(const xt::xarray<Scalar>& x, const GramOptions& options) const {
  const Index n = count_of(x), triangle = n * (n + 1) / 2;
  const xt::xarray<Scalar> other = flipped(x);
  GramMean<Scalar> mean(options, (flips_both_ ? 2 : 1) * triangle + n * n);
  const double weight = flips_both_ ? 0.25 : 0.5;
  mean.add(triangle, weight, [&](const auto& part) { return widelimit::gram<Scalar>(network_, x, part); });
  if (flips_both_)
    mean.add(triangle, weight,
             [&](const auto& part) { return widelimit::gram<Scalar>(network_, other, part); });
  // K(sx, x') is the transpose of K(x, sx'), or equal to it.
  mean.add(n * n, 0.5,
           [&](const auto& part) { return symmetrised(widelimit::gram<Scalar>(network_, x, other, part)); });
  return mean.take();
}

template <typename Scalar>
GramResult<Scalar> FlipAverage<Scalar>::gram(const xt::xarray<Scalar>& x1, const xt::xarray<Scalar>& x2,
                                             const GramOptions& options) const {
  const Index pairs = count_of(x1) * count_of(x2);
  const xt::xarray<Scalar> flipped1 = flips_both_ ? flipped(x1) : xt::xarray<Scalar>{},
                           flipped2 = flipped(x2);
  std::vector<const xt::xarray<Scalar>*> left{&x1};
  if (flips_both_) left.push_back(&flipped1);
  const Index parts = 2 * static_cast<Index>(left.size());
  GramMean<Scalar> mean(options, parts * pairs);
  for (const xt::xarray<Scalar>* one : left)
    for (const xt::xarray<Scalar>* other : {&x2, &flipped2})
      mean.add(pairs, 1 / static_cast<double>(parts),
               [&](const auto& part) { return widelimit::gram<Scalar>(network_, *one, *other, part); });
  return mean.take();
}

template <typename Scalar>
GramResult<Scalar> FlipAverage<Scalar>::diagonal(const xt::xarray<Scalar>& x,
                                                 const GramOptions& options) const {
  // Pairs within a block are computed besides those that are wanted, (i, i); single pairs would cost more.
  constexpr std::size_t block = 8;
  GramOptions quiet = options;
  quiet.progress = nullptr;
  GramResult<Scalar> result;
  for (std::size_t first = 0; first < x.shape(0); first += block) {
    const auto part = gram(first_inputs(x, first, block), quiet);
    for (const auto member : kernel_matrices<Scalar>) {
      if ((part.*member).size() == 0) continue;
      (result.*member).conservativeResize(count_of(x), 1);
      (result.*member).col(0).segment(static_cast<Index>(first), (part.*member).rows()) =
          (part.*member).diagonal();
    }
  }
  return result;
}

template xt::xarray<float> flipped(const xt::xarray<float>&);
template xt::xarray<double> flipped(const xt::xarray<double>&);
template class FlipAverage<float>;
template class FlipAverage<double>;

}  // namespace widelimit
