#include "widelimit/layers/attention.hpp"

#include <fmt/format.h>

#include "json/json_value.hpp"
#include "layers/attention_positions.hpp"
#include "layers/attention_stages.hpp"
#include "layers/builtin_kinds.hpp"
#include "layers/checks.hpp"
#include "layers/finite/attention.hpp"
#include "layers/matrix_field.hpp"
#include "network/layer_model.hpp"
#include "network/registry.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"

namespace widelimit::layers {
namespace {

using nlohmann::ordered_json;

QueryKeyWeights query_key_weights(const AttentionOptions& options) {
  return options.query_key_weights.value_or(
      options.scaling == AttentionScaling::inverse_width ? QueryKeyWeights::tied : QueryKeyWeights::untied);
}

void check(const AttentionOptions& options) {
  require_not_negative("attention", "query_key_std", options.query_key_std);
  require_not_negative("attention", "output_value_variance", options.output_value_variance);
  require_not_negative("attention", "bias_variance", options.bias_variance);
  const bool tied = query_key_weights(options) == QueryKeyWeights::tied;
  if (options.scaling == AttentionScaling::inverse_width && !tied && !options.weights.is_softmax())
    throw ArgumentError(
        "attention: inverse_width with untied query and key weights needs softmax (the logits vanish, and "
        "other "
        "weights with them); tie the weights or use inverse_sqrt_width");
  if (options.scaling == AttentionScaling::inverse_sqrt_width && tied)
    throw ArgumentError("attention: inverse_sqrt_width needs untied query and key weights, got tied");
  constexpr Index most_samples = 10'000'000;
  if (options.samples < 1)
    throw ArgumentError(fmt::format("attention: samples must be at least 1, got {}", options.samples));
  if (options.samples > most_samples)
    throw ArgumentError(
        fmt::format("attention: samples must be at most {}, got {}", most_samples, options.samples));
  if (options.positions) check_positions(*options.positions);
}

ordered_json position_fields(const PositionalEncodings& positions) {
  ordered_json fields;
  if (const auto* identity = std::get_if<IdentityPositions>(&positions.covariance)) {
    fields = {{"kind", "identity"}, {"rho", identity->rho}};
  } else if (const auto* structured = std::get_if<StructuredPositions>(&positions.covariance)) {
    fields = {{"kind", "structured"}, {"rho", structured->rho}, {"phi", structured->phi}};
  } else {
    const auto& matrix = std::get<MatrixPositions>(positions.covariance);
    fields = {{"kind", "matrix"}, {"rho", matrix.rho}, {"matrix", matrix_rows(matrix.covariance)}};
  }
  fields["input_weight"] = positions.input_weight;
  fields["position_weight"] = positions.position_weight;
  fields["in_values"] = positions.values == ValueEncodings::present;
  return fields;
}

class Attention final : public LayerModel {
 public:
  explicit Attention(const AttentionOptions& options) : options_{options} { check(options); }

  std::string kind() const override { return "attention"; }

  ordered_json fields() const override {
    const bool inverse_width = options_.scaling == AttentionScaling::inverse_width;
    ordered_json fields{{"scaling", inverse_width ? "inverse_width" : "inverse_sqrt_width"},
                        {"weights", weights_field()},
                        {"query_key_std", options_.query_key_std},
                        {"output_value_variance", options_.output_value_variance},
                        {"bias_variance", options_.bias_variance},
                        {"tied", query_key_weights(options_) == QueryKeyWeights::tied},
                        {"causal", options_.mask == AttentionMask::causal}};
    if (options_.positions) fields["positions"] = position_fields(*options_.positions);
    if (!inverse_width && options_.weights.is_softmax()) {
      fields["samples"] = options_.samples;
      fields["seed"] = options_.seed;
    }
    return fields;
  }

  void check_writable(const std::string& path) const override {
    if (!options_.weights.is_softmax())
      options_.weights.nonlinearity().model().check_writable(path + ".weights");
  }

  State lower(Lowering& lowering, const State& input) const override {
    return lowering.pair(input, make_stage(lowering));
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::attention_counterpart(options_);
  }

 private:
  std::shared_ptr<const PairStage> make_stage(Lowering& lowering) const {
    if (options_.scaling == AttentionScaling::inverse_width) return make_inverse_width_attention(options_);
    if (options_.weights.is_softmax()) {
      const SampledDraws draws = lowering.draws(options_.samples);
      return make_sampled_softmax_attention(options_, {draws.samples, options_.seed, draws.stream});
    }
    const auto slopes = activation_of(options_.weights.nonlinearity())->homogeneous();
    const bool is_identity = slopes && slopes->negative == 1 && slopes->positive == 1;
    if (is_identity) return make_identity_attention(options_);
    // A causal mask makes the sums depend on the positions themselves, not on their correlation only.
    const bool interpolates = slopes.has_value() && options_.mask == AttentionMask::full;
    return interpolates ? make_homogeneous_attention(options_) : make_elementwise_attention(options_);
  }

  ordered_json weights_field() const {
    if (options_.weights.is_softmax()) return "softmax";
    const auto& nonlinearity = options_.weights.nonlinearity();
    if (nonlinearity.model().fields().empty()) return nonlinearity.kind();
    return to_json(nonlinearity);
  }

  AttentionOptions options_;
};

AttentionWeights read_weights(FieldReader& fields) {
  if (!fields.has("weights")) return AttentionWeights::softmax();
  const nlohmann::json& weights = fields.value("weights");
  if (weights == "softmax") return AttentionWeights::softmax();
  const std::string path = fields.path() + ".weights";
  if (weights.is_string()) return AttentionWeights::elementwise(read_layer({{"layer", weights}}, path));
  return AttentionWeights::elementwise(read_layer(weights, path));
}

PositionalEncodings read_positions(const nlohmann::json& object, const std::string& path) {
  FieldReader fields(object, path);
  const std::string kind = fields.choice("kind", {"identity", "structured", "matrix"});
  const double rho = fields.number("rho", 1);
  PositionalEncodings positions;
  if (kind == "identity") positions.covariance = IdentityPositions{rho};
  if (kind == "structured") positions.covariance = StructuredPositions{rho, fields.number("phi", 1)};
  if (kind == "matrix")
    positions.covariance = MatrixPositions{read_matrix_rows(fields, "matrix", fields.value("matrix")), rho};
  positions.input_weight = fields.number("input_weight", 1);
  positions.position_weight = fields.number("position_weight", 1);
  if (fields.boolean("in_values", false)) positions.values = ValueEncodings::present;
  fields.finish();
  return positions;
}

Layer read_attention(FieldReader& fields) {
  AttentionOptions options;
  if (fields.choice("scaling", {"inverse_width", "inverse_sqrt_width"}) == "inverse_sqrt_width")
    options.scaling = AttentionScaling::inverse_sqrt_width;
  options.weights = read_weights(fields);
  options.query_key_std = fields.number("query_key_std", 1);
  options.output_value_variance = fields.number("output_value_variance", 1);
  options.bias_variance = fields.number("bias_variance", 0);
  if (fields.has("tied"))
    options.query_key_weights = fields.boolean("tied") ? QueryKeyWeights::tied : QueryKeyWeights::untied;
  if (fields.boolean("causal", false)) options.mask = AttentionMask::causal;
  if (fields.has("positions"))
    options.positions = read_positions(fields.value("positions"), fields.path() + ".positions");
  const bool sampled =
      options.scaling == AttentionScaling::inverse_sqrt_width && options.weights.is_softmax();
  for (const char* field : {"samples", "seed"})
    if (fields.has(field) && !sampled)
      fields.fail(field, "belongs to softmax weights with inverse_sqrt_width only");
  options.samples = fields.integer("samples", 2048);
  const Index seed = fields.integer("seed", 0);
  if (seed < 0) fields.fail("seed", fmt::format("must not be negative, got {}", seed));
  options.seed = static_cast<std::uint64_t>(seed);
  return attention(options);
}

}  // namespace

AttentionWeights AttentionWeights::elementwise(Layer nonlinearity) {
  static_cast<void>(activation_of(nonlinearity));  // throws for a layer of another sort
  AttentionWeights weights;
  weights.nonlinearity_ = std::move(nonlinearity);
  return weights;
}

Layer attention(const AttentionOptions& options) { return Layer(std::make_shared<Attention>(options)); }

void add_attention_kinds(LayerReaders& readers) { readers["attention"] = read_attention; }

}  // namespace widelimit::layers
