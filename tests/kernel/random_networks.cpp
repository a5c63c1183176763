#include "kernel/random_networks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/exp_normalized.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/matern.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

enum class Channels { raw, gaussian, other };
enum class Graphs { none, directed, undirected };
/// Of layers over windows and positions: those that the other generators draw, or also poolings that go around the
/// border or divide by what they see, convolutions with pads and dilations, and norms over some axes.
enum class Windows { plain, all };
/// Five nonlinearities and attention at 1/width, or all of the library.
enum class Functions { plain, all };

class Composer {
 public:
  Composer(unsigned seed, std::vector<Shape> shapes, Graphs graphs = Graphs::none,
           Windows windows = Windows::plain, Functions functions = Functions::plain)
      : generator_(seed),
        shapes_{std::move(shapes)},
        inputs_{shapes_},
        graphs_{graphs},
        windows_{windows},
        functions_{functions} {}

  Layers compose() {
    Layers layers;
    add_aggregation(layers);
    if (windows_ == Windows::all && below(5) == 0) layers.push_back(rms_norm(any_norm()));
    if (below(5) == 0) layers.push_back(pooling());
    layers.push_back(weights());
    const int count = 3 + below(4);
    for (int i = 0; i < count; ++i) {
      add_aggregation(layers);
      layers.push_back(any_layer());
    }
    add_aggregation(layers);
    layers.push_back(readout());
    channels_ = channels_ == Channels::gaussian && below(2) == 0 ? Channels::gaussian : Channels::other;
    tail(layers);
    return layers;
  }

 private:
  int below(int bound) { return static_cast<int>(generator_() % static_cast<unsigned>(bound)); }
  double number(double from, double to) { return from + (to - from) * below(1000) / 1000.0; }

  /// Now and then, where the positions are still the nodes. Raw inputs are a covariance after it.
  void add_aggregation(Layers& layers) {
    if (graphs_ == Graphs::none || shapes_ != inputs_ || below(2) == 0) return;
    if (channels_ == Channels::raw) channels_ = Channels::other;
    const int normalisations = graphs_ == Graphs::directed ? 2 : 3;
    layers.push_back(aggregate(
        {.normalise =
             std::array{GraphNormalisation::none, GraphNormalisation::mean,
                        GraphNormalisation::symmetric}[static_cast<std::size_t>(below(normalisations))],
         .self_loops = below(2) == 0}));
  }

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

  /// Kernels of no function are none of a group of channels.
  Layer nonlinearity(bool of_group = false) {
    channels_ = Channels::other;
    if (functions_ == Functions::all && below(5) != 0) return any_function(of_group);
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

  /// A function of a user's own with a kink in its slope.
  static numerics::ActivationPtr bent() {
    static const auto activation =
        numerics::quadrature_activation([](double x) { return x / (1 + std::abs(x)); });
    return activation;
  }

  /// Half of them are by quadrature, where the CPU has tables that devices read in their own way.
  Layer any_function(bool of_group) {
    const double a = number(0.5, 1.5), b = number(0.3, 1.2), c = number(-1, 1);
    switch (below(of_group ? 22 : 24)) {
      case 0:
      case 1:
        return tanh();
      case 2:
      case 3:
        return sigmoid();
      case 4:
      case 5:
        return silu();
      case 6:
      case 7:
        return softplus();
      case 8:
      case 9:
        return layers::nonlinearity("bent", bent());
      case 10:
        return gelu();
      case 11:
        return sin(a, b, c);
      case 12:
        return gaussian(a, -b);
      case 13:
        return rbf(b);
      case 14:
        return sign();
      case 15:
        return exp(a, 0.3 * c);
      case 16:
        return rectified_monomial(below(3));
      case 17:
        return hermite(below(4));
      case 18:
        return polynomial({c, b, 0.3 * a});
      case 19:
        return gabor();
      case 20:
        return sigmoid_like();
      case 21:
        return ab_relu(c, a);
      case 22:
        return exp_normalized(b, 0.5 * (c - 1));
      default:
        return matern(std::array{0.5, 1.5, 2.5}[static_cast<std::size_t>(below(3))], a);
    }
  }

  std::size_t axes() const { return shapes_.front().size(); }
  Index shortest(std::size_t axis) const {
    Index size = shapes_.front()[axis];
    for (const Shape& shape : shapes_) size = std::min(size, shape[axis]);
    return size;
  }

  /// Windows that stand over the border reach beyond short axes now and then.
  std::vector<Index> sizes(Index largest, Padding padding) {
    std::vector<Index> sizes;
    for (std::size_t axis = 0; axis < axes(); ++axis) {
      const bool fits = padding == Padding::valid || below(2) == 0;
      const Index size = 1 + below(static_cast<int>(largest));
      sizes.push_back(fits ? std::min(size, shortest(axis)) : size);
    }
    return sizes;
  }

  /// Mostly 1, often 2, which seldom leaves a single position of two; now and then any.
  std::vector<Index> strides() {
    std::vector<Index> strides;
    for (std::size_t axis = 0; axis < axes(); ++axis) {
      if (below(10) == 0)
        strides.push_back(1 + below(4));
      else
        strides.push_back(below(shortest(axis) >= 3 ? 3 : 6) == 0 ? 2 : 1);
    }
    return strides;
  }

  Padding any_padding() {
    return std::array{Padding::same, Padding::valid, Padding::circular}[static_cast<std::size_t>(below(3))];
  }

  static Index output_size(Index size, Index window, Index stride, Padding padding) {
    return padding == Padding::valid ? (size - window) / stride + 1 : (size + stride - 1) / stride;
  }

  std::vector<Shape> behind(const std::vector<Index>& window, const std::vector<Index>& strides,
                            Padding padding) const {
    std::vector<Shape> result = shapes_;
    for (Shape& shape : result)
      for (std::size_t i = 0; i < shape.size(); ++i)
        shape[i] = output_size(shape[i], window[i], strides[i], padding);
    return result;
  }

  std::vector<Shape> behind(const ConvolutionOptions& options) const {
    if (options.pads.empty() && options.dilations.empty())
      return behind(options.filter, options.strides, options.padding);
    std::vector<Shape> result = shapes_;
    for (Shape& shape : result)
      for (std::size_t i = 0; i < shape.size(); ++i) {
        const Index dilation = options.dilations.empty() ? 1 : options.dilations[i],
                    reach = dilation * (options.filter[i] - 1) + 1;
        if (options.pads.empty())
          shape[i] = output_size(shape[i], reach, options.strides[i], options.padding);
        else
          shape[i] = output_size(
              shape[i] + options.pads[i] + options.pads[i % axes() + options.pads.size() - axes()], reach,
              options.strides[i], Padding::valid);
      }
    return result;
  }

  ConvolutionOptions convolution(Index largest_filter) {
    const Padding padding = any_padding();
    ConvolutionOptions options{sizes(largest_filter, padding), strides(), padding, number(0.5, 2),
                               below(2) == 0 ? 0 : number(0, 0.5)};
    if (windows_ == Windows::all && below(2) == 0) space(options);
    return options;
  }

  /// Zeros of any number in place of the padding, and positions of the filter that stand apart, where they fit.
  void space(ConvolutionOptions& options) {
    const std::size_t pads = below(3) == 0 ? 0 : axes() * static_cast<std::size_t>(1 + below(2));
    for (std::size_t k = 0; k < pads; ++k) options.pads.push_back(below(3));
    if (below(2) == 0)
      for (std::size_t i = 0; i < axes(); ++i) {
        const bool fits = !options.pads.empty() || options.padding == Padding::valid;
        const Index most = options.filter[i] == 1 || !fits ? 3 : (shortest(i) - 1) / (options.filter[i] - 1);
        options.dilations.push_back(std::clamp<Index>(most, 1, 1 + below(3)));
      }
    for (std::size_t i = 0; i < axes() && !options.pads.empty(); ++i)
      options.filter[i] = std::min(options.filter[i], shortest(i));
  }

  Layer weights() {
    channels_ = Channels::gaussian;
    if (below(5) == 0) return dense({number(0.5, 2), below(2) == 0 ? 0 : number(0, 0.5)});
    const ConvolutionOptions options = convolution(below(4) == 0 ? 6 : 3);
    shapes_ = behind(options);
    return shared_or_not(options);
  }

  /// Weights that are not shared have no dilations.
  Layer shared_or_not(const ConvolutionOptions& options) {
    const bool has_dilations = !options.dilations.empty();
    return below(6) == 0 && !has_dilations ? local_conv(options) : conv(options);
  }

  Layer pooling() {
    if (windows_ == Windows::all && below(3) != 0) return mapped_pooling();
    const Padding padding = below(2) == 0 ? Padding::same : Padding::valid;
    const PoolingOptions options{sizes(3, padding), strides(), padding};
    shapes_ = behind(options.window, options.strides, options.padding);
    return below(3) == 0 ? sum_pool(options) : average_pool(options);
  }

  /// Around the border, or divided by what it sees: part of an axis, since means over all of it make its positions
  /// equal, and roundings of their correlation of 1 cost half the digits.
  Layer mapped_pooling() {
    const bool circular = below(2) == 0;
    const Padding padding = circular ? Padding::circular : Padding::same;
    std::vector<Index> window;
    for (std::size_t axis = 0; axis < axes(); ++axis)
      window.push_back(std::clamp<Index>(shortest(axis) - 1, 1, 1 + below(4)));
    const PoolingOptions options{window, strides(), padding, !circular || below(2) == 0};
    shapes_ = behind(options.window, options.strides, options.padding);
    return circular && !options.normalize_edges ? sum_pool(options) : average_pool(options);
  }

  NormOptions any_norm() {
    NormOptions options{below(2) == 0 ? NormAxes::channels : NormAxes::channels_and_space, 1e-3};
    if (windows_ == Windows::plain || options.axes == NormAxes::channels_and_space) return options;
    for (Index axis = 0; axis < static_cast<Index>(axes()); ++axis)
      if (below(2) == 0) options.spatial_axes.push_back(axis);
    return options;
  }

  Layer norm() {
    const NormOptions options = any_norm();
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
      if (below(3) == 0) positions.scale = PositionScale::mean_row_sum;
      options.positions = positions;
    }
    if (functions_ == Functions::all && below(2) == 0) scale_by_root(options);
    channels_ = Channels::gaussian;
    return attention(options);
  }

  /// Logits are Gaussian then: weights are a function of them, and every pair of positions is one dimension.
  void scale_by_root(AttentionOptions& options) {
    for (const Shape& shape : shapes_)
      if (position_count(shape) > 8) return;
    options.scaling = AttentionScaling::inverse_sqrt_width;
    options.query_key_weights = {};
    options.weights = AttentionWeights::elementwise(
        std::array{relu(), identity(), abs(), erf()}[static_cast<std::size_t>(below(4))]);
  }

  /// Convolutions of one input that end in equal shapes: of any filter, stride and padding each.
  std::vector<ConvolutionOptions> alike(std::size_t count) {
    std::vector<ConvolutionOptions> result{convolution(4)};
    const auto end = [&](const ConvolutionOptions& options) { return behind(options); };
    for (int attempt = 0; attempt < 40 && result.size() < count; ++attempt) {
      const ConvolutionOptions other = convolution(4);
      if (end(other) == end(result.front())) result.push_back(other);
    }
    while (result.size() < count) result.push_back(result.front());
    shapes_ = end(result.front());
    return result;
  }

  /// One that leaves the shape as it is; of graphs often of one position, which aggregations see as a dense layer.
  ConvolutionOptions keeping(Index largest_filter) {
    const Padding padding = below(2) == 0 ? Padding::same : Padding::circular;
    if (graphs_ != Graphs::none && below(2) == 0) largest_filter = 1;
    return {sizes(largest_filter, padding), std::vector<Index>(axes(), 1), padding, number(0.5, 2), 0.1};
  }

  /// A convolution, of weights that are shared or not, with or without a nonlinearity in front and behind.
  Layers branch(const ConvolutionOptions& options, Channels before) {
    Layers layers;
    if (before == Channels::gaussian && below(2) == 0) layers.push_back(nonlinearity());
    layers.push_back(shared_or_not(options));
    if (below(3) == 0) {
      layers.push_back(relu());
      layers.push_back(conv(keeping(3)));
    }
    return layers;
  }

  /// A skip and a branch with weights, or two branches that read one node through windows of their own.
  Layer residual() {
    const Channels before = channels_;
    if (below(2) == 0) {
      const auto options = alike(2);
      const Layers first = branch(options[0], before), second = branch(options[1], before);
      channels_ = Channels::gaussian;
      return sum({{number(0.3, 1.2), first}, {number(-1, 1), second}});
    }
    const Layers body = branch(keeping(3), before);
    channels_ = before == Channels::gaussian ? Channels::gaussian : Channels::other;
    return sum({{number(0.3, 1.2), {}}, {number(-1, 1), body}});
  }

  /// A mixture at once made Gaussian again by weights, or with a nonlinearity in between.
  Layer channel_groups() {
    const std::vector<Index> ones(axes(), 1);
    const auto options = alike(2);
    Layers layers{concat({{0.25, {conv(options[0])}}, {0.75, {conv(options[1])}}})};
    if (below(2) == 0) layers.push_back(average_pool({ones, ones, Padding::valid}));
    if (below(2) == 0) layers.push_back(nonlinearity(true));
    layers.push_back(dense({1.1, 0.05}));
    channels_ = Channels::gaussian;
    return repeat(1, layers);
  }

  Layer gate() {
    if (below(2) == 0) {
      const auto options = alike(2);
      channels_ = Channels::other;
      return product({{1, {conv(options[0])}}, {number(0.5, 1.2), {conv(options[1])}}});
    }
    const Layers gate{conv(keeping(2))};
    channels_ = Channels::other;
    return product({{1, {}}, {number(0.5, 1.2), gate}});
  }

  Layer readout() {
    const bool equal_shapes =
        std::adjacent_find(shapes_.begin(), shapes_.end(), std::not_equal_to<>()) == shapes_.end();
    switch (below(3)) {
      case 0:
        if (equal_shapes) return flatten();
        [[fallthrough]];
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
  std::vector<Shape> shapes_;  ///< Those of all inputs, after the layers so far.
  std::vector<Shape> inputs_;  ///< Those of the inputs themselves.
  Graphs graphs_;
  Windows windows_;
  Functions functions_;
  Channels channels_ = Channels::raw;
};

}  // namespace

Network random_network(unsigned seed, const std::vector<Shape>& shapes) {
  return {"random " + std::to_string(seed), Composer(seed, shapes).compose()};
}

Network random_masked_network(unsigned seed, const std::vector<Shape>& shapes) {
  return {"random masked network " + std::to_string(seed),
          Composer(seed, shapes, Graphs::none, Windows::all).compose()};
}

Network random_device_network(unsigned seed, const std::vector<Shape>& shapes) {
  return {"random device network " + std::to_string(seed),
          Composer(seed, shapes, Graphs::none, Windows::all, Functions::all).compose()};
}

Network random_graph_network(unsigned seed, const std::vector<Shape>& shapes, bool directed) {
  const Graphs graphs = directed ? Graphs::directed : Graphs::undirected;
  return {"random graph network " + std::to_string(seed), Composer(seed, shapes, graphs).compose()};
}

Network random_network(unsigned seed, const Shape& shape) {
  return random_network(seed, std::vector<Shape>{shape});
}

}  // namespace widelimit::testing
