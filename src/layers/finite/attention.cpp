#include "layers/finite/attention.hpp"

#include <cmath>

#include "layers/common/attention_checks.hpp"
#include "layers/finite/affine_map.hpp"
#include "layers/finite/head_products.hpp"
#include "layers/finite/head_rotation.hpp"
#include "layers/finite/head_weights.hpp"
#include "layers/finite/normalised_rows.hpp"
#include "layers/finite/position_encodings.hpp"

namespace widelimit::finite {
namespace {

using layers::AttentionOptions;
using layers::AttentionScaling;
using layers::QueryKeyWeights;

/// The shape of the site. Throws ArgumentError if attention cannot act on it.
const Shape& fitting_shape(const Site& site, const AttentionOptions& options) {
  layers::check_attention_fits(options, site.input.shape);
  return site.input.shape;
}

enum class Tying { tied, untied };

Tying tying(const AttentionOptions& options) {
  return layers::query_key_weights(options) == QueryKeyWeights::tied ? Tying::tied : Tying::untied;
}

/// The factor of Q K^T: sigma / width or sigma / sqrt(width), by the scaling (docs/theory/attention.md, sections 2 and
/// 3).
double logit_scale(const AttentionOptions& options, Index key_width) {
  const auto width = static_cast<double>(key_width);
  return options.query_key_std /
         (options.scaling == AttentionScaling::inverse_width ? width : std::sqrt(width));
}

/// The affine maps inside attention. Their parameters follow those of the encodings.
template <typename Scalar>
struct AttentionMaps {
  AffineMap<Scalar> query;
  AffineMap<Scalar> key;  ///< The same as `query` if tied.
  AffineMap<Scalar> value;
  AffineMap<Scalar> output;
  Index parameter_count;
};

template <typename Scalar>
AttentionMaps<Scalar> make_maps(const Site& site, const AttentionOptions& options) {
  const Heads& heads = site.heads;
  // Encodings are parameters too, [d, channels], and come first.
  Index offset = options.positions ? position_count(site.input.shape) * site.input.channels : 0;
  const auto next = [&offset](Index in, Index out, double weight_variance, double bias_variance) {
    const AffineMap<Scalar> map(offset, in, out, affine_scales({weight_variance, bias_variance}, in));
    offset += map.parameter_count();
    return map;
  };
  const Index channels = site.input.channels;
  const auto query = next(channels, heads.count * heads.key_width, 1, options.query_bias_variance);
  const auto key = tying(options) == Tying::tied
                       ? query
                       : next(channels, heads.count * heads.key_width, 1, options.key_bias_variance);
  const auto value = next(channels, heads.count * heads.value_width, 1, 0);
  const auto output = next(heads.count * heads.value_width, site.channels, options.output_value_variance,
                           options.bias_variance);
  return {query, key, value, output, offset};
}

/// The places of the tape's matrices, with n inputs and d positions.
enum Saved : std::size_t {
  saved_encoded,  ///< X~
  saved_raw,      ///< X if the values see it instead of X~, else empty
  saved_queries,  ///< Q, all heads side by side, turned by rotary positions
  saved_keys,     ///< K, all heads side by side, turned; empty if tied
  saved_values,   ///< V
  saved_weights,  ///< zeta(G): [d, d] for every input and head
  saved_slopes,   ///< zeta'(G) for elementwise weights, else empty
  saved_joined,   ///< zeta(G) V, all heads side by side, normalised if there is a norm
  saved_roots,    ///< the inverse roots of the norm, if there is one
  saved_count
};

/// Self-attention with finitely many heads: y = sum over heads of zeta(Q K^T scale) V W_O. Queries, keys and values
/// of all heads are computed as one product each; what follows goes head by head.
template <typename Scalar>
class Attention final : public FiniteLayer<Scalar> {
  using Mat = Matrix<Scalar>;
  static constexpr auto no = Transpose::no, yes = Transpose::yes;

 public:
  Attention(const Site& site, const AttentionOptions& options)
      : output_{fitting_shape(site, options), site.channels},
        heads_{site.heads},
        d_{position_count(site.input.shape)},
        tying_{tying(options)},
        encodes_values_{!options.positions || options.positions->values == layers::ValueEncodings::present},
        logit_scale_{static_cast<Scalar>(logit_scale(options, heads_.key_width))},
        zeta_(options, d_),
        rotation_(options, heads_.key_width, d_),
        maps_{make_maps<Scalar>(site, options)},
        places_(d_, heads_.count),
        // The epsilon only keeps rows of equal numbers from dividing by 0.
        norm_(Centring::mean, 1e-12),
        encodings_(options.positions, site.input.shape) {}

  Form output() const override { return output_; }
  Index parameter_count() const override { return maps_.parameter_count; }

  Activations<Scalar> forward(const Scalar* parameters, Activations<Scalar> input,
                              Tape<Scalar>& tape) const override {
    auto& saved = tape.saved;
    saved.resize(saved_count);
    saved[saved_encoded] = encodings_.encode(parameters, input.values, input.inputs);
    if (!encodes_values_) saved[saved_raw] = std::move(input.values);
    saved[saved_queries] = maps_.query.apply(parameters, saved[saved_encoded]);
    rotation_.turn(saved[saved_queries]);
    if (tying_ == Tying::untied) {
      saved[saved_keys] = maps_.key.apply(parameters, saved[saved_encoded]);
      rotation_.turn(saved[saved_keys]);
    }
    saved[saved_values] = maps_.value.apply(parameters, value_input(tape));
    saved[saved_weights].resize(input.inputs * heads_.count * d_, d_);
    if (!zeta_.is_softmax()) saved[saved_slopes].resize(input.inputs * heads_.count * d_, d_);
    saved[saved_joined].resize(input.inputs * d_, heads_.count * heads_.value_width);
    for_each_head(input, [&](Index i, Index h) {
      const auto weights = places_.square(saved[saved_weights], i, h);
      // The logits G of a head are written where the weights will be.
      multiply_heads(no, yes, {d_, d_, heads_.key_width}, logit_scale_, part(saved[saved_queries], i, h),
                     part(keys(tape), i, h), Scalar{0}, weights);
      zeta_.apply(weights.data, places_.square(saved[saved_slopes], i, h).data);
      multiply_heads(no, no, {d_, heads_.value_width, d_}, Scalar{1}, square(saved[saved_weights], i, h),
                     part(saved[saved_values], i, h), Scalar{0},
                     places_.side_by_side(saved[saved_joined], i, h));
    });
    if (heads_.norm == HeadNorm::layer_norm)
      saved[saved_roots] = norm_.normalise(head_rows(saved[saved_joined]));
    return input.with(maps_.output.apply(parameters, saved[saved_joined]));
  }

  Activations<Scalar> backward(const Scalar* parameters, const Tape<Scalar>& tape,
                               Activations<Scalar> gradient, GradientSink<Scalar>& sink) const override {
    const auto& saved = tape.saved;
    const Index n = gradient.inputs;
    Mat joined = maps_.output.backward(parameters, saved[saved_joined], gradient.values, n, sink);
    if (heads_.norm == HeadNorm::layer_norm)
      norm_.differentiate(head_rows(saved[saved_joined]), saved[saved_roots], head_rows(joined));
    Mat queries(n * d_, heads_.count * heads_.key_width), key_gradient(queries.rows(), queries.cols());
    Mat values(n * d_, heads_.count * heads_.value_width), logits(d_, d_);
    for_each_head(gradient, [&](Index i, Index h) {
      // `out` is the gradient O-bar of zeta(G) V. V-bar = zeta(G)^T O-bar, zeta-bar = O-bar V^T, and through G = s Q
      // K^T: Q-bar = s G-bar K and K-bar = s G-bar^T Q.
      const auto weights = square(saved[saved_weights], i, h), out = part(joined, i, h);
      multiply_heads(yes, no, {d_, heads_.value_width, d_}, Scalar{1}, weights, out, Scalar{0},
                     places_.side_by_side(values, i, h));
      multiply_heads(no, yes, {d_, d_, heads_.value_width}, Scalar{1}, out, part(saved[saved_values], i, h),
                     Scalar{0}, places_.square(logits, 0, 0));
      zeta_.differentiate(weights.data, square(saved[saved_slopes], i, h).data, logits);
      multiply_heads(no, no, {d_, heads_.key_width, d_}, logit_scale_, square(logits, 0, 0),
                     part(keys(tape), i, h), Scalar{0}, places_.side_by_side(queries, i, h));
      multiply_heads(yes, no, {d_, heads_.key_width, d_}, logit_scale_, square(logits, 0, 0),
                     part(saved[saved_queries], i, h), Scalar{0}, places_.side_by_side(key_gradient, i, h));
    });
    // Rotations are orthogonal, so that gradients are turned back by the inverse.
    rotation_.turn_back(queries);
    rotation_.turn_back(key_gradient);
    return input_gradient(parameters, tape, {queries, key_gradient, values}, gradient, sink);
  }

  Activations<Scalar> tangent(const Scalar* parameters, const Tape<Scalar>& tape,
                              Activations<Scalar> direction,
                              const Scalar* parameter_direction) const override {
    const auto& saved = tape.saved;
    const Index n = direction.inputs;
    const Mat encoded = encodings_.encode(parameter_direction, direction.values, n);
    Mat queries = maps_.query.tangent(parameters, saved[saved_encoded], encoded, parameter_direction);
    rotation_.turn(queries);
    Mat keys_direction = maps_.key.tangent(parameters, saved[saved_encoded], encoded, parameter_direction);
    rotation_.turn(keys_direction);
    const Mat values = maps_.value.tangent(parameters, value_input(tape),
                                           encodes_values_ ? encoded : direction.values, parameter_direction);
    Mat joined(n * d_, heads_.count * heads_.value_width), logits(d_, d_);
    for_each_head(direction, [&](Index i, Index h) {
      const auto weights = square(saved[saved_weights], i, h);
      // dG = s (dQ K^T + Q dK^T), and d(zeta(G) V) = dzeta V + zeta dV.
      const auto change = places_.square(logits, 0, 0);
      multiply_heads(no, yes, {d_, d_, heads_.key_width}, logit_scale_, part(queries, i, h),
                     part(keys(tape), i, h), Scalar{0}, change);
      multiply_heads(no, yes, {d_, d_, heads_.key_width}, logit_scale_, part(saved[saved_queries], i, h),
                     part(keys_direction, i, h), Scalar{1}, change);
      zeta_.differentiate(weights.data, square(saved[saved_slopes], i, h).data, logits);
      const auto target = places_.side_by_side(joined, i, h);
      multiply_heads(no, no, {d_, heads_.value_width, d_}, Scalar{1}, square(logits, 0, 0),
                     part(saved[saved_values], i, h), Scalar{0}, target);
      multiply_heads(no, no, {d_, heads_.value_width, d_}, Scalar{1}, weights, part(values, i, h), Scalar{1},
                     target);
    });
    if (heads_.norm == HeadNorm::layer_norm)
      norm_.differentiate(head_rows(saved[saved_joined]), saved[saved_roots], head_rows(joined));
    return direction.with(maps_.output.tangent(parameters, saved[saved_joined], joined, parameter_direction));
  }

 private:
  /// The gradients with respect to queries, keys and values.
  struct HeadGradients {
    Mat& queries;
    const Mat& keys;
    const Mat& values;
  };

  Activations<Scalar> input_gradient(const Scalar* parameters, const Tape<Scalar>& tape,
                                     const HeadGradients& heads, const Activations<Scalar>& like,
                                     GradientSink<Scalar>& sink) const {
    const Mat& encoded = tape.saved[saved_encoded];
    const Index n = like.inputs;
    // Tied keys are the queries, so that both gradients reach the same map.
    if (tying_ == Tying::tied) heads.queries += heads.keys;
    Mat through_encoded = maps_.query.backward(parameters, encoded, heads.queries, n, sink);
    if (tying_ == Tying::untied)
      through_encoded += maps_.key.backward(parameters, encoded, heads.keys, n, sink);
    Mat through_values = maps_.value.backward(parameters, value_input(tape), heads.values, n, sink);
    if (encodes_values_) through_encoded += through_values;
    // Values that do not see the encodings pass their gradient to X only, after those of the encodings are computed.
    encodings_.backward(through_encoded, n, sink);
    if (!encodes_values_) through_encoded += through_values;
    return like.with(std::move(through_encoded));
  }

  const Mat& value_input(const Tape<Scalar>& tape) const {
    return tape.saved[encodes_values_ ? saved_encoded : saved_raw];
  }
  const Mat& keys(const Tape<Scalar>& tape) const {
    return tape.saved[tying_ == Tying::tied ? saved_queries : saved_keys];
  }

  template <typename Body>
  void for_each_head(const Activations<Scalar>& batch, const Body& body) const {
    for (Index i = 0; i < batch.inputs; ++i)
      for (Index h = 0; h < heads_.count; ++h) {
        batch.stop.check();
        body(i, h);
      }
  }
  /// The part of input i and head h in a matrix with heads side by side.
  HeadBlock<const Scalar> part(const Mat& all, Index i, Index h) const {
    return places_.side_by_side(all, i, h);
  }
  HeadBlock<const Scalar> square(const Mat& all, Index i, Index h) const { return places_.square(all, i, h); }
  /// Every head of every position as a row of its own, for the norm.
  auto head_rows(Mat& all) const {
    return Eigen::Map<Mat>(all.data(), all.size() / heads_.value_width, heads_.value_width);
  }
  auto head_rows(const Mat& all) const {
    return Eigen::Map<const Mat>(all.data(), all.size() / heads_.value_width, heads_.value_width);
  }

  Form output_;
  Heads heads_;
  Index d_;
  Tying tying_;
  bool encodes_values_;  ///< True also if there are no encodings.
  Scalar logit_scale_;
  HeadWeights<Scalar> zeta_;
  HeadRotation<Scalar> rotation_;
  AttentionMaps<Scalar> maps_;
  HeadPlaces places_;
  NormalisedRows<Scalar> norm_;
  PositionEncodings<Scalar> encodings_;
};

}  // namespace

CounterpartPointer attention_counterpart(const AttentionOptions& options) {
  return finite_counterpart<Attention>(OutputChannels::chosen, options);
}

}  // namespace widelimit::finite
