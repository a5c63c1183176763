#include "widelimit/layers/dense.hpp"

#include "layers/builtin_kinds.hpp"
#include "layers/checks.hpp"
#include "layers/finite/affine.hpp"
#include "layers/parametrisation.hpp"
#include "network/layer_model.hpp"

namespace widelimit::layers {
namespace {

class Dense final : public LayerModel {
 public:
  explicit Dense(const DenseOptions& options)
      : affine_{{Window{}, options.weight_variance, options.bias_variance}, options.standard} {
    require_not_negative("dense", "weight_variance", options.weight_variance);
    require_not_negative("dense", "bias_variance", options.bias_variance);
    check_parametrisation("dense", affine_);
  }

  std::string kind() const override { return "dense"; }

  nlohmann::ordered_json fields() const override {
    nlohmann::ordered_json fields{{"weight_variance", affine_.node.weight_variance},
                                  {"bias_variance", affine_.node.bias_variance}};
    add_parametrisation_fields(affine_.standard, fields);
    return fields;
  }

  State lower(Lowering& lowering, const State& input) const override {
    return lower_affine(lowering, input, affine_);
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::dense_counterpart(
        {affine_.node.weight_variance, affine_.node.bias_variance, affine_.standard});
  }

 private:
  ParametrisedAffine affine_;
};

}  // namespace

Layer dense(const DenseOptions& options) { return Layer(std::make_shared<Dense>(options)); }

void add_dense_kinds(LayerReaders& readers) {
  readers["dense"] = [](FieldReader& fields) {
    return dense({.weight_variance = fields.number("weight_variance", 1),
                  .bias_variance = fields.number("bias_variance", 0),
                  .standard = read_parametrisation(fields)});
  };
}

}  // namespace widelimit::layers
