#include "kernel/backends/device/smooth_nonlinearities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

#include "kernel/backends/device/dual_attention_steps.hpp"
#include "kernel/backends/device/smooth_source.hpp"
#include "kernel/range/variance_checks.hpp"
#include "layers/activation_layer.hpp"
#include "numerics/by_quadrature.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit {

using numerics::QuadratureActivation;
using numerics::formula::Mapped;
using numerics::formula::Precision;
using numerics::formula::RowFormula;
using numerics::formula::RowFormulaPointer;
using numerics::formula::Statements;
using numerics::formula::Symbol;

namespace {

using Nonlinearity = std::shared_ptr<const QuadratureActivation>;

/// A nonlinearity by quadrature as devices write it. Auxiliary number: the variance.
class SmoothFormula final : public RowFormula {
 public:
  /// `number`: among the nonlinearities of the program.
  SmoothFormula(Nonlinearity nonlinearity, std::size_t number)
      : nonlinearity_{std::move(nonlinearity)}, number_{number} {}

  [[nodiscard]] std::size_t auxiliary_count() const override { return 1; }
  [[nodiscard]] bool prepares() const override { return true; }
  [[nodiscard]] double largest_variance(Precision precision) const override {
    return precision == Precision::narrow ? 1e18 : 1e150;
  }
  [[nodiscard]] std::vector<float> prepare(float variance) const override { return {variance}; }
  [[nodiscard]] std::vector<double> prepare(double variance) const override { return {variance}; }
  [[nodiscard]] std::vector<Symbol> prepare(const Symbol& variance) const override { return {variance}; }

  [[nodiscard]] Mapped<float> apply(std::span<const float> left, std::span<const float> right,
                                    float c) const override {
    const auto dual = nonlinearity_->dual(left[0], right[0], c);
    return {static_cast<float>(dual.value), static_cast<float>(dual.derivative)};
  }
  [[nodiscard]] Mapped<double> apply(std::span<const double> left, std::span<const double> right,
                                     double c) const override {
    const auto dual = nonlinearity_->dual(left[0], right[0], c);
    return {dual.value, dual.derivative};
  }
  [[nodiscard]] Mapped<Symbol> apply(std::span<const Symbol> left, std::span<const Symbol> right,
                                     const Symbol& c) const override {
    Statements& in = *c.statements();
    const std::string both =
        in.declare("real2", fmt::format("smooth_dual(smooth + (int)smooth[{}], {}, {}, {})", number_,
                                        left[0].written(in), right[0].written(in), c.written(in)));
    return {Symbol(in, both + ".x"), Symbol(in, both + ".y")};
  }

  [[nodiscard]] numerics::DualSlopes slopes(double p, double q, double c) const override {
    return nonlinearity_->slopes(p, q, c);
  }
  [[nodiscard]] numerics::SelfSlopes self_slopes(double p) const override {
    return nonlinearity_->self_slopes(p);
  }
  [[nodiscard]] numerics::formula::MappedSlopes<Symbol> written_slopes(const Symbol& /*p*/,
                                                                       const Symbol& /*q*/,
                                                                       const Symbol& /*c*/) const override {
    throw std::logic_error("device: tables of a nonlinearity by quadrature have no slopes");
  }

 private:
  Nonlinearity nonlinearity_;
  std::size_t number_;
};

RowFormulaPointer smooth_formula(const Program& program, const Nonlinearity& one) {
  const auto all = smooth_nonlinearities(program);
  return std::make_shared<const SmoothFormula>(
      one, static_cast<std::size_t>(std::find(all.begin(), all.end(), one) - all.begin()));
}

Nonlinearity by_quadrature(const numerics::ActivationPtr& activation) {
  if (const auto* tabulated = dynamic_cast<const numerics::ByQuadrature*>(activation.get()))
    return tabulated->by_quadrature();
  return std::dynamic_pointer_cast<const QuadratureActivation>(activation);
}

Nonlinearity nonlinearity_of(const Operation& operation) {
  if (const RowStage* stage = row_stage_of(operation)) return smooth_nonlinearity(*stage);
  const DualAttentionStage* attention = dual_attention(operation);
  return attention == nullptr ? nullptr : smooth_nonlinearity(*attention);
}

/// The variances of the logits of an input, from those of its positions: one for every piece of the tables between the
/// smallest product above 0 and the largest one.
std::vector<double> logit_variances(const DualAttentionStage::Form& form, std::span<const double> positions) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const double variance : positions) {
    if (!(variance + std::min(form.query_bias, form.key_bias) > 0)) continue;
    const double query = variance + form.query_bias, key = variance + form.key_bias;
    least = std::min({least, query, key});
    most = std::max({most, query, key});
  }
  std::vector<double> variances;
  if (!(most > 0)) return variances;
  const double first = form.query_key_square * least * least, last = form.query_key_square * most * most;
  for (double variance = first; variance < last; variance *= std::exp2(0.25)) variances.push_back(variance);
  variances.push_back(last);
  return variances;
}

/// The variances that a nonlinearity meets within an input.
template <typename Scalar>
std::vector<double> variances_of(const Program& program, const InputState<Scalar>& state, NodeId id) {
  const DualAttentionStage* attention = dual_attention(program.graph.nodes[id].operation);
  if (attention == nullptr) {
    const Scalar* first = state.array(id, 0);
    return {first, first + (state.layout().arrays[id] == 0 ? 0 : state.layout().positions[id])};
  }
  const Scalar* first = state.extra(id);
  const std::vector<double> positions(
      first, first + position_count(node_shapes(program.graph, state.layout().shape)[id]));
  return logit_variances(attention->form(), positions);
}

/// Places in tables are numbers of the type, of which float has all up to this one.
constexpr std::size_t most_numbers = std::size_t{1} << 24;

}  // namespace

Nonlinearity smooth_nonlinearity(const RowStage& stage) {
  const auto* activation = dynamic_cast<const layers::ActivationStage*>(&stage);
  return activation == nullptr ? nullptr : by_quadrature(activation->activation());
}

Nonlinearity smooth_nonlinearity(const DualAttentionStage& stage) { return by_quadrature(stage.weights()); }

std::vector<Nonlinearity> smooth_nonlinearities(const Program& program) {
  std::vector<Nonlinearity> all;
  for (const Node& node : program.graph.nodes) {
    Nonlinearity one = nonlinearity_of(node.operation);
    if (one != nullptr && std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
  }
  return all;
}

RowFormulaPointer device_formula(const Program& program, const RowStage& stage) {
  const Nonlinearity one = smooth_nonlinearity(stage);
  return one == nullptr ? numerics::formula::formula_of(stage) : smooth_formula(program, one);
}

RowFormulaPointer device_formula(const Program& program, const DualAttentionStage& stage) {
  const Nonlinearity one = smooth_nonlinearity(stage);
  return one == nullptr ? stage.dual() : smooth_formula(program, one);
}

std::string smooth_source_of(const Program& program, Precision precision) {
  return smooth_nonlinearities(program).empty() ? "" : smooth_source(precision);
}

SmoothTables::SmoothTables(const Program& program, Precision precision, Kernel kernel)
    : nonlinearities_{smooth_nonlinearities(program)}, is_wide_{precision == Precision::wide} {
  for (const Node& node : program.graph.nodes) {
    const Nonlinearity one = nonlinearity_of(node.operation);
    if (one != nullptr && kernel == Kernel::with_ntk)
      name_layer(node, [&] { one->require_derivative_dual("the NTK"); });
  }
  for (const Nonlinearity& one : nonlinearities_) tables_.emplace_back(*one, precision);
}

template <typename Scalar>
void SmoothTables::require(const Program& program, const InputState<Scalar>& state) {
  if (nonlinearities_.empty()) return;
  const auto& nodes = program.graph.nodes;
  const std::scoped_lock lock(changing_);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const Nonlinearity one = nonlinearity_of(nodes[id].operation);
    if (one == nullptr) continue;
    const auto number =
        std::find(nonlinearities_.begin(), nonlinearities_.end(), one) - nonlinearities_.begin();
    const std::vector<double> variances = variances_of(program, state, id);
    name_layer(nodes[id], [&] {
      if (tables_[static_cast<std::size_t>(number)].require(variances)) ++version_;
    });
  }
}

std::vector<double> SmoothTables::numbers() const {
  std::vector<double> all(tables_.size());
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    all[i] = static_cast<double>(all.size());
    all.insert(all.end(), tables_[i].numbers().begin(), tables_[i].numbers().end());
  }
  if (all.size() > most_numbers)
    throw DeviceError(fmt::format(
        "device: the tables of nonlinearities by quadrature have {} numbers, more than {}; choose the "
        "device cpu",
        all.size(), most_numbers));
  if (all.empty()) all.push_back(0);
  return all;
}

std::shared_ptr<const opencl::Buffer> SmoothTables::buffer(const opencl::Session& session) {
  const std::scoped_lock lock(changing_);
  OnDevice& place = buffers_[&session];
  if (place.version == version_) return place.buffer;
  const std::vector<double> wide = numbers();
  const std::vector<float> narrow =
      is_wide_ ? std::vector<float>() : std::vector<float>(wide.begin(), wide.end());
  const std::size_t bytes = wide.size() * (is_wide_ ? sizeof(double) : sizeof(float));
  auto made = std::make_shared<const opencl::Buffer>(session.buffer(bytes));
  opencl::Queue queue = session.queue();
  queue.write(*made, is_wide_ ? static_cast<const void*>(wide.data()) : narrow.data(), bytes);
  place = {std::move(made), version_};
  return place.buffer;
}

template void SmoothTables::require(const Program&, const InputState<float>&);
template void SmoothTables::require(const Program&, const InputState<double>&);

}  // namespace widelimit
