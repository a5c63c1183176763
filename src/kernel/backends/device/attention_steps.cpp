#include "kernel/backends/device/attention_steps.hpp"

#include <algorithm>
#include <utility>

#include "kernel/backends/device/dual_attention_steps.hpp"
#include "kernel/backends/device/readout_source.hpp"
#include "kernel/backends/device/readout_terms.hpp"
#include "network/linear_stages.hpp"
#include "network/scaling_pair_stage.hpp"

namespace widelimit {
namespace {

using Table = std::shared_ptr<const std::vector<double>>;

void append(const Matrix<double>& matrix, std::vector<double>& numbers) {
  numbers.insert(numbers.end(), matrix.data(), matrix.data() + matrix.size());
}

class MatrixSteps {
 public:
  MatrixSteps(const MatrixStage& stage, const KeptNodes& kept, Index first, const ChainSourceOptions& options)
      : of_{stage},
        input_{stage.program.graph.nodes[stage.node].inputs[0]},
        left_{stage.geometry.shapes.left[input_]},
        right_{stage.geometry.shapes.right[input_]},
        d_{position_count(left_)},
        e_{position_count(right_)},
        kept_{kept},
        first_{first},
        options_{options},
        source_(options, kept.size) {}

  std::vector<DeviceStep> attention(const SandwichStage& sandwich) {
    const auto [factor, bias, weight] = sandwich.form();
    const KeptPlanes &before = kept_.nodes.at(input_), &after = kept_.nodes.at(of_.node);
    const Index values = first_, half = first_ + d_ * e_;
    Table table;
    if (const auto positions = sandwich.value_positions(left_, right_)) {
      std::vector<double> numbers;
      append(*positions, numbers);
      table = std::make_shared<const std::vector<double>>(std::move(numbers));
    }
    add_entries(source_.values(
        before, {.to = values, .weight = weight, .encodings = table != nullptr, .adds_values = true}));
    steps_.back().table = std::move(table);
    using In = MatrixPlace::In;
    const MatrixPlace left_weights{In::left, of_.left.extra[of_.node], d_, 1},
        right_weights{In::right, of_.right.extra[of_.node], 1, e_};
    const MatrixPlace half_at{In::kept, half, e_, 1};
    add_product({left_weights, {In::kept, values, e_, 1}, d_, e_, d_, half, true});
    // Tiles compute all entries, at a tenth of the cost of an entry.
    constexpr Index gain = 8;
    if (gain * after.size() < d_ * e_) {
      add_entries(source_.spread(half_at, right_weights, e_, after, factor, bias));
    } else {
      // The values are no longer needed.
      add_product({half_at, right_weights, d_, e_, e_, values, true});
      add_entries(source_.spread(values, after, factor, bias));
    }
    return std::move(steps_);
  }

  std::vector<DeviceStep> scaling() {
    add_entries(source_.scaled(kept_.nodes.at(input_), kept_.nodes.at(of_.node), of_.left.extra[of_.node],
                               of_.right.extra[of_.node]));
    return std::move(steps_);
  }

  std::vector<DeviceStep> readout(const PulledTree& tree) {
    const ReadoutTerms left = readout_terms(tree, d_), right = readout_terms(tree, e_);
    add_terms(left, right, {});
    using In = MatrixPlace::In;
    for (std::size_t i = 0; i < left.products.size(); ++i) {
      add_product({{In::left, of_.left.extra[of_.node] + left.products[i], 1, d_},
                   {In::right, of_.right.extra[of_.node] + right.products[i], e_, 1},
                   d_,
                   e_,
                   d_,
                   first_,
                   false});
      add_terms(left, right, i);
    }
    return std::move(steps_);
  }

 private:
  void add_entries(MatrixKernel kernel) {
    steps_.push_back(matrix_step(of_, std::move(kernel), matrix_entries_of_item * options_.group));
  }
  void add_product(const MatrixProduct& product) {
    steps_.push_back(matrix_step(of_, source_.product(product), source_.tile()));
  }

  /// Adds up the terms with a product of this number, or those without any.
  void add_terms(const ReadoutTerms& left, const ReadoutTerms& right, std::optional<std::size_t> product) {
    TermsSource source{.left = left,
                       .right = right,
                       .chosen = {},
                       .left_state = of_.left.extra[of_.node],
                       .right_state = of_.right.extra[of_.node],
                       .planes = kept_.nodes.at(input_),
                       .product = first_,
                       .tables = {}};
    std::vector<double> table;
    for (std::size_t i = 0; i < left.terms.size(); ++i) {
      const ReadoutTerm& term = left.terms[i];
      const bool of_product = term.form == WeightsForm::full;
      if (of_product != product.has_value() || (of_product && term.product != *product)) continue;
      source.chosen.push_back(i);
      source.tables.push_back(table.size());
      if (term.positions != nullptr) append(*term.positions->value_positions(left_, right_), table);
    }
    if (source.chosen.empty()) return;
    MatrixKernel kernel{.source = readout_source(source, options_),
                        .numbers = {static_cast<int>(kept_.size)},
                        .items = source.planes.size()};
    append_numbers(source.planes, kernel.numbers);
    add_entries(std::move(kernel));
    if (!table.empty()) steps_.back().table = std::make_shared<const std::vector<double>>(std::move(table));
    const NodeId readout = readout_after();
    steps_.back().sums = {readout, readout_weight(of_.program.graph, of_.geometry, readout)};
  }

  [[nodiscard]] NodeId readout_after() const {
    const auto& nodes = of_.program.graph.nodes;
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) {
      return std::find(node.inputs.begin(), node.inputs.end(), of_.node) != node.inputs.end();
    });
    return static_cast<NodeId>(found - nodes.begin());
  }

  const MatrixStage& of_;
  NodeId input_;
  const Shape &left_, &right_;
  Index d_, e_;
  const KeptNodes& kept_;
  Index first_;
  ChainSourceOptions options_;
  MatrixSource source_;
  std::vector<DeviceStep> steps_;
};

}  // namespace

bool is_pulled_readout(const Operation& operation) {
  const PairStage* stage = pair_stage_of(operation);
  return stage != nullptr && pulled_tree(*stage).has_value();
}

namespace {

bool is_scaling(const Operation& operation) {
  return dynamic_cast<const ScalingPairStage*>(pair_stage_of(operation)) != nullptr;
}

}  // namespace

bool is_matrix_stage(const Operation& operation) {
  return dynamic_cast<const SandwichStage*>(pair_stage_of(operation)) != nullptr ||
         dual_attention(operation) != nullptr || is_scaling(operation) || is_pulled_readout(operation);
}

DeviceStep matrix_step(const MatrixStage& stage, MatrixKernel kernel, Index of_group) {
  return {.source = std::move(kernel.source),
          .path = stage.program.graph.nodes[stage.node].path,
          .offsets = std::move(kernel.numbers),
          .shares = shares_of(kernel.items, of_group)};
}

Index matrix_stage_numbers(const MatrixStage& stage, const ChainSourceOptions& options) {
  const NodeId input = stage.program.graph.nodes[stage.node].inputs[0];
  const Index entries =
      product(stage.geometry.left_sizes[input]) * product(stage.geometry.right_sizes[input]);
  const Operation& operation = stage.program.graph.nodes[stage.node].operation;
  if (const DualAttentionStage* dual = dual_attention(operation))
    return dual_attention_numbers(*dual, entries, options.precision);
  if (is_scaling(operation)) return 0;
  const auto tree = pulled_tree(*pair_stage_of(operation));
  if (!tree) return 2 * entries;
  return readout_terms(*tree, 1).products.empty() ? 0 : entries;
}

std::vector<DeviceStep> matrix_stage_steps(const MatrixStage& stage, const KeptNodes& kept, Index first,
                                           const ChainSourceOptions& options) {
  const Operation& operation = stage.program.graph.nodes[stage.node].operation;
  if (dual_attention(operation) != nullptr) return dual_attention_steps(stage, kept, first, options);
  const PairStage& of = *pair_stage_of(operation);
  MatrixSteps steps(stage, kept, first, options);
  if (is_scaling(operation)) return steps.scaling();
  if (const auto tree = pulled_tree(of)) return steps.readout(*tree);
  return steps.attention(dynamic_cast<const SandwichStage&>(of));
}

std::optional<DeviceStep> matrix_stage_record(const MatrixStage& stage, const KeptNodes& kept,
                                              const ChainSourceOptions& options) {
  if (dual_attention(stage.program.graph.nodes[stage.node].operation) == nullptr) return std::nullopt;
  return dual_attention_record(stage, kept, options);
}

}  // namespace widelimit
