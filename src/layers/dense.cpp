#include "widelimit/layers/dense.hpp"

#include "layers/builtin_kinds.hpp"
#include "layers/checks.hpp"
#include "layers/finite/affine.hpp"
#include "network/layer_model.hpp"

namespace widelimit::layers {
namespace {

class Dense final : public LayerModel {
 public:
  explicit Dense(const DenseOptions& options) : options_{options} {
    require_not_negative("dense", "weight_variance", options.weight_variance);
    require_not_negative("dense", "bias_variance", options.bias_variance);
  }

  std::string kind() const override { return "dense"; }

  nlohmann::ordered_json fields() const override {
    return {{"weight_variance", options_.weight_variance}, {"bias_variance", options_.bias_variance}};
  }

  State lower(Lowering& lowering, const State& input) const override {
    return lowering.affine(input, {Window{}, options_.weight_variance, options_.bias_variance});
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::dense_counterpart({options_.weight_variance, options_.bias_variance});
  }

 private:
  DenseOptions options_;
};

}  // namespace

Layer dense(const DenseOptions& options) { return Layer(std::make_shared<Dense>(options)); }

void add_dense_kinds(LayerReaders& readers) {
  readers["dense"] = [](FieldReader& fields) {
    return dense({.weight_variance = fields.number("weight_variance", 1),
                  .bias_variance = fields.number("bias_variance", 0)});
  };
}

}  // namespace widelimit::layers
