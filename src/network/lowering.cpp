#include "network/lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "network/layer_model.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

// LoweredState::independent right after weights: independent of the inputs of all enclosing branches.
constexpr std::uint64_t all_levels = ~std::uint64_t{0};

std::string distribution_name(ChannelDistribution distribution) {
  switch (distribution) {
    case ChannelDistribution::raw:
      return "raw inputs";
    case ChannelDistribution::gaussian:
      return "Gaussian channels";
    case ChannelDistribution::mixture:
      return "a mixture of channel groups";
    case ChannelDistribution::other:
      return "channels that are not Gaussian";
  }
  return {};
}

/// Anything but Gaussian channels becomes `other` under a stage: after it, raw inputs are no features any more, and a
/// mixture has lost its groups.
ChannelDistribution distribution_after(const StageRules& rules, ChannelDistribution before) {
  const bool stays_gaussian =
      rules.leaves == StageRules::Leaves::as_it_was && before == ChannelDistribution::gaussian;
  return stays_gaussian || rules.leaves == StageRules::Leaves::gaussian ? ChannelDistribution::gaussian
                                                                        : ChannelDistribution::other;
}

/// The channels after weights are independent sums over all channels before. They are Gaussian and alike, whatever
/// was there before.
LoweredState behind_weights(LoweredState state) {
  state.channels = 0;
  state.distribution = ChannelDistribution::gaussian;
  state.groups.clear();
  state.independent = state.own_weights = all_levels;
  return state;
}

/// A line of a description; layers within the layer have lines of their own.
std::string summary(const Layer& layer) {
  std::string text = layer.kind();
  const auto fields = model_of(layer).fields();
  for (const auto& [name, value] : fields.items())
    if (name != "branches" && name != "layers") text += fmt::format("  {}={}", name, value.dump());
  return text;
}

}  // namespace

namespace {

/// Repeats within repeats multiply, and lowering writes them out.
void check_layer_count(const Network& network) {
  double layers = 0;
  for (const Layer& layer : network.layers()) layers += model_of(layer).extent().layers;
  if (layers > most_layers)
    throw NetworkError(
        fmt::format("network '{}': expected at most {:.0f} layers in all, repeats written out, got {:.6g}",
                    network.name(), most_layers, layers));
}

}  // namespace

Graph Lowering::lower(const Network& network, const Shape& input, const Replicate& replicate,
                      const InputTraits& traits) {
  check_layer_count(network);
  Lowering lowering;
  lowering.replicate_ = replicate;
  const LoweredState end = lowering.sequence(network.layers(), lowering.start(input, traits), "layers");
  if (!end.shape.empty())
    throw NetworkError(
        fmt::format("network '{}': expected no positions after the last layer, got {}; add flatten, "
                    "global_average_pool or global_sum_pool",
                    network.name(), axes_text(end.shape)));
  lowering.graph_.output = end.node;
  return reachable_part(lowering.graph_);
}

std::vector<TraceLine> Lowering::trace(const Network& network, const Shape& input) {
  Lowering lowering;
  static_cast<void>(lowering.sequence(network.layers(), lowering.start(input), "layers"));
  return std::move(lowering.trace_);
}

LoweredState Lowering::start(const Shape& input, const InputTraits& traits) {
  for (const Index size : input)
    if (size < 1) throw NetworkError(fmt::format("input: sizes must be positive, got {}", to_string(input)));
  constexpr double most_positions = 0x1p48;  // products with a few small sizes stay within an index
  double positions = 1;
  for (const Index size : input) positions *= static_cast<double>(size);
  if (positions > most_positions)
    throw NetworkError(
        fmt::format("input: expected at most {:.3g} positions, got {}", most_positions, to_string(input)));
  network_input_ = input;
  return {.node = add(InputNode{}, {}),
          .shape = input,
          .distribution = ChannelDistribution::raw,
          .groups = {},
          .independent = 0,
          .mask = traits.masks == InputMasks::present ? input_mask_rule() : nullptr,
          .channels = traits.channels};
}

NodeId Lowering::add(Operation operation, std::vector<NodeId> inputs) {
  // Stages and windows do not know which layer they belong to. reject() adds its path to their errors.
  std::vector<Shape> input_shapes;
  input_shapes.reserve(inputs.size());
  for (const NodeId input : inputs) input_shapes.push_back(shapes_[input]);
  try {
    shapes_.push_back(output_shape(operation, input_shapes, network_input_));
  } catch (const ArgumentError& error) {
    reject(error.what());
  }
  graph_.nodes.push_back({std::move(operation), std::move(inputs), location()});
  return graph_.nodes.size() - 1;
}

LoweredState Lowering::append(const LoweredState& input, Operation operation) {
  LoweredState state = input;
  state.node = add(std::move(operation), {input.node});
  state.shape = shapes_[state.node];
  return state;
}

/// Such layers keep the distribution. The state's own node is the mixed covariance, which later weights read. The
/// groups are what later nonlinearities read; whichever is not read is dropped by reachable_part().
LoweredState Lowering::append_linear(const LoweredState& input, const Operation& operation) {
  LoweredState state = append(input, operation);
  for (ChannelGroup& group : state.groups) group.node = add(operation, {group.node});
  return state;
}

LoweredState Lowering::append_feature(const LoweredState& input, const FeatureTransform& transform) {
  // Raw channels always stand at an InputNode. A further transform makes a second one, since branches may read the
  // first.
  InputNode node = std::get<InputNode>(graph_.nodes[input.node].operation);
  node.transforms.push_back(transform);
  LoweredState state = input;
  state.node = add(std::move(node), {});
  state.shape = shapes_[state.node];
  return state;
}

LoweredState Lowering::affine(const LoweredState& input, const AffineNode& node) {
  LoweredState state = behind_weights(append(input, node));
  if (!state.mask) return state;
  set_mask(state, windowed_mask_rule(state.mask, node.window));
  // A dense layer without biases keeps the zeros of masked positions. Biases and the neighbours in a window do not.
  return node.window.sizes.empty() && node.bias_variance == 0 ? state : masked(state);
}

LoweredState Lowering::local_affine(const LoweredState& input, const LocalAffineNode& node) {
  LoweredState state = behind_weights(append(input, node));
  if (!state.mask) return state;
  set_mask(state, windowed_mask_rule(state.mask, node.affine.window));
  return masked(state);
}

LoweredState Lowering::row(const LoweredState& input, std::shared_ptr<const RowStage> stage) {
  const StageRules rules = stage->rules();
  // Norms with centring accept Gaussian channels only, too, but leave them Gaussian.
  const bool nonlinearity =
      rules.accepts == StageRules::Accepts::gaussian && rules.leaves == StageRules::Leaves::not_gaussian;
  if (rules.accepts == StageRules::Accepts::gaussian) {
    const auto is_gaussian = [](const ChannelGroup& group) {
      return group.distribution == ChannelDistribution::gaussian;
    };
    const bool fits = input.distribution == ChannelDistribution::gaussian ||
                      (input.distribution == ChannelDistribution::mixture &&
                       std::all_of(input.groups.begin(), input.groups.end(), is_gaussian));
    if (!fits)
      reject(
          fmt::format("expected Gaussian channels, got {}; insert a dense or convolutional layer before it",
                      distribution_name(input.distribution)));
  }
  if (nonlinearity && input.distribution == ChannelDistribution::mixture) {
    // phi acts channel by channel, so on each group with the group's own covariances. Their sum, weighted by the
    // shares, is the mixed covariance (docs/theory/kernel-recursion.md, section 2.4).
    SumNode merge;
    std::vector<NodeId> nodes;
    LoweredState state = input;
    for (ChannelGroup& group : state.groups) {
      group.node = add(RowNode{stage}, {group.node});
      group.distribution = ChannelDistribution::other;
      merge.factors.push_back(group.share);
      nodes.push_back(group.node);
    }
    state.node = add(std::move(merge), std::move(nodes));
    state.independent = rules.own_weights ? all_levels : 0;
    if (rules.own_weights) state.own_weights = all_levels;
    return masked(state);
  }
  // Stages that clear gaps map zeros at positions of variance 0 to zeros.
  const bool keeps_zeros = stage->clears_gaps();
  LoweredState state = append(input, RowNode{std::move(stage)});
  state.distribution = distribution_after(rules, input.distribution);
  state.groups.clear();
  if (rules.own_weights)
    state.independent = state.own_weights = all_levels;
  else if (nonlinearity)
    state.independent = 0;
  return keeps_zeros ? state : masked(state);
}

LoweredState Lowering::pair(const LoweredState& input, const std::shared_ptr<const PairStage>& stage) {
  const StageRules rules = stage->rules();
  if (rules.accepts == StageRules::Accepts::gaussian && input.distribution != ChannelDistribution::gaussian)
    reject(fmt::format("expected Gaussian channels, got {}; insert a dense or convolutional layer before it",
                       distribution_name(input.distribution)));
  // The stage reads the mask before it; the state continues with the one after it.
  LoweredState state = append(input, PairNode{stage, input.mask});
  if (state.shape.empty())
    state.mask = {};
  else if (state.mask && state.shape != input.shape)
    set_mask(state, mask_after(state, stage));
  state.distribution = distribution_after(rules, input.distribution);
  state.groups.clear();
  if (rules.leaves != StageRules::Leaves::as_it_was) state.channels = 0;
  if (rules.own_weights) state.own_weights = all_levels;
  if (rules.own_weights && rules.leaves == StageRules::Leaves::gaussian)
    state.independent = all_levels;
  else if (rules.leaves != StageRules::Leaves::as_it_was)
    state.independent = 0;
  return masked(state);
}

SampledDraws Lowering::draws(std::int64_t samples) {
  graph_.fewest_samples = graph_.fewest_samples == 0 ? samples : std::min(graph_.fewest_samples, samples);
  // The first samples % count replicates draw one more. Every stage of every replicate has a stream of its own, so
  // that replicates are independent and none of them depends on how the others are computed.
  const std::int64_t share =
      samples / replicate_.count + (replicate_.index < samples % replicate_.count ? 1 : 0);
  return {share, sampled_stages_++ * static_cast<std::uint64_t>(replicate_.count) +
                     static_cast<std::uint64_t>(replicate_.index)};
}

LoweredState Lowering::sequence(const Layers& layers, LoweredState state, const std::string& field) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    path_.push_back(fmt::format("{}[{}]", field, i));
    kinds_.push_back(layers[i].kind());
    const std::size_t line = trace_.size();
    // The line stands before those of the layers within. Its shape is known only afterwards.
    trace_.push_back({path_.size() - 1, summary(layers[i]), {}});
    state = model_of(layers[i]).lower(*this, state);
    trace_[line].shape = state.shape;
    path_.pop_back();
    kinds_.pop_back();
  }
  return state;
}

/// Layers are nested at most deepest_layers deep, so that no two levels share a bit.
std::uint64_t Lowering::independence_bit() const { return std::uint64_t{1} << (branch_depth_ % 64); }

LoweredState Lowering::branch(const Layers& layers, const LoweredState& input, std::size_t index) {
  LoweredState start = input;
  // Weights before the branch do not make it independent of its siblings, which read the same input. The bits of the
  // outer levels stay.
  start.independent &= ~independence_bit();
  start.own_weights &= ~independence_bit();
  path_.push_back(fmt::format("branches[{}]", index));
  trace_.push_back({path_.size() - 1, fmt::format("branch {}", index), input.shape});
  LoweredState end = sequence(layers, std::move(start), "layers");
  path_.pop_back();
  return end;
}

std::vector<std::size_t> Lowering::without(std::uint64_t LoweredState::*bits,
                                           const std::vector<LoweredBranch>& branches) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < branches.size(); ++i)
    if ((branches[i].state.*bits & independence_bit()) == 0) found.push_back(i);
  return found;
}

void Lowering::check_independent(const std::vector<LoweredBranch>& branches) const {
  const std::vector<std::size_t> dependent = without(&LoweredState::independent, branches);
  // One dependent branch is allowed: those with weights of their own are independent of it and have zero mean, so all
  // cross terms vanish.
  if (dependent.size() > 1)
    reject(fmt::format(
        "expected independent branches, but branches {} carry their input or a nonlinearity's output without "
        "weights of "
        "their own after it; end all but one of them with a dense, convolutional or attention layer",
        fmt::join(dependent, " and ")));
}

LoweredState Lowering::joined(const std::vector<LoweredBranch>& branches, Operation operation) {
  std::vector<NodeId> nodes;
  nodes.reserve(branches.size());
  for (const LoweredBranch& branch : branches) nodes.push_back(branch.state.node);
  LoweredState state;
  state.node = add(std::move(operation), std::move(nodes));
  state.shape = shapes_[state.node];
  state.independent = state.own_weights = all_levels;
  // The result is as independent as its least independent branch, at every level.
  for (const LoweredBranch& branch : branches) {
    state.independent &= branch.state.independent;
    state.own_weights &= branch.state.own_weights;
  }
  std::vector<MaskRulePointer> masks;
  for (const LoweredBranch& branch : branches)
    if (branch.state.mask) masks.push_back(branch.state.mask);
  if (!masks.empty()) state.mask = joined_mask_rule(std::move(masks));
  return state;
}

LoweredState Lowering::sum(const std::vector<LoweredBranch>& branches) {
  check_independent(branches);
  SumNode node;
  bool gaussian = true;
  for (const LoweredBranch& branch : branches) {
    node.factors.push_back(branch.factor);
    // A sum of independent Gaussian channels is Gaussian.
    gaussian = gaussian && branch.state.distribution == ChannelDistribution::gaussian;
  }
  LoweredState state = joined(branches, std::move(node));
  state.distribution = gaussian ? ChannelDistribution::gaussian : ChannelDistribution::other;
  return state;
}

LoweredState Lowering::product(const std::vector<LoweredBranch>& branches) {
  // Second moments of independent factors multiply, whatever their means.
  const std::vector<std::size_t> dependent = without(&LoweredState::own_weights, branches);
  if (dependent.size() > 1)
    reject(fmt::format(
        "expected independent branches, but branches {} carry their input or a nonlinearity's output without "
        "weights of their own; give all but one of them a dense, convolutional or attention layer",
        fmt::join(dependent, " and ")));
  ProductNode node{1};
  bool vanishes = false;
  for (const LoweredBranch& branch : branches) {
    node.factor *= branch.factor;
    vanishes = vanishes || branch.factor == 0;
  }
  // Each factor is a number, but their product may overflow or vanish. A factor that the user gave as 0 is no error.
  if (!vanishes && !std::isnormal(node.factor))
    reject(fmt::format("expected scales whose squares have a product in the range of double, got {:g}",
                       node.factor));
  LoweredState state = joined(branches, node);
  state.distribution = ChannelDistribution::other;
  return state;
}

LoweredState Lowering::concatenation(const std::vector<LoweredBranch>& branches) {
  SumNode node;
  std::vector<ChannelGroup> groups;
  for (const LoweredBranch& branch : branches) {
    node.factors.push_back(branch.factor);
    // Mixtures within a mixture are taken apart, so that groups are never nested.
    if (branch.state.distribution != ChannelDistribution::mixture)
      groups.push_back({branch.state.node, branch.factor, branch.state.distribution});
    for (const ChannelGroup& group : branch.state.groups)
      groups.push_back({group.node, group.share * branch.factor, group.distribution});
  }
  LoweredState state = joined(branches, std::move(node));
  state.distribution = ChannelDistribution::mixture;
  state.groups = std::move(groups);
  return state;
}

std::string Lowering::location() const {
  if (path_.empty()) return "input";
  return fmt::format("{} ({})", fmt::join(path_, "."), kinds_.back());
}

void Lowering::reject(const std::string& message) const { throw NetworkError(location() + ": " + message); }

}  // namespace widelimit
