#include <fmt/format.h>

#include "network/lowering.hpp"
#include "network/mask_stage.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

// Layers that move, add up or average positions, and masks, which say which of them count.
namespace widelimit {
namespace {

/// Raw channels behind a node that acts on covariances: the features themselves are not at hand any more, so that
/// later layers cannot transform them.
LoweredState no_longer_raw(LoweredState state) {
  if (state.distribution == ChannelDistribution::raw) state.distribution = ChannelDistribution::other;
  return state;
}

/// Without a position that counts, means would divide by 0.
void require_position(const PositionMask& mask) {
  if (mask.count() == 0)
    throw ArgumentError(fmt::format("expected a mask that leaves a position after this layer, got none of {}",
                                    to_string(mask.shape)));
}

}  // namespace

std::vector<MaskedLayer> Lowering::masked_layers(const Network& network, const Shape& input, Index channels) {
  Lowering lowering;
  LoweredState start = lowering.start(input, {InputMasks::present, channels});
  static_cast<void>(lowering.sequence(network.layers(), std::move(start), "layers"));
  return std::move(lowering.masked_layers_);
}

void Lowering::check_masks(const LoweredState& input, std::function<void(const PositionMask&)> check) {
  if (input.mask) masked_layers_.push_back({location(), input.mask, std::move(check)});
}

void Lowering::set_mask(LoweredState& state, MaskRulePointer rule) {
  // Rules return the same pointer where masks stay as they are, which then need no further check.
  if (rule == state.mask) return;
  state.mask = std::move(rule);
  check_masks(state, require_position);
}

/// Behind a readout there are no positions to mask.
LoweredState Lowering::masked(const LoweredState& input, double exponent) {
  if (!input.mask || input.shape.empty()) return input;
  return append_linear(input, RowNode{std::make_shared<MaskStage>(input.mask, exponent)});
}

LoweredState Lowering::masked_again(const LoweredState& behind, const LoweredState& before,
                                    std::shared_ptr<const MaskMapping> mapping) {
  if (!before.mask) return behind;
  LoweredState state = behind;
  set_mask(state, mapped_mask_rule(before.mask, std::move(mapping)));
  return masked(state);
}

LoweredState Lowering::norm(const LoweredState& input, const FeatureNorm& feature_norm,
                            std::shared_ptr<const RowStage> stage) {
  if (input.distribution == ChannelDistribution::raw) return append_feature(input, feature_norm);
  if (!input.mask || !feature_norm.axes.all) return row(input, std::move(stage));
  // The stage takes means of variances over all d positions. With u^2 = d/n at the n that count, that is the mean
  // over those n. The exponent -0.5 takes the factors u u' out of the result again.
  return masked(row(masked(input, 0.5), std::move(stage)), -0.5);
}

LoweredState Lowering::norm(const LoweredState& input, const FeatureNorm& feature_norm,
                            std::shared_ptr<const PairStage> stage) {
  if (input.distribution == ChannelDistribution::raw) return append_feature(input, feature_norm);
  return pair(input, std::move(stage));
}

LoweredState Lowering::pool(const LoweredState& input, const Window& window, PoolKind kind) {
  if (input.distribution == ChannelDistribution::raw && !input.mask)
    // Raw features are pooled before any covariance exists. With a mask that is not done: features have no MaskStage,
    // and pooled windows mix masked positions.
    return append_feature(input, FeaturePool{window, kind});
  LoweredState state = append_linear(input, PoolNode{window, kind});
  if (!state.mask) return state;
  set_mask(state, windowed_mask_rule(state.mask, window));
  return masked(no_longer_raw(std::move(state)));
}

LoweredState Lowering::pool(const LoweredState& input, const Window& window,
                            std::shared_ptr<const PairStage> stage) {
  LoweredState state = append_linear(input, PairNode{std::move(stage)});
  if (state.mask) set_mask(state, windowed_mask_rule(state.mask, window));
  return masked(no_longer_raw(std::move(state)));
}

LoweredState Lowering::readout(const LoweredState& input, ReadoutKind kind) {
  LoweredState given = input;
  if (kind == ReadoutKind::flatten) given.channels *= position_count(input.shape);
  if (given.distribution == ChannelDistribution::raw && !given.mask)
    return append_feature(given, FeatureReadout{kind});
  // Masked positions are zeros, so that sums need no correction. A mean divides by d d', and the factors (d/n)(d'/n')
  // make that n n', the positions that count.
  const LoweredState counted = kind == ReadoutKind::average ? masked(given, 1) : given;
  LoweredState state = append_linear(counted, ReadoutNode{kind});
  if (state.mask) state = no_longer_raw(std::move(state));
  state.mask = {};
  return state;
}

MaskRulePointer Lowering::mask_after(const LoweredState& before,
                                     const std::shared_ptr<const PairStage>& stage) const {
  auto mapping = std::dynamic_pointer_cast<const MaskMapping>(stage);
  if (!mapping) reject("this layer makes other positions of an input's and does not know masks");
  return mapped_mask_rule(before.mask, std::move(mapping));
}

LoweredState Lowering::position_map(const LoweredState& input, std::shared_ptr<const PairStage> stage) {
  return mapped(input, PairNode{stage}, stage);
}

LoweredState Lowering::selection(const LoweredState& input, const Window& window,
                                 std::shared_ptr<const PairStage> stage) {
  return mapped(input, AffineNode{window, 1, 0, AffineNode::Weights::none}, std::move(stage));
}

LoweredState Lowering::mapped(const LoweredState& input, Operation operation,
                              std::shared_ptr<const PairStage> stage) {
  LoweredState state = append_linear(input, operation);
  // A position behind a map is masked only if all that it reads are. Those are zeros, so that no MaskStage is needed.
  if (state.mask) set_mask(state, mask_after(state, stage));
  return no_longer_raw(std::move(state));
}

}  // namespace widelimit
