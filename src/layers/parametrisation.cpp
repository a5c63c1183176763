#include "layers/parametrisation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>

#include "network/linear_adjoints.hpp"
#include "network/linear_stages.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// In the order of Trainable.
constexpr std::array<const char*, 4> trainable_words{"all", "weights", "biases", "none"};

/// What the gradients of all weights add to the NTK, as a factor of K_1 below.
double of_weights(const ParametrisedAffine& affine) {
  if (!affine.trains_weights()) return 0;
  if (!affine.standard) return affine.node.weight_variance;
  double factor = static_cast<double>(affine.standard->input_width) / affine.standard->width_scale;
  for (const Index size : affine.node.window.sizes) factor *= static_cast<double>(size);
  return factor;
}

/// What those of the biases add.
double of_biases(const ParametrisedAffine& affine) {
  const double variance = affine.node.bias_variance;
  if (!affine.trains_biases()) return 0;
  if (!affine.standard) return variance;
  return affine.standard->zero_biases || variance > 0 ? 1.0 : 0.0;
}

/// The standard parametrisation (docs/theory/kernel-recursion.md, section 2.3) and parameters that are not trained, as
/// a row stage after an ordinary layer of weight variance 1 without biases. That layer leaves K_1 = mean K and
/// T_1 = K_1 + mean T over the filter; this stage makes K' = w K_1 + b and T' = g K_1 + c + w mean T, where g and c are
/// (N/s) F and [1 if there are biases], or w and b, or 0 for what is not trained.
class GradientsStage final : public LinearStageOf<GradientsStage>, public AffineEntryStage {
 public:
  explicit GradientsStage(const ParametrisedAffine& affine)
      : weight_variance_{affine.node.weight_variance},
        bias_variance_{affine.node.bias_variance},
        weights_{of_weights(affine)},
        biases_{of_biases(affine)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }
  std::size_t auxiliary_count() const override { return 0; }
  Multiples multiples() const override { return bias_variance_ == 0 ? Multiples::kept : Multiples::equal; }

  [[nodiscard]] Entries entries() const override {
    // w mean T = w T_1 - w K_1, so the factor of K_1 is g - w.
    return {weight_variance_, bias_variance_, weights_ - weight_variance_, biases_};
  }

  template <typename Scalar>
  void prepare_row(const Scalar*, std::size_t, Scalar* const*) const {}

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    const auto w = static_cast<Scalar>(weight_variance_), b = static_cast<Scalar>(bias_variance_);
    if (row.ntk != nullptr && weights_ == 0) {
      // Equal numbers leave exactly nothing.
      const auto biases = static_cast<Scalar>(biases_);
      for (std::size_t i = 0; i < row.size; ++i) row.ntk[i] = w * (row.ntk[i] - row.nngp[i]) + biases;
    } else if (row.ntk != nullptr) {
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
  double weights_;  ///< g
  double biases_;   ///< c
};

/// Whether the NTK is that of an ordinary layer.
bool is_ordinary(const ParametrisedAffine& affine) {
  return !affine.standard && affine.trainable == Trainable::all;
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

void add_parametrisation_fields(const ParametrisedAffine& affine, nlohmann::ordered_json& fields) {
  if (affine.trainable != Trainable::all)
    fields["trainable"] = trainable_words[static_cast<std::size_t>(affine.trainable)];
  const Parametrisation& standard = affine.standard;
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
  fields.push_back({.name = "trainable",
                    .type = FieldType::text,
                    .default_value = R"("all")",
                    .words = {trainable_words.begin(), trainable_words.end()},
                    .meaning =
                        "the parameters that gradient descent changes: T' is without the w K of weights, and "
                        "without the b of biases, that stay as they were drawn",
                    .by_name = true});
}

Trainable read_trainable(KindFields& fields) {
  const std::string word = fields.word("trainable");
  const auto* const found = std::find(trainable_words.begin(), trainable_words.end(), word);
  return static_cast<Trainable>(found - trainable_words.begin());
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
                         const Parametrisation& standard) {
  if (standard && input.channels != 0 && input.channels != standard->input_width)
    lowering.reject(fmt::format("expected an input_width of {}, the channels before the layer, got {}",
                                input.channels, standard->input_width));
}

}  // namespace

LoweredState lower_affine(Lowering& lowering, const LoweredState& input, const ParametrisedAffine& affine) {
  if (is_ordinary(affine)) return lowering.affine(input, affine.node);
  require_input_width(lowering, input, affine.standard);
  return lowering.row(lowering.affine(input, of_unit_variance(affine.node)),
                      std::make_shared<GradientsStage>(affine));
}

LoweredState lower_local_affine(Lowering& lowering, const LoweredState& input,
                                const ParametrisedAffine& affine) {
  if (is_ordinary(affine)) return lowering.local_affine(input, {affine.node, nullptr});
  require_input_width(lowering, input, affine.standard);
  return lowering.local_affine(input,
                               {of_unit_variance(affine.node), std::make_shared<GradientsStage>(affine)});
}

}  // namespace widelimit::layers
