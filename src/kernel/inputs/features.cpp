#include "kernel/inputs/features.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel/plan/geometry.hpp"

namespace widelimit {
namespace {

/// Applies one transform after the other to features, in place. Its operators are those of the alternatives of
/// FeatureTransform; feature_adjoints.* has their adjoints.
template <typename Scalar>
class Transformer {
 public:
  Transformer(Features<Scalar>& features, std::span<const std::uint8_t> counts)
      : features_{features}, counts_{counts} {}

  void operator()(const FeaturePool& pool) {
    const Window3 window(pool.window);
    const Index3 input = three_axes(features_.shape), output = window.output(input),
                 front = window.front(input);
    const Scalar weight =
        pool.kind == PoolKind::average ? Scalar{1} / static_cast<Scalar>(product(window.size)) : Scalar{1};
    std::vector<Scalar> pooled;
    pooled.reserve(static_cast<std::size_t>(features_.channels * product(output)));
    for (Index channel = 0; channel < features_.channels; ++channel)
      for_each_row({output[0], output[1], output[2]}, [&](Index i, Index j) {
        for (Index k = 0; k < output[2]; ++k)
          pooled.push_back(weight *
                           window_sum(channel, input, window,
                                      {i * window.stride[0] - front[0], j * window.stride[1] - front[1],
                                       k * window.stride[2] - front[2]}));
      });
    const std::size_t axes = features_.shape.size();
    features_.shape.assign(output.end() - static_cast<Index>(axes), output.end());
    features_.values = std::move(pooled);
  }

  void operator()(const FeatureReadout& readout) {
    const Index d = position_count(features_.shape);
    features_.shape = {};
    if (readout.kind == ReadoutKind::flatten) {
      features_.channels *= d;
      return;
    }
    const double weight = readout.kind == ReadoutKind::average ? 1 / static_cast<double>(d) : 1;
    std::vector<Scalar> pooled;
    // Sums over an input are long, and in double they cost nothing beside the pairs.
    for (auto begin = features_.values.begin(); begin != features_.values.end(); begin += d)
      pooled.push_back(static_cast<Scalar>(weight * std::accumulate(begin, begin + d, 0.0)));
    features_.values = std::move(pooled);
  }

  void operator()(const FeatureNorm& norm) {
    for (std::vector<Index>& group : norm.axes.groups(features_.shape)) {
      std::erase_if(group,
                    [&](Index a) { return !counts_.empty() && counts_[static_cast<std::size_t>(a)] == 0; });
      if (!group.empty()) normalise(norm, group);
    }
  }

 private:
  Scalar window_sum(Index channel, const Index3& input, const Window3& window, const Index3& first) const {
    Scalar sum = 0;
    for (Index x = std::max<Index>(first[0], 0); x < std::min(first[0] + window.size[0], input[0]); ++x)
      for (Index y = std::max<Index>(first[1], 0); y < std::min(first[1] + window.size[1], input[1]); ++y)
        for (Index z = std::max<Index>(first[2], 0); z < std::min(first[2] + window.size[2], input[2]); ++z)
          sum += value(channel * product(input) + (x * input[1] + y) * input[2] + z);
    return sum;
  }

  Scalar value(Index i) const { return features_.values[static_cast<std::size_t>(i)]; }

  /// A power of two by which numbers up to `largest` are divided before they are squared, so that the squares stay in
  /// the range of double. It is 1 if they do so anyway. With an epsilon, small numbers need no unit, because their
  /// squares vanish beside it.
  static double unit_of(double largest, double epsilon) {
    constexpr double far = 1e100;
    const bool is_small = largest > 0 && largest < 1 / far && epsilon == 0;
    return is_small || largest > far ? std::ldexp(1.0, std::ilogb(largest)) : 1;
  }

  /// Normalises some positions, all channels together. It computes in double, because sums over all entries of an
  /// image are long.
  void normalise(const FeatureNorm& norm, const std::vector<Index>& positions) {
    const Index d = position_count(features_.shape);
    const auto for_each = [&](const auto& body) {
      for (Index channel = 0; channel < features_.channels; ++channel)
        for (const Index position : positions)
          body(features_.values[static_cast<std::size_t>(channel * d + position)]);
    };
    const double entries = static_cast<double>(features_.channels) * static_cast<double>(positions.size());
    double largest = 0;
    for_each([&](Scalar value) { largest = std::max(largest, std::abs(static_cast<double>(value))); });
    const double unit = unit_of(largest, norm.epsilon), epsilon = norm.epsilon / unit / unit;
    // Values are taken relative to one of them. If all are equal, the differences are then exactly 0; a rounding
    // error in the mean would be divided by its own size and become 1.
    double origin = 0, mean = 0;
    if (norm.centring == Centring::over_axes) {
      origin = static_cast<double>(features_.values[static_cast<std::size_t>(positions.front())]) / unit;
      for_each([&](Scalar value) { mean += (static_cast<double>(value) / unit - origin) / entries; });
    }
    const auto centred = [&](Scalar value) { return static_cast<double>(value) / unit - origin - mean; };
    double variance = 0;
    for_each([&](Scalar value) { variance += centred(value) * centred(value) / entries; });
    const double shifted = variance + epsilon;
    // A norm without epsilon has no limit at 0 and leaves zeros (docs/theory/kernel-recursion.md, section 3).
    const double factor = shifted > 0 ? 1 / std::sqrt(shifted) : 0;
    for_each([&](Scalar& value) { value = static_cast<Scalar>(centred(value) * factor); });
  }

  Features<Scalar>& features_;
  std::span<const std::uint8_t> counts_;
};

}  // namespace

template <typename Scalar>
Features<Scalar> transformed_features(std::span<const Scalar> input, const Shape& shape, Index channels,
                                      const std::vector<FeatureTransform>& transforms,
                                      std::span<const std::uint8_t> counts) {
  Features<Scalar> features{shape, channels, std::vector<Scalar>(input.size())};
  const Index d = position_count(shape);
  for (Index position = 0; position < d; ++position)
    for (Index channel = 0; channel < channels; ++channel)
      features.values[static_cast<std::size_t>(channel * d + position)] =
          input[static_cast<std::size_t>(position * channels + channel)];
  for (const FeatureTransform& transform : transforms)
    std::visit(Transformer<Scalar>(features, counts), transform);
  return features;
}

Index transformed_channels(const Shape& shape, Index channels,
                           const std::vector<FeatureTransform>& transforms) {
  std::vector<FeatureTransform> before;
  for (const FeatureTransform& transform : transforms) {
    const auto* readout = std::get_if<FeatureReadout>(&transform);
    if (readout != nullptr && readout->kind == ReadoutKind::flatten)
      // Flatten makes channels of the positions that are left at this point.
      channels *= position_count(transformed_shape(before, shape));
    before.push_back(transform);
  }
  return channels;
}

template Features<float> transformed_features(std::span<const float>, const Shape&, Index,
                                              const std::vector<FeatureTransform>&,
                                              std::span<const std::uint8_t>);
template Features<double> transformed_features(std::span<const double>, const Shape&, Index,
                                               const std::vector<FeatureTransform>&,
                                               std::span<const std::uint8_t>);

}  // namespace widelimit
