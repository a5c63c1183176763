#include <algorithm>

#include "layers/builtin_kinds.hpp"
#include "layers/convolution_fields.hpp"
#include "layers/finite/affine.hpp"
#include "layers/finite/position_map.hpp"
#include "layers/padding_names.hpp"
#include "layers/position_map_stage.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"
#include "widelimit/layers/convolution.hpp"

namespace widelimit::layers {
namespace {

/// Moves positions apart, so that a convolution with stride 1 and the same filter does the rest.
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
  /// Zeros around, as jax.lax.conv_transpose counts them: behind the valid convolution there are stride x size
  /// positions, and with `valid` as many more as the filter is longer than the stride.
  [[nodiscard]] AxisMap padded(Index size, std::size_t axis) const {
    const Index filter = window_.sizes[axis], stride = window_.strides[axis];
    const bool valid = window_.padding == Padding::valid;
    const Index zeros = filter + stride - 2 + (valid ? std::max<Index>(filter - stride, 0) : 0);
    const Index front = valid || stride > filter - 1 ? filter - 1 : (zeros + 1) / 2;
    return spread_map(size, stride, front, stride * (size - 1) + 1 + zeros);
  }

  /// The transpose of a circular convolution of that stride: position j reads i through tap k where
  /// j = stride i + k - padding, modulo stride x size. Behind the map a convolution of stride 1 adds its own padding
  /// and goes through the filter the other way round.
  [[nodiscard]] AxisMap around(Index size, std::size_t axis) const {
    const Index filter = window_.sizes[axis], stride = window_.strides[axis], all = stride * size;
    const Index shift = filter - 1 - padding_front(all, filter, 1, Padding::circular) -
                        padding_front(all, filter, stride, Padding::circular);
    return spread_map(size, stride, (shift % all + all) % all, all);
  }

  Window window_;
};

class TransposedConvolution final : public LayerModel {
 public:
  explicit TransposedConvolution(const ConvolutionOptions& options)
      : fields_{affine_of("conv_transpose", options)},
        spreading_{std::make_shared<Spreading>(fields_.node.window)},
        convolution_{fields_} {
    Window& window = convolution_.node.window;
    window.strides.assign(window.strides.size(), 1);
    if (window.padding != Padding::circular) window.padding = Padding::valid;
  }

  std::string kind() const override { return "conv_transpose"; }
  nlohmann::ordered_json fields() const override { return convolution_fields(fields_); }

  State lower(Lowering& lowering, const State& input) const override {
    if (input.mask) lowering.reject("transposed convolutions do not know masks; resize images instead");
    return lower_affine(lowering, lowering.position_map(input, position_map_stage(spreading_, input.shape)),
                        convolution_);
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::mapped_convolution_counterpart(
        spreading_, convolution_counterpart(convolution_, finite::Sharing::shared));
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

void add_transposed_convolution_kinds(LayerReaders& readers) {
  readers["conv_transpose"] = [](FieldReader& fields) { return conv_transpose(read_convolution(fields)); };
}

}  // namespace widelimit::layers
