#pragma once

#include <cstddef>
#include <memory>

#include "widelimit/layers/custom.hpp"
#include "widelimit/network/row_stage.hpp"

namespace widelimit::layers {

/// Does nothing; lowering cannot know that, so that a readout after it is not pulled back.
class OpaqueStage final : public RowStageOf<OpaqueStage> {
 public:
  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }
  std::size_t auxiliary_count() const override { return 0; }
  template <typename Scalar>
  void prepare_row(const Scalar*, std::size_t, Scalar* const*) const {}
  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>&) const {}
};

inline Layer opaque_layer() { return row_layer("opaque", std::make_shared<OpaqueStage>()); }

}  // namespace widelimit::layers
