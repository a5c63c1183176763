#include "widelimit/layers/convolution.hpp"

#include "layers/builtin_kinds.hpp"
#include "layers/checks.hpp"
#include "layers/convolution_fields.hpp"
#include "layers/finite/affine.hpp"
#include "layers/padding_names.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"

namespace widelimit::layers {

AffineNode affine_of(const std::string& layer, const ConvolutionOptions& options) {
  const std::vector<Index> strides =
      options.strides.empty() ? std::vector<Index>(options.filter.size(), 1) : options.strides;
  const Window window{options.filter, strides, options.padding};
  check_window(layer, window);
  require_not_negative(layer, "weight_variance", options.weight_variance);
  require_not_negative(layer, "bias_variance", options.bias_variance);
  return {window, options.weight_variance, options.bias_variance};
}

nlohmann::ordered_json convolution_fields(const AffineNode& node) {
  return {{"filter", node.window.sizes},
          {"strides", node.window.strides},
          {"padding", padding_name(node.window.padding)},
          {"weight_variance", node.weight_variance},
          {"bias_variance", node.bias_variance}};
}

ConvolutionOptions read_convolution(FieldReader& fields) {
  return {.filter = fields.integers("filter"),
          .strides = fields.integers("strides", std::vector<Index>{}),
          .padding = padding_from_name(fields.choice("padding", {"same", "valid", "circular"}, "same")),
          .weight_variance = fields.number("weight_variance", 1),
          .bias_variance = fields.number("bias_variance", 0)};
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
    return sharing_ == Sharing::shared ? lowering.affine(input, affine_)
                                       : lowering.local_affine(input, affine_);
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::convolution_counterpart(affine_.window, {affine_.weight_variance, affine_.bias_variance},
                                           sharing_);
  }

 private:
  Sharing sharing_;  // First: kind() looks at it while the options are checked.
  AffineNode affine_;
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
