#include "widelimit/layers/layer_norm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layers/builtin_kinds.hpp"
#include "layers/checks.hpp"
#include "layers/finite/norm.hpp"
#include "network/layer_model.hpp"
#include "network/linear_stages.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit::layers {
namespace {

enum class NormKind { layer_norm, rms_norm };

/// K' = K r r' and T' = T r r' with r = 1 / sqrt(variance + epsilon), prepared once a position.
class NormStage final : public RowStageOf<NormStage>, public ScalingStage {
 public:
  NormStage(NormKind kind, NormAxes axes, double epsilon) : kind_{kind}, axes_{axes}, epsilon_{epsilon} {}

  StageRules rules() const override {
    return {.accepts =
                kind_ == NormKind::layer_norm ? StageRules::Accepts::gaussian : StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .fresh_weights = false};
  }

  std::size_t auxiliary_count() const override { return 1; }
  bool clears_gaps() const override { return true; }
  Multiples multiples() const override { return Multiples::equalised; }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, std::size_t positions, Scalar* const* auxiliary) const {
    if (axes_ == NormAxes::channels) {
      for (std::size_t i = 0; i < positions; ++i) auxiliary[0][i] = inverse_root(variance[i]);
      return;
    }
    double sum = 0;
    for (std::size_t i = 0; i < positions; ++i) sum += static_cast<double>(variance[i]);
    const auto mean = static_cast<Scalar>(sum / static_cast<double>(positions));
    std::fill_n(auxiliary[0], positions, inverse_root(mean));
  }

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    numerics::linear_rows<Scalar>().scale(row);
  }

 private:
  /// A variance of 0 without epsilon belongs to an all-zero position, whose covariances are 0: any factor
  /// will do.
  template <typename Scalar>
  Scalar inverse_root(Scalar variance) const {
    const Scalar shifted = variance + static_cast<Scalar>(epsilon_);
    return shifted > 0 ? 1 / std::sqrt(shifted) : Scalar{0};
  }

  NormKind kind_;
  NormAxes axes_;
  double epsilon_;
};

class Norm final : public LayerModel {
 public:
  Norm(NormKind kind, const NormOptions& options) : kind_{kind}, options_{options} {
    require_not_negative(this->kind(), "epsilon", options.epsilon);
  }

  std::string kind() const override { return kind_ == NormKind::layer_norm ? "layer_norm" : "rms_norm"; }

  nlohmann::ordered_json fields() const override {
    auto axes = nlohmann::ordered_json::array({"channels"});
    if (options_.axes == NormAxes::channels_and_space) axes.push_back("space");
    return {{"axes", axes}, {"epsilon", options_.epsilon}};
  }

  State lower(Lowering& lowering, const State& input) const override {
    const FeatureNorm feature_norm{
        options_.axes == NormAxes::channels ? NormAxesKind::channels : NormAxesKind::channels_and_space,
        kind_ == NormKind::layer_norm ? Centring::over_axes : Centring::none, options_.epsilon};
    return lowering.norm(input, feature_norm,
                         std::make_shared<NormStage>(kind_, options_.axes, options_.epsilon));
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::norm_counterpart(
        kind_ == NormKind::layer_norm ? finite::Centring::mean : finite::Centring::none, options_);
  }

 private:
  NormKind kind_;
  NormOptions options_;
};

NormOptions read_norm(FieldReader& fields) {
  const auto axes = fields.texts("axes", std::vector<std::string>{"channels"});
  const bool space = axes == std::vector<std::string>{"channels", "space"};
  if (!space && axes != std::vector<std::string>{"channels"})
    fields.fail("axes", fmt::format("expected [\"channels\"] or [\"channels\", \"space\"], got [{}]",
                                    fmt::join(axes, ", ")));
  return {.axes = space ? NormAxes::channels_and_space : NormAxes::channels,
          .epsilon = fields.number("epsilon", 1e-12)};
}

}  // namespace

Layer layer_norm(const NormOptions& options) {
  return Layer(std::make_shared<Norm>(NormKind::layer_norm, options));
}

Layer rms_norm(const NormOptions& options) {
  return Layer(std::make_shared<Norm>(NormKind::rms_norm, options));
}

void add_norm_kinds(LayerReaders& readers) {
  readers["layer_norm"] = [](FieldReader& fields) { return layer_norm(read_norm(fields)); };
  readers["rms_norm"] = [](FieldReader& fields) { return rms_norm(read_norm(fields)); };
}

}  // namespace widelimit::layers
