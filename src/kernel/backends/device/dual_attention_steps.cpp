#include "kernel/backends/device/dual_attention_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "kernel/backends/device/dual_attention_source.hpp"
#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

std::shared_ptr<const std::vector<double>> dual_table(std::vector<double> numbers) {
  return numbers.empty() ? nullptr : std::make_shared<const std::vector<double>>(std::move(numbers));
}

class DualAttentionSteps {
 public:
  DualAttentionSteps(const MatrixStage& stage, const KeptNodes& kept, Index first,
                     const ChainSourceOptions& options)
      : of_{stage},
        stage_{*dual_attention(stage.program.graph.nodes[stage.node].operation)},
        form_{stage_.form()},
        input_{stage.program.graph.nodes[stage.node].inputs[0]},
        left_{stage.geometry.shapes.left[input_]},
        right_{stage.geometry.shapes.right[input_]},
        kept_{kept},
        options_{options},
        places_{.d = position_count(left_),
                .e = position_count(right_),
                .values = first,
                .keys = first,
                .tables = first,
                .left_state = stage.left.extra[stage.node],
                .right_state = stage.right.extra[stage.node]} {
    if (keeps_keys(form_)) places_.keys += places_.d * places_.e;
    places_.tables = places_.keys + places_.d * places_.e;
  }

  /// Whether K~ is another matrix than V.
  static bool keeps_keys(const DualAttentionStage::Form& form) {
    return form.has_encodings && !form.encodes_values;
  }

  std::vector<DeviceStep> steps() {
    const DualAttentionSource source(of_.program, stage_, places_, options_, kept_.size);
    const KeptPlanes& after = kept_.nodes.at(of_.node);
    add_values();
    if (!DualAttentionSource::has_tables(form_)) {
      // A dual for each (i, j) takes longer than what other kernels do for an entry.
      add(source.sums(after), options_.group);
      steps_.back().table = dual_table(source.sums_table());
      return std::move(steps_);
    }
    if (DualAttentionSource::interpolates(form_))
      add(source.mark(after), matrix_entries_of_item * options_.group);
    add(source.nodes(), 1);
    add(source.entries(after), matrix_entries_of_item * options_.group);
    return std::move(steps_);
  }

  DeviceStep record() {
    const DualAttentionSource source(of_.program, stage_, places_, options_, kept_.size);
    add(source.variances(kept_.nodes.at(input_)), matrix_entries_of_item * options_.group);
    if (form_.has_encodings) {
      const auto encodings = stage_.encodings(left_, left_);
      std::vector<double> variances;
      for (Index a = 0; a < places_.d; ++a) variances.push_back((*encodings)(a, a));
      steps_.back().table = dual_table(std::move(variances));
    }
    return std::move(steps_.back());
  }

 private:
  void add(MatrixKernel kernel, Index of_group) {
    steps_.push_back(matrix_step(of_, std::move(kernel), of_group));
  }

  /// V and K~ as matrices.
  void add_values() {
    const KeptPlanes& before = kept_.nodes.at(input_);
    const MatrixSource matrix(options_, kept_.size);
    MatrixValues keys{.to = places_.keys,
                      .weight = form_.input_weight,
                      .encodings = form_.has_encodings,
                      .clear_from = places_.tables,
                      .clear_count = DualAttentionSource::mark_count(form_, options_.precision)};
    add(matrix.values(before, keys), matrix_entries_of_item * options_.group);
    if (form_.has_encodings) {
      const auto encodings = stage_.encodings(left_, right_);
      steps_.back().table = dual_table({encodings->data(), encodings->data() + encodings->size()});
    }
    if (keeps_keys(form_))
      add(matrix.values(before, {.to = places_.values, .weight = 1, .encodings = false}),
          matrix_entries_of_item * options_.group);
  }

  const MatrixStage& of_;
  const DualAttentionStage& stage_;
  DualAttentionStage::Form form_;
  NodeId input_;
  const Shape &left_, &right_;
  const KeptNodes& kept_;
  ChainSourceOptions options_;
  DualAttentionPlaces places_;
  std::vector<DeviceStep> steps_;
};

/// Nonlinearities by quadrature have tables for all variances that they can resolve, and say so themselves.
double largest_variance(const DualAttentionStage& stage, numerics::formula::Precision precision) {
  const auto formula = stage.dual();
  if (formula != nullptr) return formula->largest_variance(precision);
  return precision == numerics::formula::Precision::wide ? 1e150 : 1e18;
}

}  // namespace

const DualAttentionStage* dual_attention(const Operation& operation) {
  return dynamic_cast<const DualAttentionStage*>(pair_stage_of(operation));
}

std::string dual_attention_gap(const DualAttentionStage& stage) {
  const auto formula = stage.dual();
  return stage.form().is_identity || (formula != nullptr && formula->prepares()) ||
                 smooth_nonlinearity(stage) != nullptr
             ? ""
             : "weights by a formula that devices cannot read";
}

Index dual_attention_numbers(const DualAttentionStage& attention, Index entries,
                             numerics::formula::Precision precision) {
  const DualAttentionStage::Form form = attention.form();
  return (DualAttentionSteps::keeps_keys(form) ? 2 : 1) * entries +
         DualAttentionSource::table_size(form, precision);
}

std::vector<DeviceStep> dual_attention_steps(const MatrixStage& stage, const KeptNodes& kept, Index first,
                                             const ChainSourceOptions& options) {
  return DualAttentionSteps(stage, kept, first, options).steps();
}

std::optional<DeviceStep> dual_attention_record(const MatrixStage& stage, const KeptNodes& kept,
                                                const ChainSourceOptions& options) {
  if (dual_attention(stage.program.graph.nodes[stage.node].operation)->form().is_identity)
    return std::nullopt;
  return DualAttentionSteps(stage, kept, 0, options).record();
}

void check_logits(const Node& node, double variance, numerics::formula::Precision precision) {
  const DualAttentionStage& stage = *dual_attention(node.operation);
  const DualAttentionStage::Form form = stage.form();
  if (form.is_identity) return;
  const double query = variance + form.query_bias, key = variance + form.key_bias;
  // Deviations are factors of homogeneous weights, so that there is no product of variances.
  const double largest = form.is_homogeneous ? std::max(query, key) : form.query_key_square * query * key,
               most = largest_variance(stage, precision);
  if (!(largest <= most))
    throw NumericalError(fmt::format(
        "{}: expected variances of logits of at most {:g} on a device in this precision, got {:g}; choose "
        "double, scale the inputs, or take the device cpu",
        node.path, most, largest));
}

}  // namespace widelimit
