#include "widelimit/kernel/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "kernel/inputs/features.hpp"
#include "kernel/inputs/graph_inputs.hpp"
#include "kernel/plan/demand.hpp"
#include "kernel/planes/workspace.hpp"
#include "kernel/run/gram_plan.hpp"
#include "network/leading_outputs.hpp"
#include "network/pair_sums.hpp"
#include "network/plane_mapping.hpp"
#include "network/pulled_readout.hpp"
#include "numerics/standard_normal.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// Writes the line of one node of a plan: what it computes, what is demanded of it, where its result goes, and its
/// operations for each pair. Both inputs of the pair have the same shape.
class PlanNode {
 public:
  PlanNode(const GramPlan& plan, const PairGeometry& geometry, const Shape& input, NodeId id)
      : plan_{plan},
        geometry_{geometry},
        input_{input},
        id_{id},
        node_{plan.program.graph.nodes[id]},
        kernels_{plan.kernel == Kernel::with_ntk ? 2.0 : 1.0} {}

  [[nodiscard]] PlanLine line() const {
    PlanLine line{node_.path, "", storage(), demand(), entries(id_), 0};
    std::visit([&](const auto& operation) { describe(operation, line); }, node_.operation);
    return line;
  }

 private:
  [[nodiscard]] bool has_positions(NodeId id) const { return plan_.program.has_positions[id]; }

  [[nodiscard]] double entries(NodeId id) const {
    return has_positions(id) ? static_cast<double>(geometry_.entries(id)) : 1;
  }

  [[nodiscard]] std::string storage() const {
    if (!has_positions(id_)) return "number";
    // A node that is not kept lives in the planes of a run, one offset at a time.
    if (!plan_.program.kept[id_]) return "fused";
    return plan_.program.as_matrix[id_] ? "kept, matrix" : "kept, planes";
  }

  [[nodiscard]] std::string demand() const {
    if (!has_positions(id_)) return "-";
    const Index3 sizes = geometry_.left_sizes[id_];
    const Offsets& offsets = geometry_.demanded[id_];
    if (offsets.empty()) return "none";
    const double all = Offsets::count_all(sizes, sizes);
    if (all == 1) return "one position";
    if (static_cast<double>(offsets.count()) == all) return fmt::format("all {} offsets", all);
    if (offsets.is_zero_only()) return "offset 0";
    return fmt::format("{} of {} offsets", offsets.count(), all);
  }

  [[nodiscard]] double channels(const std::vector<FeatureTransform>& transforms) const {
    return static_cast<double>(transformed_channels(input_, plan_.channels, transforms));
  }

  static std::string behind(const std::vector<FeatureTransform>& transforms) {
    if (transforms.empty()) return "";
    const bool pooled = std::holds_alternative<FeatureReadout>(transforms.back());
    return fmt::format(" after {} {} applied to the inputs{}", transforms.size(),
                       transforms.size() == 1 ? "layer" : "layers", pooled ? " (feature prefix)" : "");
  }

  void describe(const InputNode& input, PlanLine& line) const {
    line.operation = "products of inputs" + behind(input.transforms);
    line.flops = 2 * line.entries * channels(input.transforms);
  }

  void describe(const FeatureNode& feature, PlanLine& line) const {
    line.operation =
        pulled_back("feature prefix", pulled_layers(*feature.stage)) + behind(feature.transforms);
    line.flops = 2 * channels(feature.transforms);
  }

  void describe(const AffineNode& affine, PlanLine& line) const {
    // Every tap is an addition for each kernel. The two further operations are the factor and the bias.
    const double taps =
        affine.window.sizes.empty() ? 1 : static_cast<double>(product(Window3(affine.window).size));
    line.operation = affine.window.sizes.empty()                   ? "scale and shift"
                     : affine.weights == AffineNode::Weights::none ? "selected positions"
                                                                   : fmt::format("sum of {} taps", taps);
    line.flops = line.entries * kernels_ * (taps + 2);
  }

  void describe(const LocalAffineNode& local, PlanLine& line) const {
    describe(local.affine, line);
    line.operation += ", no weight sharing";
  }

  void describe(const RowNode&, PlanLine& line) const {
    line.operation = "entry by entry";
    // Row stages differ, but a dual activation stands for all of them.
    line.flops = line.entries * flops_per_dual;
  }

  void describe(const SumNode& sum, PlanLine& line) const {
    line.operation = fmt::format("sum of {}", sum.factors.size());
    line.flops = line.entries * kernels_ * 2 * static_cast<double>(sum.factors.size());
  }

  void describe(const ProductNode&, PlanLine& line) const {
    line.operation = fmt::format("product of {}", node_.inputs.size());
    line.flops = line.entries * kernels_ * 2 * static_cast<double>(node_.inputs.size());
  }

  void describe(const PoolNode& pool, PlanLine& line) const {
    line.operation = pool.kind == PoolKind::average ? "average over windows" : "sum over windows";
    line.flops = entries(node_.inputs[0]) * kernels_;
  }

  void describe(const ReadoutNode& readout, PlanLine& line) const {
    line.operation = readout.kind == ReadoutKind::flatten   ? "mean over equal positions"
                     : readout.kind == ReadoutKind::average ? "mean over all pairs of positions"
                                                            : "sum over all pairs of positions";
    line.flops = entries(node_.inputs[0]) * kernels_;
  }

  void describe(const PairNode& pair, PlanLine& line) const {
    if (const PlaneMapping* mapping = plane_mapping(*pair.stage)) return describe(*mapping, line);
    const Index positions = position_count(geometry_.shapes.left[node_.inputs[0]]);
    const PairSize size{
        positions, positions,
        geometry_.demanded[id_].entries(geometry_.left_sizes[id_], geometry_.right_sizes[id_]),
        plan_.kernel == Kernel::with_ntk};
    const auto pulled = pulled_layers(*pair.stage);
    line.operation = pulled.empty() ? "transforms the pair's matrix" : pulled_back("readout", pulled);
    const FunctionalStage* functional = functional_stage(*pair.stage);
    const Shape& shape = geometry_.shapes.left[node_.inputs[0]];
    if (functional != nullptr && functional->reads_own_ntk(shape))
      line.operation += fmt::format(
          "; by leading outputs of inputs that leave out {:.0e} of either kernel ({:.0e} in double) with {} "
          "or fewer, else one "
          "product of matrices",
          largest_tail<float>, largest_tail<double>, most_directions(position_count(shape)));
    line.flops = pair.stage->flops(size);
  }

  /// An entry contributes to one sum for every pair of rows that read its two positions. The first axes are mapped
  /// before the last one, as planes/plane_map does it, so each axis works on the entries that the previous ones left.
  void describe(const PlaneMapping& mapping, PlanLine& line) const {
    line.operation = "maps positions";
    double pairs = entries(node_.inputs[0]);
    for (const SparseAxis& axis : mapping.sparse_axes(geometry_.shapes.left[node_.inputs[0]])) {
      const double readers = static_cast<double>(axis.column.size()) / static_cast<double>(axis.columns),
                   kept = static_cast<double>(axis.rows()) / static_cast<double>(axis.columns);
      line.flops += 2 * pairs * readers * readers * kernels_;
      pairs *= kept * kept;
    }
  }

  static std::string pulled_back(const std::string& what, const std::vector<std::string>& layers) {
    return layers.empty() ? what : fmt::format("{}, pulled back through {}", what, fmt::join(layers, ", "));
  }

  const GramPlan& plan_;
  const PairGeometry& geometry_;
  const Shape& input_;
  NodeId id_;
  const Node& node_;
  double kernels_;
};

/// Measures the times of a plan. The number of random inputs is doubled until a Gram matrix takes at least a third of
/// the time that may be spent: twice as many inputs would have four times as many pairs, and exceed it. A single pair
/// would mostly measure how long a plan takes to be made.
template <typename Scalar>
void measure(const Network& network, const Shape& input, Index channels, GramOptions options, double enough,
             StepTimes times, Plan& plan) {
  constexpr Index most_inputs = 4096;
  for (Index count = 1;; count *= 2) {
    std::vector<Index> dimensions{count};
    dimensions.insert(dimensions.end(), input.begin(), input.end());
    dimensions.push_back(channels);
    const Inputs<Scalar> x = with_drawn_graphs<Scalar>(
        numerics::standard_normal<Scalar>(dimensions, numerics::RandomStream(0)), 0);
    const auto start = std::chrono::steady_clock::now();
    static_cast<void>(gram<Scalar>(network, x, options));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (3 * seconds <= enough && count < most_inputs) continue;
    const double pairs = static_cast<double>(count) * static_cast<double>(count + 1) / 2;
    plan.seconds_per_pair = seconds / pairs;
    // The time of a pair comes from the run without timers, because reading a clock around every step slows small
    // steps down.
    if (times == StepTimes::none) return;
    std::vector<double> seconds_per_line;
    options.seconds_per_line = &seconds_per_line;
    static_cast<void>(gram<Scalar>(network, x, options));
    for (std::size_t i = 0; i < plan.lines.size(); ++i) plan.lines[i].seconds = seconds_per_line[i] / pairs;
    return;
  }
}

/// Writes a number with three digits and a prefix of its unit. `thousand` is 1000 or 1024.
std::string scaled(double value, double thousand, const std::string& unit) {
  static constexpr std::array prefixes{"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  while (value >= thousand && prefix + 1 < prefixes.size()) {
    value /= thousand;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", value, prefixes[prefix], unit);
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", 1e6 * seconds);
  if (seconds < 1) return fmt::format("{:.3g} ms", 1e3 * seconds);
  if (seconds < 300) return fmt::format("{:.3g} s", seconds);
  constexpr double hour = 3600, day = 24 * hour, year = 365.25 * day;
  if (seconds < 3 * hour) return fmt::format("{:.3g} min", seconds / 60);
  if (seconds < 3 * day) return fmt::format("{:.3g} h", seconds / hour);
  return seconds < 2 * year ? fmt::format("{:.3g} days", seconds / day)
                            : fmt::format("{:.3g} years", seconds / year);
}

}  // namespace

namespace {

/// The plan of inputs that are too large for a list of their offsets. Only the shapes after each layer are known, and
/// the entries of whole covariance matrices as upper bounds.
Plan bounded_plan(const Network& network, const Shape& input, const std::string& reason) {
  const Graph graph = Lowering::lower(network, input);
  const std::vector<Shape> shapes = node_shapes(graph, input);
  Plan plan;
  plan.remark = reason;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    double positions = 1;
    for (const Index size : shapes[id]) positions *= static_cast<double>(size);
    plan.lines.push_back({.layer = graph.nodes[id].path,
                          .operation = to_string(shapes[id]),
                          .storage = "not planned",
                          .demand = shapes[id].empty() ? "-" : "any offsets",
                          .entries = positions * positions});
  }
  return plan;
}

/// The reason why a pair of such inputs cannot be measured within the time, or an empty string. The speeds are rough:
/// the estimate only has to keep `explain` from hanging or from exhausting the memory.
std::string too_large_to_measure(const Plan& plan, double input_bytes, double enough) {
  constexpr double flops_a_second = 3e9, bytes_a_second = 5e7, most_bytes = 0x1p30;
  const double seconds = plan.flops / flops_a_second + input_bytes / bytes_a_second;
  if (seconds > 1 + enough) return fmt::format("a pair takes about {} or more", duration(seconds));
  const double bytes = input_bytes + plan.state_bytes + plan.workspace_bytes;
  if (bytes > most_bytes) return fmt::format("a pair takes {} of memory", scaled(bytes, 1024, "B"));
  return "";
}

template <typename Scalar>
Plan explain_geometry(const GramPlan& gram_plan, const Shape& input) {
  const PairLayout pair(gram_plan.program, gram_plan.demand(Purpose::result), input, input);
  const StateLayout& layout = gram_plan.any_layout();
  const Index side = gram_plan.largest_tile_side;
  Plan plan;
  for (NodeId id = 0; id < gram_plan.program.graph.nodes.size(); ++id) {
    plan.lines.push_back(PlanNode(gram_plan, pair.geometry, input, id).line());
    plan.flops += plan.lines.back().flops;
  }
  const double scalar_bytes = gram_plan.in_double ? sizeof(double) : sizeof(Scalar);
  plan.state_bytes = static_cast<double>(layout.size) * scalar_bytes;
  // What a pair keeps is written once and read once. The states of a tile's 2 * side inputs are read once for its
  // side^2 pairs.
  plan.bytes = 2 * static_cast<double>(pair.stores.size) * scalar_bytes +
               2 * plan.state_bytes / static_cast<double>(side);
  if (!gram_plan.vectors_only)
    plan.workspace_bytes =
        scalar_bytes * static_cast<double>(WorkspaceLayout(pair, layout, {side, side}).total());
  plan.replicates = static_cast<Index>(sampled_replicates(gram_plan.program.graph));
  if (gram_plan.device != nullptr)
    plan.device = fmt::format("{} computes everything with positions, the CPU what comes after them",
                              gram_plan.device->session().device().name);
  return plan;
}

template <typename Scalar>
Plan planned(const Network& network, const Shape& input, Index channels, const GramOptions& options) {
  // The side of tiles depends on how many pairs there are. A plan for many inputs has the tiles of a batch that is
  // worth planning for.
  constexpr Index many_inputs = 1000;
  const GramSize size{.channels = channels,
                      .inputs = many_inputs,
                      .fewer_inputs = many_inputs,
                      .pairs = many_inputs * many_inputs};
  try {
    return explain_geometry<Scalar>(make_plan(network, {{input, "the input"}}, size, sizeof(Scalar), options),
                                    input);
  } catch (const TooManyOffsets& error) {
    return bounded_plan(network, input, fmt::format("too large to be computed: {}", error.what()));
  }
}

std::string costs_text(const Plan& plan) {
  std::string text = fmt::format("a pair     {}, {} of memory traffic\n", scaled(plan.flops, 1e3, "flops"),
                                 scaled(plan.bytes, 1024, "B"));
  text += fmt::format("an input   {} of state\n", scaled(plan.state_bytes, 1024, "B"));
  text += fmt::format("a thread   {} of workspace\n", scaled(plan.workspace_bytes, 1024, "B"));
  if (plan.replicates > 1) text += fmt::format("sampled    {} runs of all that\n", plan.replicates);
  if (plan.seconds_per_pair > 0)
    text += fmt::format("measured   {} a pair; 1,000 inputs {}, 10,000 inputs {}\n",
                        duration(plan.seconds_per_pair), duration(plan.seconds(1000)),
                        duration(plan.seconds(10'000)));
  return text;
}

}  // namespace

template <typename Scalar>
Plan explain(const Network& network, const Shape& input, Index channels, const GramOptions& options,
             double measure_seconds, StepTimes times) {
  if (channels < 1)
    throw ArgumentError(fmt::format("explain: channels must be at least 1, got {}", channels));
  Plan plan = planned<Scalar>(network, input, channels, options);
  if (!plan.remark.empty() || !(measure_seconds > 0)) return plan;
  const double input_bytes =
      static_cast<double>(position_count(input)) * static_cast<double>(channels) * sizeof(Scalar);
  const std::string obstacle = too_large_to_measure(plan, input_bytes, measure_seconds);
  if (obstacle.empty())
    measure<Scalar>(network, input, channels, options, measure_seconds, times, plan);
  else
    plan.remark = fmt::format("not measured: {}", obstacle);
  return plan;
}

template Plan explain<float>(const Network&, const Shape&, Index, const GramOptions&, double, StepTimes);
template Plan explain<double>(const Network&, const Shape&, Index, const GramOptions&, double, StepTimes);

std::string to_string(const Plan& plan) {
  const bool timed = std::any_of(plan.lines.begin(), plan.lines.end(),
                                 [](const PlanLine& line) { return line.seconds > 0; });
  const auto time_column = [timed](const std::string& time) {
    return timed ? fmt::format(" {:>9}", time) : std::string();
  };
  std::string text = fmt::format("{:<14} {:<22} {:>9} {:>9}{}  {}\n", "result", "demand", "entries", "flops",
                                 time_column("time"), "step");
  for (const PlanLine& line : plan.lines)
    text += fmt::format("{:<14} {:<22} {:>9} {:>9}{}  {}: {}\n", line.storage, line.demand,
                        scaled(line.entries, 1e3, ""), line.flops > 0 ? scaled(line.flops, 1e3, "") : "?",
                        time_column(duration(line.seconds)), line.layer, line.operation);
  if (plan.flops > 0 || plan.remark.empty()) text += costs_text(plan);
  if (!plan.device.empty()) text += fmt::format("a device   {}\n", plan.device);
  if (!plan.remark.empty()) text += plan.remark + "\n";
  return text;
}

}  // namespace widelimit
