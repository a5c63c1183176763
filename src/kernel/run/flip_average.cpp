#include "widelimit/kernel/flip_average.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernel/inputs/copied_inputs.hpp"
#include "kernel/run/mirror_symmetry.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// The matrices of a result. Every average treats them alike; matrices that were not asked for are empty.
template <typename Scalar>
constexpr std::array kernel_matrices{&GramResult<Scalar>::nngp, &GramResult<Scalar>::ntk,
                                     &GramResult<Scalar>::nngp_error, &GramResult<Scalar>::ntk_error};

/// Inputs [first, first + count), or as many as there are.
template <typename Scalar>
Inputs<Scalar> some_inputs(const Inputs<Scalar>& x, Index first, Index count) {
  std::vector<Inputs<Scalar>> singles;
  for (Index i = first; i < std::min(first + count, x.size()); ++i) singles.push_back(x.single(i));
  std::vector<const Inputs<Scalar>*> batches;
  for (const Inputs<Scalar>& one : singles) batches.push_back(&one);
  return copied_inputs<Scalar, Scalar>(batches);
}

/// Reverses every row of `width` positions with `numbers` numbers each; `size` counts all numbers. The last spatial
/// axis is the one from left to right, so rows of any number of leading axes are consecutive.
template <typename Source, typename Target>
void flip_rows(Source source, std::ptrdiff_t size, std::ptrdiff_t width, std::ptrdiff_t numbers,
               Target target) {
  const std::ptrdiff_t row = width * numbers;
  for (std::ptrdiff_t at = 0; at < size; at += row)
    for (std::ptrdiff_t column = 0; column < width; ++column)
      std::copy_n(source + at + column * numbers, numbers, target + at + (width - 1 - column) * numbers);
}

template <typename Scalar>
Inputs<Scalar> flipped_numbers(const Inputs<Scalar>& x) {
  const auto flip = [&x](Index i, Scalar* target) {
    flip_rows(x[i].data(), static_cast<Index>(x[i].size()), x.shape(i).back(), x.channels(), target);
  };
  if (x.is_ragged()) {
    std::vector<xt::xarray<Scalar>> arrays;
    for (Index i = 0; i < x.size(); ++i) {
      std::vector<std::size_t> sizes(x.shape(i).begin(), x.shape(i).end());
      sizes.push_back(static_cast<std::size_t>(x.channels()));
      flip(i, arrays.emplace_back(xt::xarray<Scalar>::from_shape(sizes)).data());
    }
    return Inputs<Scalar>(std::move(arrays));
  }
  std::vector<std::size_t> sizes{static_cast<std::size_t>(x.size())};
  sizes.insert(sizes.end(), x.shape().begin(), x.shape().end());
  sizes.push_back(static_cast<std::size_t>(x.channels()));
  xt::xarray<Scalar> array = xt::xarray<Scalar>::from_shape(sizes);
  for (Index i = 0; i < x.size(); ++i) flip(i, array.data() + static_cast<std::size_t>(i) * x[i].size());
  return Inputs<Scalar>(std::move(array));
}

template <typename Scalar>
xt::xarray<bool> flipped_masks(const Inputs<Scalar>& x) {
  xt::xarray<bool> masks = joined_masks<Scalar>({&x});
  for (Index i = 0; i < x.size(); ++i) {
    const auto mask = x.mask(i);
    flip_rows(mask.begin(), static_cast<Index>(mask.size()), x.shape().back(), 1,
              masks.begin() + i * static_cast<Index>(mask.size()));
  }
  return masks;
}

template <typename Scalar>
std::vector<xt::xarray<bool>> flipped_mask_list(const Inputs<Scalar>& x) {
  std::vector<xt::xarray<bool>> masks = joined_mask_list<Scalar>({&x});
  for (Index i = 0; i < x.size(); ++i) {
    const auto mask = x.mask(i);
    flip_rows(mask.begin(), static_cast<Index>(mask.size()), x.shape(i).back(), 1,
              masks[static_cast<std::size_t>(i)].begin());
  }
  return masks;
}

[[noreturn]] void throw_no_axis(std::size_t axes) {
  throw ArgumentError(
      fmt::format("flip: expected inputs [n, spatial..., channels] with a spatial axis, got {} axes", axes));
}

[[noreturn]] void throw_graphs() {
  throw ArgumentError("flip: expected inputs without graphs, which have no left and right");
}

/// A weighted sum of Gram matrices. The progress of its parts is reported as that of one computation.
template <typename Scalar>
class GramMean {
 public:
  /// `pairs` in all parts together.
  GramMean(const GramOptions& options, Index pairs) : options_{options}, pairs_{pairs} {}

  /// Adds `weight` times compute(options), which computes so many pairs.
  template <typename Compute>
  void add(Index pairs, double weight, const Compute& compute) {
    GramOptions options = options_;
    // The options' own results are those of all parts together.
    ShortenedAttention shortened;
    if (options_.shortened_attention != nullptr) options.shortened_attention = &shortened;
    options.variances = nullptr;
    if (options_.progress)
      options.progress = [this, pairs](const GramProgress& part) {
        // A part of a sampled network counts its pairs once for each replicate, so its numbers are only used as a
        // share.
        const double share = static_cast<double>(part.done) / static_cast<double>(part.total);
        options_.progress({done_ + static_cast<Index>(share * static_cast<double>(pairs)), pairs_});
      };
    add(compute(options), weight);
    shortened_ = {std::max(shortened_.inputs, shortened.inputs),
                  std::max(shortened_.largest_rank, shortened.largest_rank),
                  std::max(shortened_.largest_tail, shortened.largest_tail)};
    if (options_.shortened_attention != nullptr) *options_.shortened_attention = shortened_;
    done_ += pairs;
  }

  [[nodiscard]] GramResult<Scalar> take() { return std::move(sum_); }

 private:
  void add(GramResult<Scalar> part, double weight) {
    for (const auto matrix : kernel_matrices<Scalar>) {
      // Standard errors are averaged like the kernels. The error of a mean is at most the mean of the errors, whether
      // or not the parts are independent.
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
  ShortenedAttention shortened_;
  GramResult<Scalar> sum_;
};

/// Replaces every matrix A by (A + A^T) / 2.
template <typename Scalar>
GramResult<Scalar> symmetrised(GramResult<Scalar> result) {
  for (const auto member : kernel_matrices<Scalar>) {
    Matrix<Scalar>& matrix = result.*member;
    for (Index i = 0; i < matrix.rows(); ++i)
      for (Index j = 0; j < i; ++j) matrix(i, j) = matrix(j, i) = (matrix(i, j) + matrix(j, i)) / 2;
  }
  return result;
}

}  // namespace

template <typename Scalar>
xt::xarray<Scalar> flipped(const xt::xarray<Scalar>& x) {
  if (x.dimension() < 3) throw_no_axis(x.dimension());
  xt::xarray<Scalar> result = xt::xarray<Scalar>::from_shape(x.shape());
  flip_rows(x.data(), static_cast<Index>(x.size()), static_cast<Index>(x.shape(x.dimension() - 2)),
            static_cast<Index>(x.shape().back()), result.data());
  return result;
}

template <typename Scalar>
Inputs<Scalar> flipped(const Inputs<Scalar>& x) {
  if (x.axes() == 0) throw_no_axis(2);
  if (!x.graphs().empty()) throw_graphs();
  const Inputs<Scalar> numbers = flipped_numbers(x);
  if (!x.is_masked()) return numbers;
  return x.is_ragged() ? Inputs<Scalar>(numbers, flipped_mask_list(x))
                       : Inputs<Scalar>(numbers, flipped_masks(x));
}

template <typename Scalar>
FlipAverage<Scalar>::FlipAverage(const Network& network, const Inputs<Scalar>& like,
                                 const GramOptions& options)
    : network_{network} {
  if (like.axes() == 0) throw_no_axis(2);
  if (!like.graphs().empty()) throw_graphs();
  const auto flip = [](const Inputs<double>& x) { return flipped(x); };
  symmetry_ = std::make_shared<const MirrorSymmetry>(network, like, flip, options);
}

template <typename Scalar>
bool FlipAverage<Scalar>::flips_both(const Inputs<Scalar>& x) const {
  return !symmetry_->holds_for(x);
}

template <typename Scalar>
GramResult<Scalar> FlipAverage<Scalar>::gram(const Inputs<Scalar>& x, const GramOptions& options) const {
  // The average is over four pairs: [K(x, x') + K(sx, sx') + K(sx, x') + K(x, sx')] / 4, where s exchanges left and
  // right. A network that does not tell left from right has K(sx, sx') = K(x, x'), which saves one of them.
  const Index n = x.size(), triangle = n * (n + 1) / 2;
  const bool both = flips_both(x);
  const Inputs<Scalar> other = flipped(x);
  GramMean<Scalar> mean(options, (both ? 2 : 1) * triangle + n * n);
  const double weight = both ? 0.25 : 0.5;
  mean.add(triangle, weight, [&](const auto& part) { return widelimit::gram(network_, x, part); });
  if (both)
    mean.add(triangle, weight, [&](const auto& part) { return widelimit::gram(network_, other, part); });
  // K(sx, x') is the transpose of K(x, sx'), or equal to it.
  mean.add(n * n, 0.5,
           [&](const auto& part) { return symmetrised(widelimit::gram(network_, x, other, part)); });
  if (options.variances != nullptr) *options.variances = {.first = variances_of(x, options)};
  return mean.take();
}

template <typename Scalar>
GramResult<Scalar> FlipAverage<Scalar>::gram(const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                                             const GramOptions& options) const {
  const Inputs<Scalar> flipped2 = flipped(x2);
  // Without flipping the left side, the two remaining pairs already have the mean of all four, because K(sx, sx') =
  // K(x, x') and K(sx, x') = K(x, sx').
  std::vector<Inputs<Scalar>> left{x1};
  if (flips_both(x1) || flips_both(x2)) left.push_back(flipped(x1));
  const Index pairs = x1.size() * x2.size(), parts = 2 * static_cast<Index>(left.size());
  GramMean<Scalar> mean(options, parts * pairs);
  for (const Inputs<Scalar>& one : left)
    for (const Inputs<Scalar>* other : {&x2, &flipped2})
      mean.add(pairs, 1 / static_cast<double>(parts),
               [&](const auto& part) { return widelimit::gram(network_, one, *other, part); });
  if (options.variances != nullptr)
    *options.variances = {.first = variances_of(x1, options), .second = variances_of(x2, options)};
  return mean.take();
}

template <typename Scalar>
typename FlipAverage<Scalar>::Prepared FlipAverage<Scalar>::prepare(const Inputs<Scalar>& x,
                                                                    const GramOptions& options) const {
  Prepared prepared{PreparedInputs<Scalar>(network_, x, options), std::nullopt};
  if (flips_both(x)) prepared.mirrored.emplace(network_, flipped(x), options);
  return prepared;
}

/// The kept inputs have states, so it is the few new inputs that are flipped: where only one side has to be, K(sx,
/// x') = K(x, sx').
template <typename Scalar>
GramResult<Scalar> FlipAverage<Scalar>::gram_with(const Inputs<Scalar>& x1, const Prepared& prepared,
                                                  const GramOptions& options) const {
  // The kept inputs have no mirrored states, but the new ones have a shape or mask for which the equation above is
  // not known. All four pairs are then computed without kept states.
  if (!prepared.mirrored && flips_both(x1)) return gram(x1, prepared.inputs.inputs(), options);
  const Inputs<Scalar> flipped1 = flipped(x1);
  std::vector<const PreparedInputs<Scalar>*> kept{&prepared.inputs};
  if (prepared.mirrored) kept.push_back(&*prepared.mirrored);
  const Index pairs = x1.size() * prepared.inputs.inputs().size(),
              parts = 2 * static_cast<Index>(kept.size());
  GramMean<Scalar> mean(options, parts * pairs);
  for (const PreparedInputs<Scalar>* other : kept)
    for (const Inputs<Scalar>* one : {&x1, &flipped1})
      mean.add(pairs, 1 / static_cast<double>(parts),
               [&](const auto& part) { return other->gram_with(*one, part); });
  return mean.take();
}

template <typename Scalar>
GramResult<Scalar> FlipAverage<Scalar>::diagonal(const Inputs<Scalar>& x, const GramOptions& options) const {
  // All pairs within a block are computed although only (i, i) and (i, si) are wanted. Computing these one by one
  // would make a plan and states for every single input, which costs more.
  constexpr Index block = 8;
  GramOptions quiet = options;
  quiet.progress = nullptr;
  quiet.variances = nullptr;
  quiet.shortened_attention = nullptr;
  GramResult<Scalar> result;
  for (Index first = 0; first < x.size(); first += block) {
    const auto part = gram(some_inputs(x, first, block), quiet);
    for (const auto member : kernel_matrices<Scalar>) {
      if ((part.*member).size() == 0) continue;
      (result.*member).conservativeResize(x.size(), 1);
      (result.*member).col(0).segment(first, (part.*member).rows()) = (part.*member).diagonal();
    }
  }
  return result;
}

template <typename Scalar>
Vector<double> FlipAverage<Scalar>::variances_of(const Inputs<Scalar>& x, const GramOptions& options) const {
  GramOptions alone = options;
  alone.kernels = Kernels::nngp;
  return diagonal(x, alone).nngp.col(0).template cast<double>();
}

template xt::xarray<float> flipped(const xt::xarray<float>&);
template xt::xarray<double> flipped(const xt::xarray<double>&);
template Inputs<float> flipped(const Inputs<float>&);
template Inputs<double> flipped(const Inputs<double>&);
template class FlipAverage<float>;
template class FlipAverage<double>;

}  // namespace widelimit
