#include "kernel/backends/cpu/backward/planes/feature_adjoints.hpp"

#include <algorithm>
#include <cmath>

#include "kernel/inputs/features.hpp"
#include "kernel/plan/geometry.hpp"

namespace widelimit {
namespace {

/// The backward pass through one transform: from the adjoint of the features after it to the adjoint of those before
/// it. It computes in double.
template <typename Scalar>
class TransformAdjoint {
 public:
  TransformAdjoint(const Features<Scalar>& before, std::span<const std::uint8_t> counts,
                   const std::vector<double>& after)
      : before_{before}, counts_{counts}, after_{after} {}

  std::vector<double> operator()(const FeaturePool& pool) const {
    const Window3 window(pool.window);
    const Index3 input = three_axes(before_.shape), output = window.output(input),
                 front = window.front(input);
    const double weight =
        pool.kind == PoolKind::average ? 1 / static_cast<double>(product(window.size)) : 1.0;
    std::vector<double> adjoint(before_.values.size());
    std::size_t place = 0;
    for (Index channel = 0; channel < before_.channels; ++channel)
      for_each_row(output, [&](Index i, Index j) {
        for (Index k = 0; k < output[2]; ++k, ++place)
          spread(weight * after_[place], window, input,
                 {i * window.stride[0] - front[0], j * window.stride[1] - front[1],
                  k * window.stride[2] - front[2]},
                 adjoint.data() + channel * product(input));
      });
    return adjoint;
  }

  std::vector<double> operator()(const FeatureReadout& readout) const {
    if (readout.kind == ReadoutKind::flatten) return after_;
    const Index d = position_count(before_.shape);
    const double weight = readout.kind == ReadoutKind::average ? 1 / static_cast<double>(d) : 1.0;
    std::vector<double> adjoint;
    for (const double of_channel : after_)
      adjoint.insert(adjoint.end(), static_cast<std::size_t>(d), weight * of_channel);
    return adjoint;
  }

  std::vector<double> operator()(const FeatureNorm& norm) const {
    std::vector<double> adjoint = after_;
    // Statistics are those of the positions that count; masked ones have no adjoints.
    for (std::vector<Index>& group : norm.axes.groups(before_.shape)) {
      std::erase_if(group,
                    [&](Index a) { return !counts_.empty() && counts_[static_cast<std::size_t>(a)] == 0; });
      if (!group.empty()) add_norm_adjoint(norm, group, adjoint);
    }
    return adjoint;
  }

 private:
  static void spread(double value, const Window3& window, const Index3& input, const Index3& first,
                     double* adjoint) {
    for (Index x = std::max<Index>(first[0], 0); x < std::min(first[0] + window.size[0], input[0]); ++x)
      for (Index y = std::max<Index>(first[1], 0); y < std::min(first[1] + window.size[1], input[1]); ++y)
        for (Index z = std::max<Index>(first[2], 0); z < std::min(first[2] + window.size[2], input[2]); ++z)
          adjoint[(x * input[1] + y) * input[2] + z] += value;
  }

  /// With y = (x - mean) r, r = 1 / sqrt(variance + epsilon): x-bar = r (y-bar - mean(y-bar) - y mean(y-bar y)),
  /// without the first mean where nothing was centred.
  void add_norm_adjoint(const FeatureNorm& norm, const std::vector<Index>& positions,
                        std::vector<double>& adjoint) const {
    const Index d = position_count(before_.shape);
    const auto for_each = [&](const auto& body) {
      for (Index channel = 0; channel < before_.channels; ++channel)
        for (const Index position : positions) body(static_cast<std::size_t>(channel * d + position));
    };
    const double entries = static_cast<double>(before_.channels) * static_cast<double>(positions.size());
    const bool centred = norm.centring == Centring::over_axes;
    double mean = 0, variance = 0, adjoint_mean = 0, product_mean = 0;
    if (centred) for_each([&](std::size_t i) { mean += static_cast<double>(before_.values[i]) / entries; });
    const auto difference = [&](std::size_t i) { return static_cast<double>(before_.values[i]) - mean; };
    for_each([&](std::size_t i) { variance += difference(i) * difference(i) / entries; });
    const double shifted = variance + norm.epsilon;
    // Entries that are all equal and a norm without epsilon have no derivative. The forward pass leaves zeros there,
    // and so does this one.
    const double factor = shifted > 0 ? 1 / std::sqrt(shifted) : 0;
    for_each([&](std::size_t i) {
      adjoint_mean += adjoint[i] / entries;
      product_mean += adjoint[i] * difference(i) * factor / entries;
    });
    for_each([&](std::size_t i) {
      adjoint[i] =
          factor * (adjoint[i] - (centred ? adjoint_mean : 0.0) - difference(i) * factor * product_mean);
    });
  }

  const Features<Scalar>& before_;
  std::span<const std::uint8_t> counts_;
  const std::vector<double>& after_;
};

}  // namespace

template <typename Scalar>
void add_feature_adjoint(std::span<const Scalar> input, const Shape& shape, Index channels,
                         const std::vector<FeatureTransform>& transforms,
                         std::span<const std::uint8_t> counts, std::vector<double> adjoint, Scalar* target) {
  for (std::size_t t = transforms.size(); t-- > 0;) {
    // The features before each transform are computed again. Keeping all of them from the forward pass would take
    // memory for every input.
    const std::vector<FeatureTransform> earlier(transforms.begin(),
                                                transforms.begin() + static_cast<std::ptrdiff_t>(t));
    const Features<Scalar> before = transformed_features(input, shape, channels, earlier, counts);
    adjoint = std::visit(TransformAdjoint<Scalar>(before, counts, adjoint), transforms[t]);
  }
  const Index d = position_count(shape);
  for (Index position = 0; position < d; ++position)
    for (Index channel = 0; channel < channels; ++channel)
      target[position * channels + channel] +=
          static_cast<Scalar>(adjoint[static_cast<std::size_t>(channel * d + position)]);
}

template void add_feature_adjoint(std::span<const float>, const Shape&, Index,
                                  const std::vector<FeatureTransform>&, std::span<const std::uint8_t>,
                                  std::vector<double>, float*);
template void add_feature_adjoint(std::span<const double>, const Shape&, Index,
                                  const std::vector<FeatureTransform>&, std::span<const std::uint8_t>,
                                  std::vector<double>, double*);

}  // namespace widelimit
