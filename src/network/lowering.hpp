#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "network/graph.hpp"
#include "widelimit/network/layer.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// The distribution of the channels at a position, as far as later layers care.
enum class ChannelDistribution {
  raw,       ///< The inputs themselves, linear images of them included.
  gaussian,  ///< Zero-mean Gaussian.
  mixture,   ///< Groups of channels with a distribution each (concatenation).
  other,     ///< Anything else.
};

/// A group of channels in a mixture.
struct ChannelGroup {
  NodeId node;
  double share;
  ChannelDistribution distribution;
};

/// What lowering knows after a layer.
struct State {
  NodeId node = 0;
  Shape shape;
  ChannelDistribution distribution = ChannelDistribution::raw;
  std::vector<ChannelGroup> groups;  ///< Of a mixture.
  /// Bit k: since the k-th enclosing branch began there were fresh weights, followed by linear layers or
  /// norms only.
  std::uint64_t fresh = 0;
  MaskRulePointer mask = {};  ///< Null without masks, and where there are no positions any more.
  Index channels = 0;         ///< As far as no layer with weights has made others; 0: unknown.
};

/// One branch of a sum, product or concatenation; `factor` multiplies covariances.
struct LoweredBranch {
  State state;
  double factor;
};

/// A line of Network::describe().
struct TraceLine {
  std::size_t depth;
  std::string text;
  Shape shape;
};

/// Sampled stages share their samples among independent replicates of the network, whose scatter tells the
/// error.
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

/// Whether readouts are pulled back through linear layers (pull_back.hpp), or every layer stays a node.
enum class Readouts { pulled_back, as_written };

/// What lowering is told of inputs besides their shape.
struct InputTraits {
  InputMasks masks = InputMasks::absent;
  Index channels = 0;  ///< 0: unknown.
};

/// A layer that changes the masks of inputs, or cannot take all of them.
struct MaskedLayer {
  std::string path;
  MaskRulePointer rule;  ///< Of the mask that `check` is given: after the layer, or before it.
  /// Throws ArgumentError, saying what was expected, for a mask that does not do.
  std::function<void(const PositionMask&)> check;
};

/// Walks a network forward, checks what may follow what, and collects the graph.
class Lowering {
 public:
  /// Lowers the whole network; the result holds the nodes that the output needs. Throws NetworkError.
  static Graph lower(const Network& network, const Shape& input, const Replicate& replicate = {},
                     const InputTraits& traits = {}, Readouts readouts = Readouts::pulled_back);

  /// The lines of Network::describe(). The network need not end without positions.
  static std::vector<TraceLine> trace(const Network& network, const Shape& input);

  /// What masks of inputs have to be checked for. The layers refer to the network. Throws NetworkError.
  static std::vector<MaskedLayer> masked_layers(const Network& network, const Shape& input, Index channels);

  // For layers. Each appends nodes after `input` and returns the new state.

  State affine(const State& input, const AffineNode& node);
  State local_affine(const State& input, const LocalAffineNode& node);
  State row(const State& input, std::shared_ptr<const RowStage> stage);
  /// A norm: on raw inputs the features are normalised, otherwise the stage acts on covariances.
  State norm(const State& input, const FeatureNorm& feature_norm, std::shared_ptr<const RowStage> stage);
  State norm(const State& input, const FeatureNorm& feature_norm, std::shared_ptr<const PairStage> stage);
  State pool(const State& input, const Window& window, PoolKind kind);
  /// The same by a stage that maps positions, for windows that a pooling does not know.
  State pool(const State& input, const Window& window, std::shared_ptr<const PairStage> stage);
  State readout(const State& input, ReadoutKind kind);
  State pair(const State& input, const std::shared_ptr<const PairStage>& stage);
  /// A stage that maps positions linearly, all channels alike.
  State position_map(const State& input, std::shared_ptr<const PairStage> stage);
  /// The same, where the stage picks the positions that a window of single positions does, without padding.
  State selection(const State& input, const Window& window, std::shared_ptr<const PairStage> stage);

  /// Gives what was lowered without masks after `before` a mask: that of `before`, mapped. Returns `behind` if there is
  /// none.
  State masked_again(const State& behind, const State& before, std::shared_ptr<const MaskMapping> mapping);

  /// Has masks before a layer checked (MaskedLayer), if there are any.
  void check_masks(const State& input, std::function<void(const PositionMask&)> check);

  /// Shape of the inputs themselves.
  [[nodiscard]] const Shape& network_input() const { return network_input_; }

  /// Announces a stage that draws `samples` in all.
  SampledDraws draws(std::int64_t samples);

  State sequence(const Layers& layers, State state, const std::string& field);
  /// Lowers a branch as `field`[index]; enter_branches() and leave_branches() stand around all branches of a
  /// layer.
  State branch(const Layers& layers, const State& input, std::size_t index);
  void enter_branches() { ++branch_depth_; }
  void leave_branches() { --branch_depth_; }
  /// The current branching's fresh bit.
  [[nodiscard]] std::uint64_t fresh_bit() const;

  State sum(const std::vector<LoweredBranch>& branches);
  State product(const std::vector<LoweredBranch>& branches);
  State concatenation(const std::vector<LoweredBranch>& branches);

  /// Throws NetworkError("PATH (kind): expected ..., got ...; advice").
  [[noreturn]] void reject(const std::string& message) const;

 private:
  State start(const Shape& input, const InputTraits& traits = {});
  NodeId add(Operation operation, std::vector<NodeId> inputs);
  State append(const State& input, Operation operation);
  State append_linear(const State& input, const Operation& operation);
  State masked(const State& input, double exponent = 0);
  /// The mask after the current layer, which must leave a position of every input.
  void set_mask(State& state, MaskRulePointer rule);
  State mapped(const State& input, Operation operation, std::shared_ptr<const PairStage> stage);
  /// After a stage that leaves other positions.
  [[nodiscard]] MaskRulePointer mask_behind(const State& before,
                                            const std::shared_ptr<const PairStage>& stage) const;
  State append_feature(const State& input, const FeatureTransform& transform);
  void check_independent(const std::vector<LoweredBranch>& branches) const;
  State joined(const std::vector<LoweredBranch>& branches, Operation operation);
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
