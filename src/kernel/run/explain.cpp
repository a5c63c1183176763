#include "widelimit/kernel/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kernel/backends/cpu/planes/workspace.hpp"
#include "kernel/backends/device/device_plan.hpp"
#include "kernel/backends/device/product_plan.hpp"
#include "kernel/inputs/features.hpp"
#include "kernel/inputs/require_inputs.hpp"
#include "kernel/inputs/typical_inputs.hpp"
#include "kernel/plan/demand.hpp"
#include "kernel/readouts/leading_outputs.hpp"
#include "kernel/readouts/pair_sums.hpp"
#include "kernel/readouts/pulled_readout.hpp"
#include "kernel/run/cost_measurement.hpp"
#include "kernel/run/gram_run.hpp"
#include "kernel/run/make_gram_plan.hpp"
#include "kernel/run/plan_text.hpp"
#include "kernel/run/thread_time.hpp"
#include "network/plane_mapping.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/tasks.hpp"
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
    // A node that is not kept lives in the planes of a chain, one offset at a time.
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
    if (const PlaneMapping* mapping = plane_mapping(pair.stage.get())) return describe(*mapping, line);
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

/// The plan of inputs that are too large for a list of their offsets. Only the shapes after each layer are known, and
/// the entries of whole covariance matrices as upper bounds.
Plan bounded_plan(const Network& network, const Shape& input, const std::string& reason) {
  const Graph graph = lower_with_readouts(network, input);
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
  if (seconds > 1 + enough) return fmt::format("a pair takes about {} or more", duration_text(seconds));
  const double bytes = input_bytes + plan.state_bytes + plan.workspace_bytes;
  if (bytes > most_bytes) return fmt::format("a pair takes {} of memory", scaled_text(bytes, 1024, "B"));
  return "";
}

/// The layouts of a pair of the largest inputs, and what they cost.
template <typename Scalar>
Plan explain_geometry(const GramPlan& gram_plan, const Shape& input) {
  const PairLayout pair(gram_plan.program, gram_plan.demand(Purpose::result), input, input);
  const StateLayout& layout = gram_plan.state_layouts.at(input);
  Plan plan;
  plan.tile_side = gram_plan.tile_sides.at(input);
  const Index side = plan.tile_side;
  if (gram_plan.vectors_only) plan.grid = gram_plan.largest_tile_side;
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
  if (!gram_plan.vectors_only) {
    // On the CPU a thread beside a device records inputs one by one.
    const Index inputs_at_once = gram_plan.device == nullptr ? side : 1;
    plan.workspace_bytes =
        scalar_bytes *
        static_cast<double>(WorkspaceLayout(pair, layout, {inputs_at_once, inputs_at_once}).total());
  }
  plan.replicates = static_cast<Index>(sampled_replicates(gram_plan.program.graph));
  if (gram_plan.device != nullptr)
    plan.device_input_bytes = product_bytes_of_input(gram_plan, sizeof(Scalar));
  if (gram_plan.device != nullptr)
    plan.device =
        (gram_plan.device->devices() > 1 ? fmt::format("each of {} devices ", gram_plan.device->devices())
                                         : "") +
        gram_plan.device->session().device().name +
        (gram_plan.vectors_only
             ? " computes all pairs, the CPU checks the inputs"
             : " computes everything with positions, the CPU what comes after them; planes by " +
                   gram_plan.device->form_text(gram_plan));
  return plan;
}

/// The plan of a Gram matrix of many inputs, which are described by their shapes.
template <typename Scalar>
class Explanation {
 public:
  Explanation(const Network& network, NamedShapes shapes, const Shape& largest, const GramSize& size,
              const GramOptions& options)
      : network_{network}, shapes_{std::move(shapes)}, largest_{largest}, size_{size}, options_{options} {}

  /// The lines, and sizes of memory.
  [[nodiscard]] Plan plan() {
    try {
      const ThreadTime making;
      gram_plan_.emplace(plan_of({}));
      made_ = making.passed();
    } catch (const TooManyOffsets& error) {
      return bounded_plan(network_, largest_, fmt::format("too large to be computed: {}", error.what()));
    }
    Plan plan = explain_geometry<Scalar>(*gram_plan_, largest_);
    plan.state_memory_bytes = options_.state_memory_bytes;
    plan.threads = numerics::threads_at_once(numerics::resolve_threads(options_.threads, "explain"));
    return plan;
  }

  [[nodiscard]] Index inputs_to_measure() const { return widelimit::inputs_to_measure(*gram_plan_); }
  [[nodiscard]] const Graph& graph() const { return gram_plan_->program.graph; }
  [[nodiscard]] double mean_state_bytes(const Inputs<Scalar>& x) const {
    double numbers = 0;
    for (Index i = 0; i < x.size(); ++i)
      numbers += static_cast<double>(gram_plan_->state_layouts.at(x.shape(i)).size);
    return numbers * (gram_plan_->in_double ? sizeof(double) : sizeof(Scalar)) /
           static_cast<double>(x.size());
  }

  /// Adds the times. Every replicate of a sampled network has a plan of its own, which draws its samples.
  void measure(const Inputs<Scalar>& x, double seconds, StepTimes times, Plan& plan) const {
    if (gram_plan_->device != nullptr) {
      plan.remark = "not measured: only the CPU is; gram itself tells the time on a device";
      return;
    }
    MeasuredCosts costs = plan.replicates == 1
                              ? measure_costs(*gram_plan_, x, options_, seconds, times)
                              : measure_costs(plan_of({0, plan.replicates}), x, options_, seconds, times);
    const auto of_all = [&](const Cost& cost) {
      const auto replicates = static_cast<double>(plan.replicates);
      return Cost{replicates * cost.seconds, replicates * cost.processor_seconds};
    };
    costs.start.seconds += made_.seconds;
    costs.start.processor_seconds += made_.processor_seconds;
    plan.pair = of_all(costs.pair);
    plan.input = of_all(costs.input);
    plan.start = of_all(costs.start);
    for (std::size_t i = 0; i < costs.seconds_per_line.size(); ++i)
      plan.lines[i].seconds = costs.seconds_per_line[i];
  }

 private:
  [[nodiscard]] GramPlan plan_of(const Replicate& replicate) const {
    return make_plan(network_, shapes_, size_, sizeof(Scalar), options_, replicate);
  }

  const Network& network_;
  NamedShapes shapes_;
  const Shape& largest_;
  GramSize size_;
  const GramOptions& options_;
  std::optional<GramPlan> gram_plan_;
  Cost made_;  ///< What making it took.
};

GramSize size_of(Index inputs, Index channels, InputMasks masks) {
  return {.channels = channels,
          .inputs = inputs,
          .fewer_inputs = inputs,
          .pairs = inputs * (inputs + 1) / 2,
          .masks = masks};
}

void require_inputs_to_explain(Index inputs) {
  // The number of pairs must not overflow.
  constexpr Index most = Index{1} << 31;
  if (inputs < 1 || inputs > most)
    throw ArgumentError(fmt::format("explain: inputs must be 1 to {}, got {}", most, inputs));
}

}  // namespace

template <typename Scalar>
Plan explain(const Network& network, const Shape& input, Index channels, const GramOptions& options,
             double measure_seconds, StepTimes times, Index inputs) {
  if (channels < 1)
    throw ArgumentError(fmt::format("explain: channels must be at least 1, got {}", channels));
  require_inputs_to_explain(inputs);
  Explanation<Scalar> explanation(network, {{input, "the input"}}, input,
                                  size_of(inputs, channels, InputMasks::absent), options);
  Plan plan = explanation.plan();
  if (!plan.remark.empty() || !(measure_seconds > 0)) return plan;
  const double input_bytes =
      static_cast<double>(position_count(input)) * static_cast<double>(channels) * sizeof(Scalar);
  const std::string obstacle = too_large_to_measure(plan, input_bytes, measure_seconds);
  if (!obstacle.empty()) {
    plan.remark = fmt::format("not measured: {}", obstacle);
    return plan;
  }
  const Index count = std::min(inputs, explanation.inputs_to_measure());
  plan.measured_on = input.size() < 2 ? "random inputs" : "smooth random images";
  explanation.measure(typical_inputs<Scalar>(count, input, channels), measure_seconds, times, plan);
  return plan;
}

template <typename Scalar>
Plan explain(const Network& network, const Inputs<Scalar>& x, const GramOptions& options,
             double measure_seconds, StepTimes times, Index inputs) {
  require_inputs(x, "explain", "x");
  check_finite(x, "x", options.threads);
  if (inputs == 0) inputs = x.size();
  require_inputs_to_explain(inputs);
  Index largest = 0;
  for (Index i = 0; i < x.size(); ++i)
    if (position_count(x.shape(i)) > position_count(x.shape(largest))) largest = i;
  const GramTask task = symmetric_task(network, x);
  Explanation<Scalar> explanation(network, task.shapes, x.shape(largest),
                                  size_of(inputs, x.channels(), task.masks), options);
  Plan plan = explanation.plan();
  if (!plan.remark.empty()) return plan;
  task.check(explanation.graph());
  plan.state_bytes = explanation.mean_state_bytes(x);
  if (!(measure_seconds > 0)) return plan;
  plan.measured_on = fmt::format("inputs of the {} given", x.size());
  explanation.measure(x, measure_seconds, times, plan);
  return plan;
}

template Plan explain(const Network&, const Inputs<float>&, const GramOptions&, double, StepTimes, Index);
template Plan explain(const Network&, const Inputs<double>&, const GramOptions&, double, StepTimes, Index);
template Plan explain<float>(const Network&, const Shape&, Index, const GramOptions&, double, StepTimes,
                             Index);
template Plan explain<double>(const Network&, const Shape&, Index, const GramOptions&, double, StepTimes,
                              Index);

}  // namespace widelimit
