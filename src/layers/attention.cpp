#include "widelimit/layers/attention.hpp"

#include <fmt/format.h>

#include <cmath>

#include "json/json_matrix.hpp"
#include "layers/attention_stages.hpp"
#include "layers/common/attention_checks.hpp"
#include "layers/common/seen_positions.hpp"
#include "layers/finite/attention.hpp"
#include "layers/kind_rows.hpp"
#include "layers/nonlinearity_field.hpp"
#include "network/layer_model.hpp"
#include "network/registry.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/kinds.hpp"
#include "widelimit/layers/matrix_field.hpp"

namespace widelimit::layers {
namespace {

using nlohmann::ordered_json;

/// A whole number without a point, as files always had it.
ordered_json whole_or_real(double number) {
  constexpr double largest = 1e15;
  if (number != std::floor(number) || std::abs(number) > largest) return number;
  return static_cast<Index>(number);
}

ordered_json position_fields(const PositionalEncodings& positions) {
  ordered_json fields;
  if (const auto* identity = std::get_if<IdentityPositions>(&positions.covariance)) {
    fields = {{"kind", "identity"}, {"rho", identity->rho}};
  } else if (const auto* structured = std::get_if<StructuredPositions>(&positions.covariance)) {
    fields = {{"kind", "structured"}, {"rho", structured->rho}, {"phi", structured->phi}};
  } else if (const auto* decay = std::get_if<DecayPositions>(&positions.covariance)) {
    fields = {{"kind", "decay"},
              {"rho", decay->rho},
              {"power", whole_or_real(decay->power)},
              {"values", decay->values}};
    if (!decay->distances.empty()) fields["distances"] = decay->distances;
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

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    const bool encodes_values = options_.positions && options_.positions->values == ValueEncodings::present;
    // The sums of this scaling run over all positions. Masked ones drop out only because their values are 0, which
    // encodings in the values would change.
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
    // From the cheapest stage to the most expensive one: identity weights take d^2 operations for each pair,
    // homogeneous ones nodes times d^2, and any other elementwise function d^4 (docs/theory/attention.md, section 3).
    const bool is_identity = slopes && slopes->negative == 1 && slopes->positive == 1;
    if (is_identity) return make_identity_attention(options_);
    // With masks and rotary positions the sums depend on the positions themselves, not on their correlation only, so
    // that there is no function of one variable to interpolate.
    const bool interpolates = slopes.has_value() && sees_everything(options_) && !options_.sequence.rotary;
    return interpolates ? make_homogeneous_attention(options_) : make_elementwise_attention(options_);
  }

  ordered_json weights_field() const {
    if (options_.weights.is_softmax()) return options_.weights.is_softmax1() ? "softmax1" : "softmax";
    return nonlinearity_field(options_.weights.nonlinearity());
  }

  AttentionOptions options_;
};

AttentionWeights read_weights(KindFields& fields) {
  if (!fields.has("weights")) return AttentionWeights::softmax();
  FieldReader& reader = fields.reader("weights");
  const nlohmann::json& weights = reader.value("weights");
  if (weights == "softmax") return AttentionWeights::softmax();
  if (weights == "softmax1") return AttentionWeights::softmax1();
  return AttentionWeights::elementwise(read_nonlinearity(fields, "weights", {"softmax", "softmax1"}));
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
    positions.covariance =
        DecayPositions{fields.numbers("values"), fields.number("power", 2), rho,
                       fields.has("distances") ? fields.numbers("distances") : std::vector<double>{}};
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

/// Reads the fields of AttentionOptions that are for sequences only.
void read_sequence_fields(KindFields& fields, AttentionOptions& options) {
  FieldReader& reader = fields.reader("rotary");
  if (fields.has("rotary"))
    options.sequence.rotary = read_rotary(reader.value("rotary"), reader.path() + ".rotary");
  options.sequence.alibi_slope = fields.number("alibi");
  if (fields.has("window")) options.sequence.window = fields.integer("window");
  options.sequence.prefix = fields.integer("prefix");
  if (fields.has("mask")) options.sequence.mask_matrix = read_square_matrix<bool>(reader, "mask");
}

Layer read_attention(KindFields& fields) {
  AttentionOptions options;
  if (fields.word("scaling") == "inverse_sqrt_width") options.scaling = AttentionScaling::inverse_sqrt_width;
  options.weights = read_weights(fields);
  options.query_key_std = fields.number("query_key_std");
  options.output_value_variance = fields.number("output_value_variance");
  options.bias_variance = fields.number("bias_variance");
  options.query_bias_variance = fields.number("query_bias_variance");
  options.key_bias_variance = fields.number("key_bias_variance");
  if (fields.has("tied"))
    options.query_key_weights = fields.boolean("tied") ? QueryKeyWeights::tied : QueryKeyWeights::untied;
  if (fields.boolean("causal")) options.mask = AttentionMask::causal;
  if (fields.has("positions"))
    options.positions = read_positions(fields.reader("positions").value("positions"),
                                       fields.reader("positions").path() + ".positions");
  read_sequence_fields(fields, options);
  const bool sampled =
      options.scaling == AttentionScaling::inverse_sqrt_width && options.weights.is_softmax();
  for (const char* field : {"samples", "seed"})
    if (fields.has(field) && !sampled)
      fields.fail(field, "belongs to softmax weights with inverse_sqrt_width only");
  if (fields.has("samples")) options.samples = fields.integer("samples");
  const Index seed = fields.has("seed") ? fields.integer("seed") : 0;
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

namespace {

KindField option(std::string name, FieldType type, std::string default_value, std::string meaning) {
  return {.name = std::move(name),
          .type = type,
          .default_value = std::move(default_value),
          .meaning = std::move(meaning),
          .by_name = true};
}

/// A field for a number or an integer that must be at least `minimum`.
KindField option_from(double minimum, std::string name, FieldType type, std::string default_value,
                      std::string meaning) {
  KindField field = option(std::move(name), type, std::move(default_value), std::move(meaning));
  field.minimum = minimum;
  return field;
}

std::vector<KindField> weight_fields() {
  std::vector<KindField> fields{
      {.name = "scaling",
       .type = FieldType::text,
       .default_value = R"("inverse_width")",
       .words = {"inverse_width", "inverse_sqrt_width"},
       .meaning = "how logits scale with the key width"},
      {.name = "weights",
       .type = FieldType::object,
       .default_value = R"("softmax")",
       .meaning =
           "'softmax', 'softmax1', 'identity', 'relu' or the kind of another nonlinearity, or its object"},
      option_from(0, "query_key_std", FieldType::number, "1", "kappa, a factor on the logits"),
      option_from(0, "output_value_variance", FieldType::number, "1", "v, of output times value weights"),
      option_from(0, "bias_variance", FieldType::number, "0", "b, of the output's biases")};
  for (KindField& field : fields) field.by_name = false;
  fields.push_back(option_from(0, "query_bias_variance", FieldType::number, "0", "of the queries' biases"));
  fields.push_back(option_from(0, "key_bias_variance", FieldType::number, "0", "of the keys' biases"));
  fields.push_back(option("tied", FieldType::boolean, "null",
                          "whether queries and keys share weights; true for 'inverse_width', else false"));
  return fields;
}

std::vector<KindField> attention_fields() {
  std::vector<KindField> fields = weight_fields();
  for (KindField& field : std::vector<KindField>{
           option("causal", FieldType::boolean, "false", "whether later positions are not seen"),
           option_from(0, "prefix", FieldType::integer, "0",
                       "first positions that all see although `causal` is true"),
           option_from(1, "window", FieldType::integer, "null", "only positions closer than this are seen"),
           option("mask", FieldType::matrix, "null", "rows of true and false: which positions see which"),
           option("positions", FieldType::object, "null", "positional encodings, an object with `kind`"),
           option("rotary", FieldType::object, "null",
                  "rotary positions, {\"base\": 10000, \"pairs\": n} or {\"frequencies\": [...]}"),
           option_from(0, "alibi", FieldType::number, "0", "slope of logits that fall with the distance"),
           option("samples", FieldType::integer, "null",
                  "draws of the logits, for softmax with 'inverse_sqrt_width' only, 2048 there"),
           option("seed", FieldType::integer, "null",
                  "of the draws, for softmax with 'inverse_sqrt_width' only")})
    fields.push_back(std::move(field));
  return fields;
}

}  // namespace

void add_attention_kinds(KindRows& rows) {
  rows.push_back(
      {{.name = "attention",
        .group = KindGroup::attention,
        .fields = attention_fields(),
        .does = "Multi-head self-attention with infinitely many heads",
        .nngp = "'inverse_width': v A K A'^T + b, A the attention weights of either input; "
                "'inverse_sqrt_width': docs/theory/attention.md, section 3",
        .ntk = "'inverse_width': v A T A'^T + 2 v A K A'^T + b",
        .limits =
            "May follow anything; leaves Gaussian channels. Softmax with 'inverse_sqrt_width' is sampled and "
            "comes with standard errors.",
        .cost = "d^3, before a readout d^2; docs/layers.md",
        .source = "Hron et al. 2020 (arXiv:2006.10540), sections 3 and 4; rotary positions: Su et al. 2021 "
                  "(arXiv:2104.09864), section 3.2.2; ALiBi: Press et al. 2021 (arXiv:2108.12409), section 3",
        .example = R"({"scaling": "inverse_width", "query_key_std": 0.8, "output_value_variance": 1.3})"},
       read_attention});
}

}  // namespace widelimit::layers
