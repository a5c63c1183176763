#include <algorithm>
#include <utility>

#include "layers/convolution_fields.hpp"
#include "layers/finite/affine.hpp"
#include "layers/finite/position_map.hpp"
#include "layers/kind_rows.hpp"
#include "layers/padding_names.hpp"
#include "layers/position_map_stage.hpp"
#include "network/layer_model.hpp"
#include "network/mask_rule.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/convolution.hpp"

namespace widelimit::layers {
namespace {

/// Moves positions apart by the strides, with zeros between them. A convolution with stride 1 and the same filter
/// then does the rest.
class Spreading final : public PositionMap {
 public:
  explicit Spreading(const Window& window) : window_{window} {}

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    return axis_by_axis(input, window_.sizes.size(), [&](std::size_t i) {
      require_axis_length(window_.sizes[i]);
      require_axis_length(window_.strides[i] * input[i]);
      return window_.padding == Padding::circular ? around(input[i], i) : padded(input[i], i);
    });
  }

 private:
  /// Adds zeros around, in the numbers of jax.lax.conv_transpose: after the valid convolution there are stride * size
  /// positions, and with `valid` padding as many more as the filter is longer than the stride.
  [[nodiscard]] AxisMap padded(Index size, std::size_t axis) const {
    const Index filter = window_.sizes[axis], stride = window_.strides[axis];
    const bool valid = window_.padding == Padding::valid;
    const Index zeros = filter + stride - 2 + (valid ? std::max<Index>(filter - stride, 0) : 0);
    const Index front = valid || stride > filter - 1 ? filter - 1 : (zeros + 1) / 2;
    return spread_map(size, stride, front, stride * (size - 1) + 1 + zeros);
  }

  /// The transpose of a circular convolution of that stride: position j reads i through tap k where
  /// j = stride i + k - padding, modulo stride x size. After the map a convolution of stride 1 adds its own padding
  /// and goes through the filter the other way round.
  [[nodiscard]] AxisMap around(Index size, std::size_t axis) const {
    const Index filter = window_.sizes[axis], stride = window_.strides[axis], all = stride * size;
    const Index shift = filter - 1 - padding_front(all, filter, 1, Padding::circular) -
                        padding_front(all, filter, stride, Padding::circular);
    return spread_map(size, stride, (shift % all + all) % all, all);
  }

  Window window_;
};

/// The mask after the layer: as in neural-tangents, a position is masked if one that it reads is masked.
class SpreadMask final : public MaskMapping {
 public:
  SpreadMask(PositionMapPointer spreading, Window window)
      : spreading_{std::move(spreading)}, window_{std::move(window)} {}

  PositionMask mapped(const PositionMask& before) const override {
    const std::vector<AxisMap> spread = spreading_->axis_maps(before.shape);
    PositionMask mask = before;
    Index outer = 1, inner = position_count(mask.shape);
    for (std::size_t k = 0; k < spread.size(); ++k) {
      inner /= mask.shape[k];
      mask = mapped_along(k, spread[k], outer, inner, mask);
      outer *= mask.shape[k];
    }
    return mask;
  }

 private:
  /// The mask after one axis, with `outer` positions before the axis and `inner` ones after it.
  [[nodiscard]] PositionMask mapped_along(std::size_t axis, const AxisMap& spread, Index outer, Index inner,
                                          const PositionMask& before) const {
    const Index taps = window_.sizes[axis], all = spread.rows(), columns = spread.columns;
    PositionMask mask = before;
    mask.shape[axis] = window_output_size(all, taps, 1, window_.padding);
    mask.counts.assign(static_cast<std::size_t>(outer * mask.shape[axis] * inner), 1);
    const Index front = padding_front(all, taps, 1, window_.padding);
    for (Index a = 0; a < mask.shape[axis]; ++a)
      for (Index t = 0; t < taps; ++t) {
        const auto place = static_cast<std::size_t>(((a + t - front) % all + all) % all);
        if (spread.weights[place] == 0) continue;
        for (Index i = 0; i < outer; ++i)
          for (Index j = 0; j < inner; ++j)
            mask.counts[static_cast<std::size_t>((i * mask.shape[axis] + a) * inner + j)] &=
                before.counts[static_cast<std::size_t>((i * columns + spread.first[place]) * inner + j)];
      }
    return mask;
  }

  PositionMapPointer spreading_;
  Window window_;
};

class TransposedConvolution final : public LayerModel {
 public:
  explicit TransposedConvolution(const ConvolutionOptions& options)
      : fields_{affine_of("conv_transpose", options)},
        spreading_{std::make_shared<Spreading>(fields_.node.window)},
        convolution_{fields_} {
    if (!options.pads.empty() || !options.dilations.empty())
      throw ArgumentError(
          "conv_transpose: expected neither pads nor dilations; take padding \"same\", \"valid\" or "
          "\"circular\"");
    Window& window = convolution_.node.window;
    window.strides.assign(window.strides.size(), 1);
    if (window.padding != Padding::circular) window.padding = Padding::valid;
  }

  std::string kind() const override { return "conv_transpose"; }
  nlohmann::ordered_json fields() const override { return convolution_fields(fields_); }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    // Masked positions are zeros, which windows may read. The rule for masks after this layer is not that of a
    // convolution, so the layer is lowered without a mask and gets its own afterwards.
    LoweredState unmasked = input;
    unmasked.mask = {};
    const LoweredState spread = lowering.position_map(unmasked, position_map_stage(spreading_, input.shape));
    return lowering.masked_again(lower_affine(lowering, spread, convolution_), input,
                                 std::make_shared<SpreadMask>(spreading_, convolution_.node.window));
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::mapped_convolution_counterpart(
        spreading_, convolution_counterpart(convolution_, finite::Sharing::shared), nullptr);
  }

 private:
  ParametrisedAffine fields_;
  PositionMapPointer spreading_;
  ParametrisedAffine convolution_;
};

}  // namespace

Layer conv_transpose(const ConvolutionOptions& options) {
  return Layer(std::make_shared<TransposedConvolution>(options));
}

void add_transposed_convolution_kinds(KindRows& rows) {
  rows.push_back(
      {convolution_kind(
           {.name = "conv_transpose",
            .does =
                "A transposed convolution: every position adds its filter to the positions s a + o, so that "
                "sizes grow by the strides; borders as in jax.lax.conv_transpose",
            .nngp = "conv of K with positions moved apart by the strides and zeros between them",
            .ntk = "K' + the same of T",
            .limits = "As conv.",
            .cost = "d^2 of the positions after it",
            .source = "Dumoulin and Visin 2016 (arXiv:1603.07285), chapter 4",
            .example = R"({"filter": [3], "strides": [2], "weight_variance": 1.3, "bias_variance": 0.2})"},
           Spacings::absent),
       [](KindFields& fields) { return conv_transpose(read_convolution(fields, Spacings::absent)); }});
}

}  // namespace widelimit::layers
