#include "widelimit/layers/custom.hpp"

#include <fmt/format.h>

#include "layers/user_kind.hpp"
#include "network/layer_model.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::layers {
namespace {

using Counterpart = finite::CounterpartPointer;

/// A user's row or pair stage under a kind of its own, perhaps with a finite counterpart.
template <typename Stage>
class CustomLayer final : public LayerModel {
 public:
  CustomLayer(UserKind kind, std::shared_ptr<const Stage> stage, Counterpart counterpart)
      : kind_(std::move(kind)), stage_{std::move(stage)}, counterpart_{std::move(counterpart)} {
    if (!stage_) throw ArgumentError(fmt::format("{}: expected a stage, got a null pointer", kind_.name()));
  }

  std::string kind() const override { return kind_.name(); }
  nlohmann::ordered_json fields() const override { return kind_.fields("stage"); }
  void check_writable(const std::string& path) const override { kind_.check_writable(path); }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    if constexpr (std::is_same_v<Stage, PairStage>)
      return lowering.pair(input, stage_);
    else
      return lowering.row(input, stage_);
  }

  Counterpart finite_counterpart() const override { return counterpart_; }

 private:
  UserKind kind_;
  std::shared_ptr<const Stage> stage_;
  Counterpart counterpart_;
};

template <typename Stage>
Layer custom_layer(UserKind kind, std::shared_ptr<const Stage> stage, Counterpart counterpart) {
  return Layer(
      std::make_shared<CustomLayer<Stage>>(std::move(kind), std::move(stage), std::move(counterpart)));
}

}  // namespace

Layer pair_layer(std::string kind, std::shared_ptr<const PairStage> stage, Counterpart counterpart) {
  return custom_layer(UserKind(std::move(kind), std::nullopt, stage), stage, std::move(counterpart));
}
Layer pair_layer(std::string kind, std::shared_ptr<const PairStage> stage, Counterpart counterpart,
                 const nlohmann::ordered_json& parameters) {
  return custom_layer(UserKind(std::move(kind), parameters, stage), stage, std::move(counterpart));
}

Layer row_layer(std::string kind, std::shared_ptr<const RowStage> stage, Counterpart counterpart) {
  return custom_layer(UserKind(std::move(kind), std::nullopt, stage), stage, std::move(counterpart));
}
Layer row_layer(std::string kind, std::shared_ptr<const RowStage> stage, Counterpart counterpart,
                const nlohmann::ordered_json& parameters) {
  return custom_layer(UserKind(std::move(kind), parameters, stage), stage, std::move(counterpart));
}

}  // namespace widelimit::layers
