#include "layers/parametrisation.hpp"

#include <fmt/format.h>

#include <cmath>

#include "network/linear_adjoints.hpp"
#include "network/linear_stages.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// The standard parametrisation (docs/theory/kernel-recursion.md, section 2.3), as a row stage after an ordinary
/// layer of weight variance 1 without biases. That layer leaves K_1 = mean K and T_1 = K_1 + mean T over the filter;
/// this stage makes K' = w K_1 + b and T' = (N/s) F K_1 + [1 if there are biases] + w mean T.
class StandardStage final : public LinearStageOf<StandardStage>, public AffineEntryStage {
 public:
  StandardStage(const AffineNode& node, const StandardParametrisation& standard)
      : weight_variance_{node.weight_variance},
        bias_variance_{node.bias_variance},
        weights_{static_cast<double>(standard.input_width) / standard.width_scale},
        biases_{standard.zero_biases || node.bias_variance > 0 ? 1.0 : 0.0} {
    for (const Index size : node.window.sizes) weights_ *= static_cast<double>(size);
  }

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }
  std::size_t auxiliary_count() const override { return 0; }
  Multiples multiples() const override { return bias_variance_ == 0 ? Multiples::kept : Multiples::equal; }

  [[nodiscard]] Entries entries() const override {
    // w mean T = w T_1 - w K_1, so the factor of K_1 is (N/s) F - w.
    return {weight_variance_, bias_variance_, weights_ - weight_variance_, biases_};
  }

  template <typename Scalar>
  void prepare_row(const Scalar*, std::size_t, Scalar* const*) const {}

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    const auto w = static_cast<Scalar>(weight_variance_), b = static_cast<Scalar>(bias_variance_);
    if (row.ntk != nullptr) {
      const auto gradients = static_cast<Scalar>(entries().in_ntk), biases = static_cast<Scalar>(biases_);
      for (std::size_t i = 0; i < row.size; ++i)
        row.ntk[i] = w * row.ntk[i] + (gradients * row.nngp[i] + biases);
    }
    for (std::size_t i = 0; i < row.size; ++i) row.nngp[i] = w * row.nngp[i] + b;
  }

  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    const auto w = static_cast<Scalar>(weight_variance_);
    for (std::size_t i = 0; i < row.size; ++i) row.nngp_adjoint[i] *= w;
    if (row.ntk_adjoint == nullptr) return;
    const auto gradients = static_cast<Scalar>(weights_ - weight_variance_);
    for (std::size_t i = 0; i < row.size; ++i) {
      row.nngp_adjoint[i] += gradients * row.ntk_adjoint[i];
      row.ntk_adjoint[i] *= w;
    }
  }

 private:
  double weight_variance_;
  double bias_variance_;
  double weights_;  ///< (N/s) F
  double biases_;   ///< 0 or 1
};

std::shared_ptr<const RowStage> standard_stage(const ParametrisedAffine& affine) {
  return std::make_shared<StandardStage>(affine.node, *affine.standard);
}

AffineNode of_unit_variance(const AffineNode& node) { return {node.window, 1, 0}; }

}  // namespace

void check_parametrisation(const std::string& layer, const ParametrisedAffine& affine) {
  if (!affine.standard) return;
  const StandardParametrisation& standard = *affine.standard;
  if (standard.input_width < 1)
    throw ArgumentError(
        fmt::format("{}: input_width must be at least 1, got {}", layer, standard.input_width));
  if (!(standard.width_scale > 0 && std::isfinite(standard.width_scale)))
    throw ArgumentError(
        fmt::format("{}: width_scale must be positive and finite, got {}", layer, standard.width_scale));
  if (standard.zero_biases && affine.node.bias_variance != 0)
    throw ArgumentError(
        fmt::format("{}: zero_biases needs a bias_variance of 0, got {}", layer, affine.node.bias_variance));
}

void add_parametrisation_fields(const Parametrisation& standard, nlohmann::ordered_json& fields) {
  if (!standard) return;
  fields["parametrisation"] = "standard";
  fields["input_width"] = standard->input_width;
  fields["width_scale"] = standard->width_scale;
  fields["zero_biases"] = standard->zero_biases;
}

void add_weight_fields(std::vector<KindField>& fields) {
  fields.push_back(
      {.name = "weight_variance", .default_value = "1", .minimum = 0, .meaning = "w, of the weights"});
  fields.push_back(
      {.name = "bias_variance", .default_value = "0", .minimum = 0, .meaning = "b, of the biases"});
  fields.push_back({.name = "parametrisation",
                    .type = FieldType::text,
                    .default_value = R"("ntk")",
                    .words = {"ntk", "standard"},
                    .meaning =
                        "with 'standard' T' = (N / s) times the filter's sum of K, plus 1 and the term in T, "
                        "without the 1 if there are no biases",
                    .by_name = true});
  fields.push_back({.name = "input_width",
                    .type = FieldType::integer,
                    .default_value = "null",
                    .minimum = 1,
                    .meaning = "N, the channels before the layer; for 'standard', which needs it",
                    .by_name = true});
  fields.push_back({.name = "width_scale",
                    .default_value = "null",
                    .minimum = 0,
                    .above_minimum = true,
                    .meaning = "s; for 'standard' only, 1 there",
                    .by_name = true});
  fields.push_back(
      {.name = "zero_biases",
       .type = FieldType::boolean,
       .default_value = "null",
       .meaning = "biases that begin at 0 and are trained although b is 0; for 'standard' only, false there",
       .by_name = true});
}

Parametrisation read_parametrisation(KindFields& fields) {
  if (fields.word("parametrisation") == "standard") {
    if (!fields.has("input_width")) fields.fail("input_width", "expected this field, got none");
    return StandardParametrisation{
        .input_width = fields.integer("input_width"),
        .width_scale = fields.has("width_scale") ? fields.number("width_scale") : 1,
        .zero_biases = fields.has("zero_biases") && fields.boolean("zero_biases")};
  }
  for (const char* field : {"input_width", "width_scale", "zero_biases"})
    if (fields.has(field)) fields.fail(field, "belongs to \"parametrisation\": \"standard\" only");
  return {};
}

namespace {

void require_input_width(const Lowering& lowering, const LoweredState& input,
                         const StandardParametrisation& standard) {
  if (input.channels != 0 && input.channels != standard.input_width)
    lowering.reject(fmt::format("expected an input_width of {}, the channels before the layer, got {}",
                                input.channels, standard.input_width));
}

}  // namespace

LoweredState lower_affine(Lowering& lowering, const LoweredState& input, const ParametrisedAffine& affine) {
  if (!affine.standard) return lowering.affine(input, affine.node);
  require_input_width(lowering, input, *affine.standard);
  return lowering.row(lowering.affine(input, of_unit_variance(affine.node)), standard_stage(affine));
}

LoweredState lower_local_affine(Lowering& lowering, const LoweredState& input,
                                const ParametrisedAffine& affine) {
  if (!affine.standard) return lowering.local_affine(input, {affine.node, nullptr});
  require_input_width(lowering, input, *affine.standard);
  return lowering.local_affine(input, {of_unit_variance(affine.node), standard_stage(affine)});
}

}  // namespace widelimit::layers
