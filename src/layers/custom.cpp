#include "widelimit/layers/custom.hpp"

#include <fmt/format.h>

#include "layers/layer_parts.hpp"
#include "network/layer_model.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

using Counterpart = std::shared_ptr<const finite::FiniteCounterpart>;

/// What custom layers have besides their stage.
class CustomModel : public LayerModel {
 public:
  explicit CustomModel(Counterpart counterpart) : counterpart_{std::move(counterpart)} {}
  const Counterpart& counterpart() const { return counterpart_; }

 private:
  Counterpart counterpart_;
};

/// A user's stage under a kind of its own. The stage's address stands for its parameters, which we cannot
/// see.
template <typename Stage>
class CustomLayer final : public CustomModel {
 public:
  CustomLayer(std::string kind, std::shared_ptr<const Stage> stage, Counterpart counterpart)
      : CustomModel(std::move(counterpart)), kind_{std::move(kind)}, stage_{std::move(stage)} {
    if (!stage_) throw ArgumentError(fmt::format("{}: expected a stage, got a null pointer", kind_));
  }

  std::string kind() const override { return kind_; }

  nlohmann::ordered_json fields() const override {
    return {{"stage", fmt::format("{}", static_cast<const void*>(stage_.get()))}};
  }

  State lower(Lowering& lowering, const State& input) const override {
    if constexpr (std::is_same_v<Stage, PairStage>)
      return lowering.pair(input, stage_);
    else
      return lowering.row(input, stage_);
  }

 private:
  std::string kind_;
  std::shared_ptr<const Stage> stage_;
};

}  // namespace

Layer pair_layer(std::string kind, std::shared_ptr<const PairStage> stage, Counterpart counterpart) {
  return Layer(
      std::make_shared<CustomLayer<PairStage>>(std::move(kind), std::move(stage), std::move(counterpart)));
}

Layer row_layer(std::string kind, std::shared_ptr<const RowStage> stage, Counterpart counterpart) {
  return Layer(
      std::make_shared<CustomLayer<RowStage>>(std::move(kind), std::move(stage), std::move(counterpart)));
}

std::shared_ptr<const finite::FiniteCounterpart> finite_counterpart_of(const Layer& layer) {
  const auto* model = dynamic_cast<const CustomModel*>(&layer.model());
  return model == nullptr ? nullptr : model->counterpart();
}

}  // namespace widelimit::layers
