#include "kernel/random_networks.hpp"

#include <algorithm>
#include <random>

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

enum class Channels { raw, gaussian, other };

class Composer {
 public:
  Composer(unsigned seed, Shape shape) : generator_(seed), shape_{std::move(shape)} {}

  Layers compose() {
    Layers layers;
    if (below(5) == 0) layers.push_back(pooling());
    layers.push_back(weights());
    const int count = 3 + below(4);
    for (int i = 0; i < count; ++i) layers.push_back(any_layer());
    layers.push_back(readout());
    channels_ = channels_ == Channels::gaussian && below(2) == 0 ? Channels::gaussian : Channels::other;
    tail(layers);
    return layers;
  }

 private:
  int below(int bound) { return static_cast<int>(generator_() % static_cast<unsigned>(bound)); }
  double number(double from, double to) { return from + (to - from) * below(1000) / 1000.0; }

  Layer any_layer() {
    if (channels_ == Channels::gaussian && below(2) == 0) return nonlinearity();
    switch (below(9)) {
      case 0:
        return pooling();
      case 1:
        return norm();
      case 2:
        return self_attention();
      case 3:
        return residual();
      case 4:
        return channel_groups();
      case 5:
        return gate();
      case 6:
        channels_ = Channels::other;
        return dropout(number(0.4, 1));
      default:
        return weights();
    }
  }

  Layer nonlinearity() {
    channels_ = Channels::other;
    switch (below(5)) {
      case 0:
        return erf();
      case 1:
        return cos();
      case 2:
        return abs();
      case 3:
        return leaky_relu(number(-0.5, 0.5));
      default:
        return relu();
    }
  }

  std::vector<Index> sizes(int largest) {
    std::vector<Index> sizes;
    for (const Index size : shape_) sizes.push_back(std::min<Index>(1 + below(largest), size));
    return sizes;
  }

  /// Strides that leave at least two positions on an axis, where it has as many.
  std::vector<Index> strides() {
    std::vector<Index> strides;
    for (const Index size : shape_) strides.push_back(size >= 3 && below(3) == 0 ? 2 : 1);
    return strides;
  }

  static Index output_size(Index size, Index window, Index stride, Padding padding) {
    return padding == Padding::valid ? (size - window) / stride + 1 : (size + stride - 1) / stride;
  }

  void shrink(const std::vector<Index>& window, const std::vector<Index>& strides, Padding padding) {
    for (std::size_t i = 0; i < shape_.size(); ++i)
      shape_[i] = output_size(shape_[i], window[i], strides[i], padding);
  }

  Layer weights() {
    const double weight_variance = number(0.5, 2), bias_variance = below(2) == 0 ? 0 : number(0, 0.5);
    channels_ = Channels::gaussian;
    if (below(5) == 0) return dense({weight_variance, bias_variance});
    const ConvolutionOptions options{
        sizes(3), strides(),
        std::array{Padding::same, Padding::valid, Padding::circular}[static_cast<std::size_t>(below(3))],
        weight_variance, bias_variance};
    shrink(options.filter, options.strides, options.padding);
    return below(6) == 0 ? local_conv(options) : conv(options);
  }

  Layer pooling() {
    const PoolingOptions options{sizes(3), strides(), below(2) == 0 ? Padding::same : Padding::valid};
    shrink(options.window, options.strides, options.padding);
    return below(3) == 0 ? sum_pool(options) : average_pool(options);
  }

  Layer norm() {
    const NormOptions options{below(2) == 0 ? NormAxes::channels : NormAxes::channels_and_space, 1e-3};
    return channels_ == Channels::gaussian && below(2) == 0 ? layer_norm(options) : rms_norm(options);
  }

  Layer self_attention() {
    AttentionOptions options;
    options.query_key_std = number(0.3, 1.2);
    options.output_value_variance = number(0.5, 2);
    options.bias_variance = below(2) == 0 ? 0 : 0.1;
    if (below(3) == 0) options.mask = AttentionMask::causal;
    switch (below(5)) {
      case 0:
        options.weights = AttentionWeights::elementwise(relu());
        break;
      case 1:
        options.weights = AttentionWeights::elementwise(identity());
        break;
      case 2:
        options.query_key_weights = QueryKeyWeights::untied;
        break;
      default:
        break;
    }
    if (below(2) == 0) {
      PositionalEncodings positions;
      if (below(2) == 0)
        positions.covariance = IdentityPositions{number(0.5, 1.5)};
      else
        positions.covariance = StructuredPositions{number(0.5, 1.5), number(0.5, 3)};
      positions.input_weight = number(0, 1);
      positions.position_weight = number(0, 1);
      if (below(2) == 0) positions.values = ValueEncodings::present;
      options.positions = positions;
    }
    channels_ = Channels::gaussian;
    return attention(options);
  }

  /// Skip and a branch with weights; sometimes both branches have a stride.
  Layer residual() {
    const Channels before = channels_;
    Layers branch, shortcut;
    if (before == Channels::gaussian) branch.push_back(nonlinearity());
    const double scale = number(0.3, 1.2);
    if (below(2) == 0 && shape_[0] >= 3) {
      std::vector<Index> window(shape_.size(), 1), strides(shape_.size(), 1), filter = sizes(3);
      strides[0] = 2;
      branch.push_back(conv({filter, strides, Padding::same, number(0.5, 2), 0.1}));
      shortcut.push_back(conv({window, strides, Padding::same, 1, 0}));
      shrink(filter, strides, Padding::same);
      channels_ = Channels::gaussian;
    } else {
      const std::vector<Index> ones(shape_.size(), 1);
      branch.push_back(conv({sizes(3), ones, Padding::same, number(0.5, 2), 0.1}));
      channels_ = before == Channels::gaussian ? Channels::gaussian : Channels::other;
      if (before != Channels::gaussian) channels_ = Channels::other;
    }
    return sum({{scale, shortcut}, {number(-1, 1), branch}});
  }

  /// A mixture at once made Gaussian again by weights, or with a nonlinearity in between.
  Layer channel_groups() {
    const std::vector<Index> ones(shape_.size(), 1);
    const ConcatBranch narrow{0.25, {conv({ones, ones, Padding::same, 1, 0.2})}};
    const ConcatBranch wide{0.75, {conv({sizes(3), ones, Padding::circular, 1.5, 0})}};
    Layers layers{concat({narrow, wide})};
    if (below(2) == 0)
      layers.push_back(average_pool({std::vector<Index>(shape_.size(), 1), ones, Padding::valid}));
    if (below(2) == 0) layers.push_back(nonlinearity());
    layers.push_back(dense({1.1, 0.05}));
    channels_ = Channels::gaussian;
    return repeat(1, layers);
  }

  Layer gate() {
    const std::vector<Index> ones(shape_.size(), 1);
    const Layers gate{conv({sizes(2), ones, Padding::same, 1, 0.5})};
    channels_ = Channels::other;
    return product({{1, {}}, {number(0.5, 1.2), gate}});
  }

  Layer readout() {
    switch (below(3)) {
      case 0:
        return flatten();
      case 1:
        return global_sum_pool();
      default:
        return global_average_pool();
    }
  }

  void tail(Layers& layers) {
    const int depth = below(3);
    for (int i = 0; i < depth; ++i) {
      layers.push_back(dense({number(0.5, 2), 0.1}));
      channels_ = Channels::gaussian;
      if (below(3) == 0) layers.push_back(layer_norm());
      layers.push_back(nonlinearity());
      if (below(3) == 0) layers.push_back(sum({{1, {}}, {0.5, {dense()}}}));
    }
    layers.push_back(dense());
  }

  std::mt19937 generator_;
  Shape shape_;
  Channels channels_ = Channels::raw;
};

}  // namespace

Network random_network(unsigned seed, const Shape& shape) {
  return {"random " + std::to_string(seed), Composer(seed, shape).compose()};
}

}  // namespace widelimit::testing
