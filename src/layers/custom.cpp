#include "widelimit/layers/custom.hpp"

#include <fmt/format.h>

#include "network/layer_model.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// A user's stage under a kind of its own. The stage's address stands for its parameters, which we cannot
/// see.
template <typename Stage>
class CustomLayer final : public LayerModel {
 public:
  CustomLayer(std::string kind, std::shared_ptr<const Stage> stage)
      : kind_{std::move(kind)}, stage_{std::move(stage)} {
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

Layer pair_layer(std::string kind, std::shared_ptr<const PairStage> stage) {
  return Layer(std::make_shared<CustomLayer<PairStage>>(std::move(kind), std::move(stage)));
}

Layer row_layer(std::string kind, std::shared_ptr<const RowStage> stage) {
  return Layer(std::make_shared<CustomLayer<RowStage>>(std::move(kind), std::move(stage)));
}

}  // namespace widelimit::layers
