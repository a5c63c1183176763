#include "widelimit/layers/recurrent.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "layers/common/checks.hpp"
#include "layers/finite/recurrent.hpp"
#include "layers/nonlinearity_field.hpp"
#include "layers/recurrent_stage.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

class Recurrent final : public LayerModel {
 public:
  explicit Recurrent(RecurrentOptions options) : options_{std::move(options)} {
    require_not_negative("recurrent", "weight_variance", options_.weight_variance);
    require_not_negative("recurrent", "recurrent_variance", options_.recurrent_variance);
    require_not_negative("recurrent", "bias_variance", options_.bias_variance);
    try {
      static_cast<void>(activation_of(options_.nonlinearity));
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("recurrent: nonlinearity: {}", error.what()));
    }
  }

  std::string kind() const override { return "recurrent"; }

  nlohmann::ordered_json fields() const override {
    return {{"weight_variance", options_.weight_variance},
            {"recurrent_variance", options_.recurrent_variance},
            {"bias_variance", options_.bias_variance},
            {"nonlinearity", nonlinearity_field(options_.nonlinearity)},
            {"direction", options_.direction == RecurrentDirection::forward ? "forward" : "backward"}};
  }

  void check_writable(const std::string& path) const override {
    model_of(options_.nonlinearity).check_writable(path + ".nonlinearity");
  }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    if (input.shape.size() != 1)
      lowering.reject(
          fmt::format("expected sequences, inputs with one axis, got {}", axes_text(input.shape)));
    return lowering.pair(input, recurrent_stage(options_));
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::recurrent_counterpart(options_);
  }

 private:
  RecurrentOptions options_;
};

Layer read_recurrent(KindFields& fields) {
  RecurrentOptions options;
  options.weight_variance = fields.number("weight_variance");
  options.recurrent_variance = fields.number("recurrent_variance");
  options.bias_variance = fields.number("bias_variance");
  if (fields.has("nonlinearity")) options.nonlinearity = read_nonlinearity(fields, "nonlinearity");
  if (fields.word("direction") == "backward") options.direction = RecurrentDirection::backward;
  return recurrent(options);
}

}  // namespace

Layer recurrent(const RecurrentOptions& options) { return Layer(std::make_shared<Recurrent>(options)); }

void add_recurrent_kinds(KindRows& rows) {
  rows.push_back(
      {{.name = "recurrent",
        .group = KindGroup::weights,
        .fields = {{.name = "weight_variance",
                    .default_value = "1",
                    .minimum = 0,
                    .meaning = "w, of the inputs' weights"},
                   {.name = "recurrent_variance",
                    .default_value = "1",
                    .minimum = 0,
                    .meaning = "r, of the hidden state's weights"},
                   {.name = "bias_variance", .default_value = "0", .minimum = 0, .meaning = "b"},
                   {.name = "nonlinearity",
                    .type = FieldType::object,
                    .default_value = R"("relu")",
                    .meaning = "phi, the kind of a nonlinearity, or its object"},
                   {.name = "direction",
                    .type = FieldType::text,
                    .default_value = R"("forward")",
                    .words = {"forward", "backward"},
                    .meaning = "the end at which it begins"}},
        .does = "A simple recurrent cell over a sequence, with weights shared over time: h_t = phi(z_t)",
        .nngp = "H_st = V(Z_st), Z_st = w K_st + r H_{s-1,t-1} + b, V the dual of phi",
        .ntk = "V'(Z_st) (Z_st + w T_st + r T'_{s-1,t-1})",
        .limits = "Takes sequences; leaves channels that are not Gaussian. Positions that masks leave out "
                  "are passed over.",
        .cost = "d^2 duals",
        .source = "docs/theory/recurrent.md; Alemohammad et al. 2021 (arXiv:2006.10246), section 3",
        .example =
            R"({"weight_variance": 0.8, "recurrent_variance": 1.3, "bias_variance": 0.1, "nonlinearity": "erf"})"},
       read_recurrent});
}

}  // namespace widelimit::layers
