#include "kernel/backends/device/adjoint_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/backends/cpu/backward/plan/steep_stages.hpp"
#include "kernel/backends/device/cl/adjoint_source.hpp"
#include "kernel/backends/device/scalar_source.hpp"
#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "kernel/backends/device/source_beginning.hpp"
#include "network/linear_stages.hpp"

namespace widelimit {
namespace {

using numerics::formula::MappedSlopes;
using numerics::formula::Precision;
using numerics::formula::Statements;
using numerics::formula::Symbol;

/// Writes the statements of one pair. Instruction i has its kernels in k<i> and t<i>, and their adjoints in dk<i> and
/// dt<i>.
class PairWriter {
 public:
  PairWriter(const Program& program, Precision precision, bool with_ntk, const std::vector<bool>& steep)
      : program_{program}, precision_{precision}, with_ntk_{with_ntk}, steep_{steep} {}

  void forward(std::size_t i);
  void backward(std::size_t i);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<NodeId>& stages() const { return stages_; }
  [[nodiscard]] const std::vector<NodeId>& sources() const { return sources_; }

 private:
  /// What a row stage left for its backward pass.
  struct Slopes {
    std::string factor;
    std::string value_in[3], factor_in[3];  // NOLINT: p, q and c
    std::size_t stage = 0;
  };

  [[nodiscard]] const Instruction& instruction(std::size_t i) const {
    return program_.pair_rows.instructions[i];
  }
  [[nodiscard]] const Node& node(std::size_t i) const { return program_.graph.nodes[instruction(i).node]; }
  [[nodiscard]] std::string literal(double number) const { return literal_of(number, precision_); }
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  void declare(std::size_t i, const std::string& nngp, const std::string& ntk) {
    line("const real k{} = {};", i, nngp);
    if (with_ntk_) line("const real t{} = {};", i, ntk);
  }

  void forward_row(std::size_t i, const RowStage& stage);
  void forward_sum(std::size_t i, const SumNode& sum);
  void forward_product(std::size_t i, const ProductNode& product);
  void backward_affine(std::size_t i, const AffineEntryStage::Entries& entries);
  void backward_row(std::size_t i);
  void backward_sum(std::size_t i, const SumNode& sum);
  void backward_product(std::size_t i, const ProductNode& product);
  /// The product of the NNGPs of a product's factors but for those of two numbers.
  [[nodiscard]] std::string others(std::size_t i, std::size_t without, std::size_t nor) const;

  const Program& program_;
  Precision precision_;
  bool with_ntk_;
  const std::vector<bool>& steep_;
  std::string text_;
  std::vector<NodeId> stages_, sources_;
  std::map<std::size_t, Slopes> slopes_;  ///< [instruction]
};

/// The numbers of a dense layer, or of a stage that is linear in an entry: K' = w K + b, T' = w T + g K + c.
AffineEntryStage::Entries entries_of(const AffineNode& node) {
  const bool trained = node.weights == AffineNode::Weights::trained;
  return {node.weight_variance, node.bias_variance, trained ? node.weight_variance : 0,
          trained ? node.bias_variance : 0};
}

void PairWriter::forward(std::size_t i) {
  const Operation& operation = node(i).operation;
  const auto linear = [&](const AffineEntryStage::Entries& entries) {
    const std::size_t input = instruction(i).inputs[0];
    declare(i, fmt::format("fma({}, k{}, {})", literal(entries.weight), input, literal(entries.bias)),
            fmt::format("fma({}, t{}, fma({}, k{}, {}))", literal(entries.weight), input,
                        literal(entries.in_ntk), input, literal(entries.ntk_bias)));
  };
  if (const auto* affine = std::get_if<AffineNode>(&operation)) {
    linear(entries_of(*affine));
  } else if (multiplies_features(operation)) {
    declare(i, fmt::format("products[{} * entries + entry]", sources_.size()), "0");
    sources_.push_back(instruction(i).node);
  } else if (const RowStage* stage = row_stage_of(operation)) {
    const auto* in_entry = dynamic_cast<const AffineEntryStage*>(stage);
    in_entry == nullptr ? forward_row(i, *stage) : linear(in_entry->entries());
  } else if (const auto* sum = std::get_if<SumNode>(&operation)) {
    forward_sum(i, *sum);
  } else {
    forward_product(i, std::get<ProductNode>(operation));
  }
}

void PairWriter::forward_row(std::size_t i, const RowStage& stage) {
  const std::size_t input = instruction(i).inputs[0], number = stages_.size();
  stages_.push_back(instruction(i).node);
  line("const real p{} = left_variances[{} * rows + row], q{} = right_variances[{} * columns + column];", i,
       number, i, number);
  Statements in(precision_, fmt::format("v{}_", i));
  const auto symbol = [&](char letter, std::size_t of) {
    return Symbol(in, fmt::format("{}{}", letter, of));
  };
  const MappedSlopes<Symbol> found =
      device_formula(program_, stage)->written_slopes(symbol('p', i), symbol('q', i), symbol('k', input));
  Slopes& slopes = slopes_[i];
  slopes.stage = number;
  slopes.factor = found.mapped.factor.written(in);
  const auto keep = [&](std::size_t k, const numerics::formula::Mapped<Symbol>& in_variable) {
    slopes.value_in[k] = in_variable.value.written(in);
    slopes.factor_in[k] = in_variable.factor.written(in);
  };
  keep(0, found.left);
  keep(1, found.right);
  keep(2, found.covariance);
  const std::string value = found.mapped.value.written(in);
  text_ += in.text();
  declare(i, value, fmt::format("{} * t{}", slopes.factor, input));
}

void PairWriter::forward_sum(std::size_t i, const SumNode& sum) {
  const auto terms = [&](char kernel) {
    std::string text = "0";
    for (std::size_t k = 0; k < sum.factors.size(); ++k)
      text =
          fmt::format("fma({}, {}{}, {})", literal(sum.factors[k]), kernel, instruction(i).inputs[k], text);
    return text;
  };
  declare(i, terms('k'), with_ntk_ ? terms('t') : "0");
}

std::string PairWriter::others(std::size_t i, std::size_t without, std::size_t nor) const {
  std::string text = literal(std::get<ProductNode>(node(i).operation).factor);
  for (std::size_t k = 0; k < instruction(i).inputs.size(); ++k)
    if (k != without && k != nor) text += fmt::format(" * k{}", instruction(i).inputs[k]);
  return text;
}

void PairWriter::forward_product(std::size_t i, const ProductNode& /*product*/) {
  const auto& inputs = instruction(i).inputs;
  std::string ntk = "0";
  for (std::size_t k = 0; k < inputs.size(); ++k)
    ntk += fmt::format(" + t{} * ({})", inputs[k], others(i, k, k));
  declare(i, others(i, inputs.size(), inputs.size()), ntk);
}

void PairWriter::backward(std::size_t i) {
  const Operation& operation = node(i).operation;
  if (const auto* affine = std::get_if<AffineNode>(&operation)) {
    backward_affine(i, entries_of(*affine));
  } else if (multiplies_features(operation)) {
    const auto number = std::find(sources_.begin(), sources_.end(), instruction(i).node) - sources_.begin();
    line("product_adjoints[{} * entries + entry] = dk{};", number, i);
  } else if (const RowStage* stage = row_stage_of(operation)) {
    const auto* in_entry = dynamic_cast<const AffineEntryStage*>(stage);
    in_entry == nullptr ? backward_row(i) : backward_affine(i, in_entry->entries());
  } else if (const auto* sum = std::get_if<SumNode>(&operation)) {
    backward_sum(i, *sum);
  } else {
    backward_product(i, std::get<ProductNode>(operation));
  }
}

void PairWriter::backward_affine(std::size_t i, const AffineEntryStage::Entries& entries) {
  const std::size_t input = instruction(i).inputs[0];
  line("dk{} += {} * dk{};", input, literal(entries.weight), i);
  if (!with_ntk_) return;
  line("dk{} += {} * dt{};", input, literal(entries.in_ntk), i);
  line("dt{} += {} * dt{};", input, literal(entries.weight), i);
}

/// T' = factor T, so that the slopes of the factor are multiplied by T and the adjoint of T'.
void PairWriter::backward_row(std::size_t i) {
  const std::size_t input = instruction(i).inputs[0];
  const Slopes& slopes = slopes_.at(i);
  if (!steep_.empty() && steep_[instruction(i).node])
    line(
        "if ((dk{0} != 0{1}) && p{0} > 0 && q{0} > 0 && (k{2} / p{0}) * (k{2} / q{0}) > {3}) *near_ties = 1;",
        i, with_ntk_ ? fmt::format(" || dt{} != 0", i) : "", input, literal(1 - 2 * tie_distance));
  line("{{");
  if (with_ntk_) line("const real product = dt{} * t{};", i, input);
  const auto through = [&](std::size_t k) {
    std::string text = fmt::format("dk{} * {}", i, slopes.value_in[k]);
    if (with_ntk_) text += fmt::format(" + product * {}", slopes.factor_in[k]);
    return text;
  };
  for (std::size_t side = 0; side < 2; ++side)
    line("variance_adjoints[{} * entries + entry] = {};", 2 * slopes.stage + side, through(side));
  line("dk{} += {};", input, through(2));
  if (with_ntk_) line("dt{} += dt{} * {};", input, i, slopes.factor);
  line("}}");
}

void PairWriter::backward_sum(std::size_t i, const SumNode& sum) {
  for (std::size_t k = 0; k < sum.factors.size(); ++k)
    for (const char kernel : {'k', 't'})
      if (kernel == 'k' || with_ntk_)
        line("d{0}{1} += {2} * d{0}{3};", kernel, instruction(i).inputs[k], literal(sum.factors[k]), i);
}

void PairWriter::backward_product(std::size_t i, const ProductNode& /*product*/) {
  const auto& inputs = instruction(i).inputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    line("dk{} += dk{} * ({});", inputs[k], i, others(i, k, k));
    if (!with_ntk_) continue;
    line("dt{} += dt{} * ({});", inputs[k], i, others(i, k, k));
    for (std::size_t l = 0; l < inputs.size(); ++l)
      if (l != k) line("dk{} += dt{} * t{} * ({});", inputs[k], i, inputs[l], others(i, k, l));
  }
}

}  // namespace

std::vector<DeviceGap> adjoint_gaps(const Program& program) {
  const auto& nodes = program.graph.nodes;
  for (NodeId id = 0; id < nodes.size() && !program.steps.empty(); ++id)
    if (program.has_positions[id] && !multiplies_features(nodes[id].operation))
      return {{nodes[id].path, "positions, whose derivatives are computed on the CPU"}};
  std::vector<DeviceGap> gaps = scalar_gaps(program);
  for (const Instruction& instruction : program.pair_rows.instructions) {
    const Node& node = nodes[instruction.node];
    const RowStage* stage = row_stage_of(node.operation);
    if (stage != nullptr && smooth_nonlinearity(*stage) != nullptr)
      gaps.push_back({node.path, "a dual by quadrature, whose derivatives are computed on the CPU"});
  }
  return gaps;
}

AdjointSource::AdjointSource(const Program& program, Precision precision, bool with_ntk,
                             const std::vector<bool>& steep) {
  const std::size_t count = program.pair_rows.instructions.size();
  PairWriter writer(program, precision, with_ntk, steep);
  const auto named = [&](std::size_t i, const auto& write) {
    written_for(program.graph.nodes[program.pair_rows.instructions[i].node].path, write);
  };
  for (std::size_t i = 0; i < count; ++i) named(i, [&] { writer.forward(i); });
  const std::string forward = writer.text();
  std::string adjoints;
  for (std::size_t i = 0; i < count; ++i)
    adjoints +=
        fmt::format("real dk{0} = {1};{2}\n", i, i + 1 == count ? "of_nngp" : "0",
                    with_ntk ? fmt::format(" real dt{} = {};", i, i + 1 == count ? "of_ntk" : "0") : "");
  for (std::size_t i = count; i-- > 0;) named(i, [&] { writer.backward(i); });
  const std::string backward = writer.text().substr(forward.size());
  stages_ = writer.stages();
  sources_ = writer.sources();
  text_ = source_beginning(precision) + sums_functions;
  text_ += fmt::format(
      "kernel void pairs(global const real* left_variances, global const real* right_variances, int rows, "
      "int columns,\n"
      "                  int diagonal, global const real* products, global const real* cotangents,\n"
      "                  global real* product_adjoints, global real* variance_adjoints, global int* "
      "near_ties) {{\n"
      "const ulong entry = get_global_id(0), entries = (ulong)rows * columns;\nif (entry >= entries) "
      "return;\n"
      "const int row = (int)(entry / columns), column = (int)(entry % columns);\n"
      "const real of_nngp = cotangents[entry]{};\n"
      "if (column == row + diagonal || (of_nngp == 0{})) {{\n"
      "for (int s = 0; s < {}; ++s) product_adjoints[s * entries + entry] = 0;\n"
      "for (int s = 0; s < {}; ++s) variance_adjoints[s * entries + entry] = 0;\nreturn;\n}}\n",
      with_ntk ? ", of_ntk = cotangents[entries + entry]" : "", with_ntk ? " && of_ntk == 0" : "",
      sources_.size(), 2 * stages_.size());
  text_ += forward + adjoints + backward + "}\n";
}

}  // namespace widelimit
