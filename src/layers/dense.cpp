#include "widelimit/layers/dense.hpp"

#include "layers/common/checks.hpp"
#include "layers/finite/affine.hpp"
#include "layers/kind_rows.hpp"
#include "layers/parametrisation.hpp"
#include "network/layer_model.hpp"

namespace widelimit::layers {
namespace {

class Dense final : public LayerModel {
 public:
  explicit Dense(const DenseOptions& options)
      : affine_{
            {Window{}, options.weight_variance, options.bias_variance}, options.standard, options.trainable} {
    require_not_negative("dense", "weight_variance", options.weight_variance);
    require_not_negative("dense", "bias_variance", options.bias_variance);
    check_parametrisation("dense", affine_);
  }

  std::string kind() const override { return "dense"; }

  nlohmann::ordered_json fields() const override {
    nlohmann::ordered_json fields{{"weight_variance", affine_.node.weight_variance},
                                  {"bias_variance", affine_.node.bias_variance}};
    add_parametrisation_fields(affine_, fields);
    return fields;
  }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    return lower_affine(lowering, input, affine_);
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::dense_counterpart(
        {affine_.node.weight_variance, affine_.node.bias_variance, affine_.standard, affine_.trainable});
  }

 private:
  ParametrisedAffine affine_;
};

}  // namespace

Layer dense(const DenseOptions& options) { return Layer(std::make_shared<Dense>(options)); }

void add_dense_kinds(KindRows& rows) {
  LayerKind kind{.name = "dense",
                 .group = KindGroup::weights,
                 .does = "New weights at every position, the same for all: [..., C] becomes [..., width]",
                 .nngp = "w K + b",
                 .ntk = "K' + w T",
                 .limits = "May follow anything; leaves Gaussian channels.",
                 .cost = "d^2",
                 .source =
                     "Lee et al. 2018 (arXiv:1711.00165), equations 4 and 5; Jacot et al. 2018 "
                     "(arXiv:1806.07572), theorem 1; "
                     "'standard': Sohl-Dickstein et al. 2020 (arXiv:2001.07301)",
                 .example = R"({"weight_variance": 1.3, "bias_variance": 0.2})"};
  add_weight_fields(kind.fields);
  rows.push_back({std::move(kind), [](KindFields& fields) {
                    return dense({.weight_variance = fields.number("weight_variance"),
                                  .bias_variance = fields.number("bias_variance"),
                                  .standard = read_parametrisation(fields),
                                  .trainable = read_trainable(fields)});
                  }});
}

}  // namespace widelimit::layers
