#include "widelimit/layers/convolution.hpp"

#include "layers/builtin_kinds.hpp"
#include "layers/checks.hpp"
#include "layers/convolution_fields.hpp"
#include "layers/finite/affine.hpp"
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

ConvolutionOptions read_convolution(FieldReader& fields) {
  return {.filter = fields.integers("filter"),
          .strides = fields.integers("strides", std::vector<Index>{}),
          .padding = padding_from_name(fields.choice("padding", {"same", "valid", "circular"}, "same")),
          .weight_variance = fields.number("weight_variance", 1),
          .bias_variance = fields.number("bias_variance", 0),
          .standard = read_parametrisation(fields)};
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
  Sharing sharing_;  // First: kind() looks at it while the options are checked.
  ParametrisedAffine affine_;
};

}  // namespace

Layer conv(const ConvolutionOptions& options) {
  return Layer(std::make_shared<Convolution>(options, Sharing::shared));
}

Layer local_conv(const ConvolutionOptions& options) {
  return Layer(std::make_shared<Convolution>(options, Sharing::by_position));
}

void add_convolution_kinds(LayerReaders& readers) {
  readers["conv"] = [](FieldReader& fields) { return conv(read_convolution(fields)); };
  readers["local_conv"] = [](FieldReader& fields) { return local_conv(read_convolution(fields)); };
}

}  // namespace widelimit::layers
