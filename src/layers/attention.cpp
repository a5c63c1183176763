#include "widelimit/layers/attention.hpp"

#include <fmt/format.h>

#include <cmath>

#include "json/json_matrix.hpp"
#include "layers/attention_checks.hpp"
#include "layers/attention_stages.hpp"
#include "layers/builtin_kinds.hpp"
#include "layers/finite/attention.hpp"
#include "layers/seen_positions.hpp"
#include "network/layer_model.hpp"
#include "network/registry.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/matrix_field.hpp"

namespace widelimit::layers {
namespace {

using nlohmann::ordered_json;

ordered_json position_fields(const PositionalEncodings& positions) {
  ordered_json fields;
  if (const auto* identity = std::get_if<IdentityPositions>(&positions.covariance)) {
    fields = {{"kind", "identity"}, {"rho", identity->rho}};
  } else if (const auto* structured = std::get_if<StructuredPositions>(&positions.covariance)) {
    fields = {{"kind", "structured"}, {"rho", structured->rho}, {"phi", structured->phi}};
  } else if (const auto* decay = std::get_if<DecayPositions>(&positions.covariance)) {
    fields = {{"kind", "decay"}, {"rho", decay->rho}, {"power", decay->power}, {"values", decay->values}};
  } else {
    const auto& matrix = std::get<MatrixPositions>(positions.covariance);
    fields = {{"kind", "matrix"}, {"rho", matrix.rho}, {"matrix", json_rows(matrix.covariance)}};
  }
  fields["input_weight"] = positions.input_weight;
  fields["position_weight"] = positions.position_weight;
  fields["in_values"] = positions.values == ValueEncodings::present;
  if (positions.scale == PositionScale::mean_row_sum) fields["scale"] = "mean_row_sum";
  return fields;
}

void add_sequence_fields(const AttentionOptions& options, ordered_json& fields) {
  if (options.sequence.rotary) fields["rotary"] = {{"frequencies", options.sequence.rotary->frequencies}};
  if (options.sequence.alibi_slope != 0) fields["alibi"] = options.sequence.alibi_slope;
  if (options.sequence.window) fields["window"] = *options.sequence.window;
  if (options.sequence.prefix != 0) fields["prefix"] = options.sequence.prefix;
  if (options.sequence.mask_matrix) fields["mask"] = json_rows(*options.sequence.mask_matrix);
}

class Attention final : public LayerModel {
 public:
  explicit Attention(const AttentionOptions& options) : options_{options} { check_attention(options); }

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
    if (options_.query_bias_variance != 0) fields["query_bias_variance"] = options_.query_bias_variance;
    if (options_.key_bias_variance != 0) fields["key_bias_variance"] = options_.key_bias_variance;
    if (options_.positions) fields["positions"] = position_fields(*options_.positions);
    add_sequence_fields(options_, fields);
    if (!inverse_width && options_.weights.is_softmax()) {
      fields["samples"] = options_.samples;
      fields["seed"] = options_.seed;
    }
    return fields;
  }

  void check_writable(const std::string& path) const override {
    if (!options_.weights.is_softmax())
      model_of(options_.weights.nonlinearity()).check_writable(path + ".weights");
  }

  State lower(Lowering& lowering, const State& input) const override {
    const bool encodes_values = options_.positions && options_.positions->values == ValueEncodings::present;
    if (input.mask && encodes_values && options_.scaling == AttentionScaling::inverse_sqrt_width)
      lowering.reject(
          "encodings in the values do not know masks with inverse_sqrt_width; leave in_values out");
    lowering.check_masks(input, [this](const PositionMask& mask) { check_attention_sees(options_, mask); });
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
    // Masks and rotary positions make the sums depend on the positions themselves, not on their correlation only.
    const bool interpolates = slopes.has_value() && sees_everything(options_) && !options_.sequence.rotary;
    return interpolates ? make_homogeneous_attention(options_) : make_elementwise_attention(options_);
  }

  ordered_json weights_field() const {
    if (options_.weights.is_softmax()) return options_.weights.is_softmax1() ? "softmax1" : "softmax";
    const auto& nonlinearity = options_.weights.nonlinearity();
    if (model_of(nonlinearity).fields().empty()) return nonlinearity.kind();
    return to_json(nonlinearity);
  }

  AttentionOptions options_;
};

AttentionWeights read_weights(FieldReader& fields) {
  if (!fields.has("weights")) return AttentionWeights::softmax();
  const nlohmann::json& weights = fields.value("weights");
  if (weights == "softmax") return AttentionWeights::softmax();
  if (weights == "softmax1") return AttentionWeights::softmax1();
  const std::string path = fields.path() + ".weights";
  if (weights.is_string()) return AttentionWeights::elementwise(read_layer({{"layer", weights}}, path));
  return AttentionWeights::elementwise(read_layer(weights, path));
}

PositionalEncodings read_positions(const nlohmann::json& object, const std::string& path) {
  FieldReader fields(object, path);
  const std::string kind = fields.choice("kind", {"identity", "structured", "matrix", "decay"});
  const double rho = fields.number("rho", 1);
  PositionalEncodings positions;
  if (kind == "identity") positions.covariance = IdentityPositions{rho};
  if (kind == "structured") positions.covariance = StructuredPositions{rho, fields.number("phi", 1)};
  if (kind == "matrix")
    positions.covariance = MatrixPositions{read_square_matrix<double>(fields, "matrix"), rho};
  if (kind == "decay")
    positions.covariance = DecayPositions{fields.numbers("values"), fields.integer("power", 2), rho};
  positions.input_weight = fields.number("input_weight", 1);
  positions.position_weight = fields.number("position_weight", 1);
  if (fields.boolean("in_values", false)) positions.values = ValueEncodings::present;
  if (fields.has("scale") && fields.choice("scale", {"variance", "mean_row_sum"}) == "mean_row_sum")
    positions.scale = PositionScale::mean_row_sum;
  fields.finish();
  return positions;
}

RotaryPositions read_rotary(const nlohmann::json& object, const std::string& path) {
  FieldReader fields(object, path);
  RotaryPositions rotary =
      fields.has("frequencies")
          ? RotaryPositions{fields.numbers("frequencies")}
          : RotaryPositions::with_base(fields.number("base", 10000), fields.integer("pairs"));
  fields.finish();
  return rotary;
}

/// The fields of AttentionOptions that are for sequences only.
void read_sequence_fields(FieldReader& fields, AttentionOptions& options) {
  if (fields.has("rotary"))
    options.sequence.rotary = read_rotary(fields.value("rotary"), fields.path() + ".rotary");
  options.sequence.alibi_slope = fields.number("alibi", 0);
  if (fields.has("window")) options.sequence.window = fields.integer("window");
  options.sequence.prefix = fields.integer("prefix", 0);
  if (fields.has("mask")) options.sequence.mask_matrix = read_square_matrix<bool>(fields, "mask");
}

Layer read_attention(FieldReader& fields) {
  AttentionOptions options;
  if (fields.choice("scaling", {"inverse_width", "inverse_sqrt_width"}) == "inverse_sqrt_width")
    options.scaling = AttentionScaling::inverse_sqrt_width;
  options.weights = read_weights(fields);
  options.query_key_std = fields.number("query_key_std", 1);
  options.output_value_variance = fields.number("output_value_variance", 1);
  options.bias_variance = fields.number("bias_variance", 0);
  options.query_bias_variance = fields.number("query_bias_variance", 0);
  options.key_bias_variance = fields.number("key_bias_variance", 0);
  if (fields.has("tied"))
    options.query_key_weights = fields.boolean("tied") ? QueryKeyWeights::tied : QueryKeyWeights::untied;
  if (fields.boolean("causal", false)) options.mask = AttentionMask::causal;
  if (fields.has("positions"))
    options.positions = read_positions(fields.value("positions"), fields.path() + ".positions");
  read_sequence_fields(fields, options);
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

AttentionWeights AttentionWeights::softmax1() {
  AttentionWeights weights;
  weights.adds_one_ = true;
  return weights;
}

RotaryPositions RotaryPositions::with_base(double base, Index pairs) {
  constexpr Index most_pairs = 65536;
  if (!(base > 0 && std::isfinite(base)))
    throw ArgumentError(fmt::format("rotary positions: base must be positive and finite, got {}", base));
  if (pairs < 1 || pairs > most_pairs)
    throw ArgumentError(
        fmt::format("rotary positions: pairs must be from 1 to {}, got {}", most_pairs, pairs));
  RotaryPositions rotary;
  for (Index i = 0; i < pairs; ++i)
    rotary.frequencies.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs)));
  return rotary;
}

AttentionWeights AttentionWeights::elementwise(Layer nonlinearity) {
  static_cast<void>(activation_of(nonlinearity));  // throws for a layer of another sort
  AttentionWeights weights;
  weights.nonlinearity_ = std::move(nonlinearity);
  return weights;
}

Layer attention(const AttentionOptions& options) { return Layer(std::make_shared<Attention>(options)); }

void add_attention_kinds(LayerReaders& readers) { readers["attention"] = read_attention; }

}  // namespace widelimit::layers
