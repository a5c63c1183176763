#include "widelimit/layers/convolution.hpp"

#include "layers/checks.hpp"
#include "layers/convolution_fields.hpp"
#include "layers/finite/affine.hpp"
#include "layers/kind_rows.hpp"
#include "layers/padding_names.hpp"
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
  const ParametrisedAffine affine{{window, options.weight_variance, options.bias_variance}, options.standard};
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
  add_parametrisation_fields(affine.standard, fields);
  return fields;
}

ConvolutionOptions read_convolution(KindFields& fields) {
  return {.filter = fields.integers("filter"),
          .strides = fields.integers("strides"),
          .padding = padding_from_name(fields.word("padding")),
          .weight_variance = fields.number("weight_variance"),
          .bias_variance = fields.number("bias_variance"),
          .standard = read_parametrisation(fields)};
}

LayerKind convolution_kind(LayerKind kind) {
  kind.group = KindGroup::weights;
  kind.fields = {
      {.name = "filter",
       .type = FieldType::integers,
       .least = 1,
       .meaning = "one size per axis, for one to three axes"},
      {.name = "strides",
       .type = FieldType::integers,
       .otherwise = "null",
       .least = 1,
       .meaning = "s, one per axis; all 1 if omitted"},
      {.name = "padding",
       .type = FieldType::text,
       .otherwise = R"("same")",
       .words = {"same", "valid", "circular"},
       .meaning =
           "n positions along an axis become ceil(n / stride), or (n - size) // stride + 1 with 'valid'; "
           "padded positions count as zeros"}};
  add_weight_fields(kind.fields);
  return kind;
}

finite::CounterpartPointer convolution_counterpart(const ParametrisedAffine& affine,
                                                   finite::Sharing sharing) {
  return finite::convolution_counterpart(
      affine.node.window, {affine.node.weight_variance, affine.node.bias_variance, affine.standard}, sharing);
}

namespace {

using finite::Sharing;

class Convolution final : public LayerModel {
 public:
  Convolution(const ConvolutionOptions& options, Sharing sharing)
      : sharing_{sharing}, affine_{affine_of(kind(), options)} {}

  std::string kind() const override { return sharing_ == Sharing::shared ? "conv" : "local_conv"; }

  nlohmann::ordered_json fields() const override { return convolution_fields(affine_); }

  State lower(Lowering& lowering, const State& input) const override {
    return sharing_ == Sharing::shared ? lower_affine(lowering, input, affine_)
                                       : lower_local_affine(lowering, input, affine_);
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return convolution_counterpart(affine_, sharing_);
  }

 private:
  Sharing sharing_;  // comes first, because kind() reads it while the options are checked
  ParametrisedAffine affine_;
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
            .cost = "d^2 per axis of the filter, as running sums",
            .source = "Novak et al. 2019 (arXiv:1810.05148), section 2.2; Garriga-Alonso et al. 2019 "
                      "(arXiv:1808.05587), section 3",
            .example = R"({"filter": [3], "weight_variance": 1.3, "bias_variance": 0.2})"}),
       [](KindFields& fields) { return conv(read_convolution(fields)); }});
  rows.push_back(
      {convolution_kind({.name = "local_conv",
                         .does = "A convolution whose weights are not shared between positions",
                         .nngp = "that of conv at equal positions, 0 elsewhere",
                         .ntk = "that of conv at equal positions, 0 elsewhere",
                         .limits = "As conv.",
                         .cost = "d",
                         .source = "Novak et al. 2019 (arXiv:1810.05148), section 3",
                         .example = R"({"filter": [2], "weight_variance": 1.3, "bias_variance": 0.2})"}),
       [](KindFields& fields) { return local_conv(read_convolution(fields)); }});
}

}  // namespace widelimit::layers
