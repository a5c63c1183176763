#include "widelimit/layers/convolution.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "layers/common/checks.hpp"
#include "layers/convolution_fields.hpp"
#include "layers/finite/affine.hpp"
#include "layers/finite/position_map.hpp"
#include "layers/kind_rows.hpp"
#include "layers/padding_names.hpp"
#include "layers/spaced_windows.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"

namespace widelimit::layers {

ParametrisedAffine affine_of(const std::string& layer, const ConvolutionOptions& options) {
  const std::vector<Index> strides =
      options.strides.empty() ? std::vector<Index>(options.filter.size(), 1) : options.strides;
  const Window window{options.filter, strides, options.padding};
  check_window(layer, window);
  require_not_negative(layer, "weight_variance", options.weight_variance);
  require_not_negative(layer, "bias_variance", options.bias_variance);
  const ParametrisedAffine affine{
      {window, options.weight_variance, options.bias_variance}, options.standard, options.trainable};
  check_parametrisation(layer, affine);
  return affine;
}

nlohmann::ordered_json convolution_fields(const ParametrisedAffine& affine) {
  const AffineNode& node = affine.node;
  nlohmann::ordered_json fields{{"filter", node.window.sizes},
                                {"strides", node.window.strides},
                                {"padding", padding_name(node.window.padding)},
                                {"weight_variance", node.weight_variance},
                                {"bias_variance", node.bias_variance}};
  add_parametrisation_fields(affine, fields);
  return fields;
}

namespace {

/// "same", "valid" or "circular", unless pads say how many zeros there are.
Padding read_padding(KindFields& fields, bool spaced) {
  if (spaced && !fields.has("padding")) return Padding::same;
  if (spaced && fields.has("pads"))
    fields.fail("padding", "expected no padding beside pads, which say how many zeros there are");
  if (spaced && !fields.reader("padding").value("padding").is_string())
    fields.fail("padding",
                "expected one of same, valid, circular; numbers of zeros are \"pads\", one an axis");
  return padding_from_name(fields.word("padding"));
}

}  // namespace

ConvolutionOptions read_convolution(KindFields& fields, Spacings spacings) {
  const bool spaced = spacings == Spacings::present;
  return {.filter = fields.integers("filter"),
          .strides = fields.integers("strides"),
          .padding = read_padding(fields, spaced),
          .weight_variance = fields.number("weight_variance"),
          .bias_variance = fields.number("bias_variance"),
          .standard = read_parametrisation(fields),
          .pads = spaced ? fields.integers("pads") : std::vector<Index>{},
          .dilations = spaced ? fields.integers("dilations") : std::vector<Index>{},
          .trainable = read_trainable(fields)};
}

LayerKind convolution_kind(LayerKind kind, Spacings spacings) {
  kind.group = KindGroup::weights;
  kind.fields = {
      {.name = "filter",
       .type = FieldType::integers,
       .minimum = 1,
       .meaning = "one size per axis, for one to three axes"},
      {.name = "strides",
       .type = FieldType::integers,
       .default_value = "null",
       .minimum = 1,
       .meaning = "s, one per axis; all 1 if omitted"},
      {.name = "padding",
       .type = FieldType::text,
       .default_value = spacings == Spacings::present ? "null" : R"("same")",
       .words = {"same", "valid", "circular"},
       .meaning =
           std::string(spacings == Spacings::present ? "'same' if omitted; " : "") +
           "n positions along an axis become ceil(n / stride), or (n - size) // stride + 1 with 'valid'; "
           "padded positions count as zeros"}};
  add_weight_fields(kind.fields);
  if (spacings == Spacings::absent) return kind;
  kind.fields.push_back(
      {.name = "pads",
       .type = FieldType::integers,
       .default_value = "null",
       .minimum = 0,
       .meaning =
           "zeros around the inputs in place of 'padding', as PyTorch's numbers: one an axis, on either "
           "side of it, or all those before the axes and then all behind",
       .by_name = true});
  kind.fields.push_back(
      {.name = "dilations",
       .type = FieldType::integers,
       .default_value = "null",
       .minimum = 1,
       .meaning = "distances of the filter's positions, one per axis; all 1 if omitted, and in 'local_conv'",
       .by_name = true});
  return kind;
}

finite::CounterpartPointer convolution_counterpart(const ParametrisedAffine& affine,
                                                   finite::Sharing sharing) {
  return finite::convolution_counterpart(
      affine.node.window,
      {affine.node.weight_variance, affine.node.bias_variance, affine.standard, affine.trainable}, sharing);
}

namespace {

using finite::Sharing;

std::string kind_of(Sharing sharing) { return sharing == Sharing::shared ? "conv" : "local_conv"; }

class Convolution final : public LayerModel {
 public:
  Convolution(const ConvolutionOptions& options, Sharing sharing)
      : sharing_{sharing},
        affine_{affine_of(kind_of(sharing), options)},
        spacing_{spacing_of(kind_of(sharing), options)} {
    Window& window = affine_.node.window;
    if (spacing_.is_none()) return;
    // Weights belong to positions after the layer, and dilated windows are computed in an order that depends on the
    // size of the inputs: inputs of two sizes would meet with the weights of other positions.
    if (sharing == Sharing::by_position &&
        std::ranges::any_of(spacing_.dilations, [](Index d) { return d != 1; }))
      throw ArgumentError("local_conv: dilations: expected all 1; conv takes others");
    fields_ = convolution_fields(affine_);
    add_spacing_fields(spacing_, fields_);
    if (const std::optional<Padding> padding = spacing_.plain_padding(window))
      window.padding = *padding;
    else
      windows_ = std::make_shared<SpacedWindows>(window, spacing_);
    if (windows_) window = windows_->window_between();
  }

  std::string kind() const override { return kind_of(sharing_); }

  nlohmann::ordered_json fields() const override {
    return spacing_.is_none() ? convolution_fields(affine_) : fields_;
  }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    if (!windows_) return weighed(lowering, input);
    return windows_->lower(lowering, input,
                           [&](const LoweredState& state) { return weighed(lowering, state); });
  }

  finite::CounterpartPointer finite_counterpart() const override {
    auto convolution = convolution_counterpart(affine_, sharing_);
    if (!windows_) return convolution;
    return finite::mapped_convolution_counterpart(windows_->before(), std::move(convolution),
                                                  windows_->behind());
  }

 private:
  [[nodiscard]] LoweredState weighed(Lowering& lowering, const LoweredState& input) const {
    return sharing_ == Sharing::shared ? lower_affine(lowering, input, affine_)
                                       : lower_local_affine(lowering, input, affine_);
  }

  Sharing sharing_;
  ParametrisedAffine affine_;
  Spacing spacing_;
  nlohmann::ordered_json fields_;                 ///< With spacings, which `affine_` does not have.
  std::shared_ptr<const SpacedWindows> windows_;  ///< Null where the engine has such windows.
};

}  // namespace

Layer conv(const ConvolutionOptions& options) {
  return Layer(std::make_shared<Convolution>(options, Sharing::shared));
}

Layer local_conv(const ConvolutionOptions& options) {
  return Layer(std::make_shared<Convolution>(options, Sharing::by_position));
}

void add_convolution_kinds(KindRows& rows) {
  rows.push_back(
      {convolution_kind(
           {.name = "conv",
            .does = "A convolution: new weights for the F positions of a filter, shared by all places",
            .nngp = "K'[a, c] = (w / F) sum over the filter's offsets o of K[s a + o, s c + o], plus b",
            .ntk = "K' + the same sum of T",
            .limits =
                "May follow anything; leaves Gaussian channels. The filter needs as many axes as the inputs.",
            .cost = "d^2 per axis of the filter, as running sums; pads other than those of 'same', and "
                    "dilations, as positions_map",
            .source = "Novak et al. 2019 (arXiv:1810.05148), section 2.2; Garriga-Alonso et al. 2019 "
                      "(arXiv:1808.05587), section 3",
            .example = R"({"filter": [3], "weight_variance": 1.3, "bias_variance": 0.2})"},
           Spacings::present),
       [](KindFields& fields) { return conv(read_convolution(fields, Spacings::present)); }});
  rows.push_back(
      {convolution_kind({.name = "local_conv",
                         .does = "A convolution whose weights are not shared between positions",
                         .nngp = "that of conv at equal positions, 0 elsewhere",
                         .ntk = "that of conv at equal positions, 0 elsewhere",
                         .limits = "As conv.",
                         .cost = "d",
                         .source = "Novak et al. 2019 (arXiv:1810.05148), section 3",
                         .example = R"({"filter": [2], "weight_variance": 1.3, "bias_variance": 0.2})"},
                        Spacings::present),
       [](KindFields& fields) { return local_conv(read_convolution(fields, Spacings::present)); }});
}

}  // namespace widelimit::layers
