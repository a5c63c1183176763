#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "network/graph.hpp"
#include "widelimit/network/layer.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// The distribution of the channels at a position, as far as it decides which layers may follow
/// (docs/theory/kernel-recursion.md, section 2.4).
enum class ChannelDistribution {
  raw,       ///< The inputs themselves, linear images of them included.
  gaussian,  ///< Zero-mean Gaussian.
  mixture,   ///< Groups of channels with a distribution each (concatenation).
  other,     ///< Anything else.
};

/// A group of channels in a mixture: the node of its own covariance, and its share of all channels, by which it
/// enters the mixed covariance.
struct ChannelGroup {
  NodeId node;
  double share;
  ChannelDistribution distribution;
};

/// What lowering knows after a layer. Layers take one and return the next.
struct LoweredState {
  NodeId node = 0;
  Shape shape;
  ChannelDistribution distribution = ChannelDistribution::raw;
  std::vector<ChannelGroup> groups;  ///< Empty unless the channels are a mixture.
  /// Bit k tells whether new weights came after the k-th enclosing branch began, followed by linear layers or norms
  /// only. A branch whose bit is set is independent of its input and has zero mean.
  std::uint64_t independent = 0;
  /// The same bits, whatever came after the weights: such a branch is independent of its input.
  std::uint64_t own_weights = 0;
  MaskRulePointer mask = {};  ///< Null without masks, and where there are no positions any more.
  Index channels = 0;         ///< Those of the inputs, until weights make others; 0 if unknown.
};

/// One branch of a sum, product or concatenation; `factor` multiplies covariances.
struct LoweredBranch {
  LoweredState state;
  double factor;
};

/// A line of Network::describe().
struct TraceLine {
  std::size_t depth;
  std::string text;
  Shape shape;
};

/// Sampled stages share their samples among independent replicates of the network. The scatter of the replicates
/// tells the error.
struct Replicate {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

/// What a replicate's sampled stage draws: samples from a stream that no other stage or replicate uses.
struct SampledDraws {
  std::int64_t samples;
  std::uint64_t stream;
};

/// Whether inputs have masks.
enum class InputMasks { absent, present };

/// What lowering is told of inputs besides their shape.
struct InputTraits {
  InputMasks masks = InputMasks::absent;
  Index channels = 0;  ///< 0 if unknown.
};

/// A layer that changes the masks of inputs or cannot take all of them. The engine calls the check with the masks of
/// all inputs before anything is computed.
struct MaskedLayer {
  std::string path;
  MaskRulePointer rule;  ///< Makes an input's mask what `check` is given.
  /// Throws ArgumentError, saying what was expected, for a mask that does not do.
  std::function<void(const PositionMask&)> check;
};

/// Walks a network forward, checks what may follow what, and collects the graph. Layers call the functions below from
/// LayerModel::lower(); only the three static functions are for others.
class Lowering {
 public:
  /// Lowers the whole network, every layer as it is written; the result holds the nodes that the output needs. Throws
  /// NetworkError.
  static Graph lower(const Network& network, const Shape& input, const Replicate& replicate = {},
                     const InputTraits& traits = {});

  /// The lines of Network::describe(). The network need not end without positions.
  static std::vector<TraceLine> trace(const Network& network, const Shape& input);

  /// What masks of inputs have to be checked for. The layers refer to the network. Throws NetworkError.
  static std::vector<MaskedLayer> masked_layers(const Network& network, const Shape& input, Index channels);

  // For layers. Each appends nodes after `input` and returns the new state.

  /// Trained weights, whose output is Gaussian whatever the input.
  LoweredState affine(const LoweredState& input, const AffineNode& node);
  LoweredState local_affine(const LoweredState& input, const LocalAffineNode& node);
  /// A stage that acts entry by entry. A nonlinearity on a mixture is applied to each group.
  LoweredState row(const LoweredState& input, std::shared_ptr<const RowStage> stage);
  /// A norm: on raw inputs the features are normalised, otherwise the stage acts on covariances.
  LoweredState norm(const LoweredState& input, const FeatureNorm& feature_norm,
                    std::shared_ptr<const RowStage> stage);
  LoweredState norm(const LoweredState& input, const FeatureNorm& feature_norm,
                    std::shared_ptr<const PairStage> stage);
  LoweredState pool(const LoweredState& input, const Window& window, PoolKind kind);
  /// Pooling by a stage that maps positions, for windows that a PoolNode does not have.
  LoweredState pool(const LoweredState& input, const Window& window, std::shared_ptr<const PairStage> stage);
  LoweredState readout(const LoweredState& input, ReadoutKind kind);
  LoweredState pair(const LoweredState& input, const std::shared_ptr<const PairStage>& stage);
  /// A stage that maps positions linearly, all channels alike.
  LoweredState position_map(const LoweredState& input, std::shared_ptr<const PairStage> stage);
  /// A position map that a window of single positions without padding can express. The window is executed, and the
  /// stage only maps masks.
  LoweredState selection(const LoweredState& input, const Window& window,
                         std::shared_ptr<const PairStage> stage);

  /// For layers that are lowered without masks, as several nodes: gives the result `behind` the mask of `before`,
  /// mapped. Returns `behind` itself if `before` has no mask.
  LoweredState masked_again(const LoweredState& behind, const LoweredState& before,
                            std::shared_ptr<const MaskMapping> mapping);

  /// Has the masks before a layer checked (MaskedLayer). Nothing happens without masks.
  void check_masks(const LoweredState& input, std::function<void(const PositionMask&)> check);

  /// The shape of the inputs themselves.
  [[nodiscard]] const Shape& network_input() const { return network_input_; }

  /// Announces a stage that draws `samples` over all replicates, and returns the part of this replicate.
  SampledDraws draws(std::int64_t samples);

  /// Lowers layers one after the other; `field` names them in paths.
  LoweredState sequence(const Layers& layers, LoweredState state, const std::string& field);
  /// Lowers a branch as `field`[index]; enter_branches() and leave_branches() stand around all branches of a
  /// layer.
  LoweredState branch(const Layers& layers, const LoweredState& input, std::size_t index);
  void enter_branches() { ++branch_depth_; }
  void leave_branches() { --branch_depth_; }
  /// The bit of LoweredState::independent that belongs to the innermost branches.
  [[nodiscard]] std::uint64_t independence_bit() const;

  /// Joins the branches of a layer. Sums and products reject branches that are not independent; channels side by side
  /// may depend on each other.
  LoweredState sum(const std::vector<LoweredBranch>& branches);
  LoweredState product(const std::vector<LoweredBranch>& branches);
  LoweredState concatenation(const std::vector<LoweredBranch>& branches);

  /// Throws NetworkError("PATH (kind): expected ..., got ...; advice").
  [[noreturn]] void reject(const std::string& message) const;

 private:
  LoweredState start(const Shape& input, const InputTraits& traits = {});
  NodeId add(Operation operation, std::vector<NodeId> inputs);
  LoweredState append(const LoweredState& input, Operation operation);
  /// Appends a linear layer without weights, to the groups of a mixture too.
  LoweredState append_linear(const LoweredState& input, const Operation& operation);
  /// Appends a MaskStage that makes the entries of masked positions 0 again, where a layer has made other numbers of
  /// them. For the exponent see MaskStage.
  LoweredState masked(const LoweredState& input, double exponent = 0);
  /// Sets the mask after the current layer, and has it checked that a position of every input is left.
  void set_mask(LoweredState& state, MaskRulePointer rule);
  /// Appends an operation that maps positions as `stage` does, and maps the mask.
  LoweredState mapped(const LoweredState& input, Operation operation, std::shared_ptr<const PairStage> stage);
  /// The mask after a stage that leaves other positions. Rejects stages that do not know masks.
  [[nodiscard]] MaskRulePointer mask_after(const LoweredState& before,
                                           const std::shared_ptr<const PairStage>& stage) const;
  /// For raw inputs: transforms the features before any covariance exists.
  LoweredState append_feature(const LoweredState& input, const FeatureTransform& transform);
  void check_independent(const std::vector<LoweredBranch>& branches) const;

  /// The branches whose bit of the innermost level is not set.
  [[nodiscard]] std::vector<std::size_t> without(std::uint64_t LoweredState::*bits,
                                                 const std::vector<LoweredBranch>& branches) const;
  LoweredState joined(const std::vector<LoweredBranch>& branches, Operation operation);
  [[nodiscard]] std::string location() const;

  Graph graph_;
  Shape network_input_;
  std::vector<Shape> shapes_;
  std::vector<std::string> path_;
  std::vector<std::string> kinds_;
  std::vector<TraceLine> trace_;
  unsigned branch_depth_ = 0;
  Replicate replicate_;
  std::uint64_t sampled_stages_ = 0;
  std::vector<MaskedLayer> masked_layers_;
};

}  // namespace widelimit
