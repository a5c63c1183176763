#include "kernel/backends/device/entry_source.hpp"

#include <limits>
#include <stdexcept>

#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "network/linear_stages.hpp"
#include "numerics/determinant.hpp"

namespace widelimit {

using numerics::formula::Mapped;
using numerics::formula::Precision;
using numerics::formula::RowFormula;
using numerics::formula::Statements;
using numerics::formula::Symbol;

namespace {

/// Whether multiples keep their factor through a stage whose first auxiliary number is the variance, as through ReLU:
/// such a stage has an infinite slope at correlation 1.
bool keeps_factors(const RowStage& stage, const RowFormula& formula) {
  constexpr double any = 3;
  return stage.multiples() == Multiples::kept && formula.prepares() && formula.auxiliary_count() > 0 &&
         formula.prepare(any).front() == any;
}

}  // namespace

bool has_source(const RowStage& stage) {
  return dynamic_cast<const AffineEntryStage*>(&stage) != nullptr ||
         numerics::formula::formula_of(stage) != nullptr || smooth_nonlinearity(stage) != nullptr;
}

bool prepares_entries(const RowStage& stage) {
  const auto formula = numerics::formula::formula_of(stage);
  return formula == nullptr || formula->prepares();
}

void EntrySource::declare(std::size_t i, const std::string& nngp, const std::string& ntk) {
  line("real k{} = {};", i, nngp);
  if (with_ntk()) line("real t{} = {};", i, ntk);
}

void EntrySource::write_affine(std::size_t i, double scale, double bias, bool trained) {
  line("k{0} = fma({1}, k{0}, {2});", i, literal(scale), literal(bias));
  if (!with_ntk()) return;
  if (trained)
    line("t{0} = fma({1}, t{0}, k{0});", i, literal(scale));
  else
    line("t{0} = {1} * t{0};", i, literal(scale));
}

bool EntrySource::write(std::size_t i, const Instruction& instruction, const Operation& operation,
                        bool keeps_multiples) {
  if (const RowStage* stage = row_stage_of(operation))
    return write_row(i, instruction, *stage, keeps_multiples);
  if (const auto* sum = std::get_if<SumNode>(&operation))
    write_sum(i, instruction, sum->factors);
  else if (const auto* product = std::get_if<ProductNode>(&operation))
    write_product(i, instruction, product->factor);
  else
    throw std::logic_error("device: an operation that has no source");
  return false;
}

bool EntrySource::write_row(std::size_t i, const Instruction& instruction, const RowStage& stage,
                            bool keeps_multiples) {
  if (const auto* affine = dynamic_cast<const AffineEntryStage*>(&stage)) {
    const auto [weight, bias, in_ntk, ntk_bias] = affine->entries();
    const std::string nngp = names_.value(instruction.inputs[0], 'k');
    declare(i, fmt::format("fma({}, {}, {})", literal(weight), nngp, literal(bias)),
            with_ntk() ? fmt::format("fma({}, {}, fma({}, {}, {}))", literal(weight),
                                     names_.value(instruction.inputs[0], 't'), literal(in_ntk), nngp,
                                     literal(ntk_bias))
                       : "0");
    return false;
  }
  const auto formula = device_formula(program_, stage);
  if (formula == nullptr) throw std::logic_error("device: a stage without formula");
  const std::size_t input = instruction.inputs[0];
  declare(i, names_.value(input, 'k'), with_ntk() ? names_.value(input, 't') : "0");
  const bool apart =
      keeps_multiples && !records_ && !names_.multiples.empty() && keeps_factors(stage, *formula);
  if (apart) write_multiples(i, instruction, *formula);
  line("{{");
  Statements statements(precision_, fmt::format("v{}_", i));
  const bool records = records_ && formula->prepares();
  const Numbers left = records ? recorded(statements, i, *formula)
                               : numbers(statements, Side::left, instruction.node, *formula),
                right = records ? left : numbers(statements, Side::right, instruction.node, *formula);
  const Mapped<Symbol> mapped = formula->apply(left, right, Symbol(statements, fmt::format("k{}", i)));
  text_ += statements.text();
  if (records)
    for (std::size_t k = 0; k < left.size(); ++k)
      line("{} = {};", names_.number(Side::left, instruction.node, k), left[k].written(statements));
  write_mapped(i, statements, mapped);
  line("}}");
  if (formula->self_factor() == 1) return apart;
  line("if ({}) {{", records_ ? "1" : names_.same);
  line("k{0} = {1} * k{0};", i, literal(formula->self_factor()));
  if (with_ntk()) line("t{0} = {1} * t{0};", i, literal(formula->self_factor()));
  line("}}");
  return apart;
}

void EntrySource::write_affine_stage(std::size_t i, const RowStage& stage) {
  const auto [weight, bias, in_ntk, ntk_bias] = dynamic_cast<const AffineEntryStage&>(stage).entries();
  if (with_ntk())
    line("t{0} = fma({1}, t{0}, fma({2}, k{0}, {3}));", i, literal(weight), literal(in_ntk),
         literal(ntk_bias));
  line("k{0} = fma({1}, k{0}, {2});", i, literal(weight), literal(bias));
}

EntrySource::Numbers EntrySource::numbers(Statements& in, Side side, NodeId node,
                                          const RowFormula& formula) const {
  Numbers all;
  for (std::size_t k = 0; k < formula.auxiliary_count(); ++k)
    all.emplace_back(in, in.declare("real", names_.number(side, node, k)));
  return all;
}

EntrySource::Numbers EntrySource::recorded(Statements& in, std::size_t i, const RowFormula& formula) const {
  Numbers all = formula.prepare(Symbol(in, fmt::format("k{}", i)));
  // Formulas do arithmetic on what has a name, also where it is the same for all variances.
  for (Symbol& number : all)
    if (number.statements() == nullptr) number = Symbol(in, in.declare("real", number.written(in)));
  return all;
}

void EntrySource::write_mapped(std::size_t i, const Statements& in, const Mapped<Symbol>& mapped) {
  line("k{} = {};", i, mapped.value.written(in));
  if (with_ntk()) line("t{0} = {1} * t{0};", i, mapped.factor.written(in));
}

/// Multiples are the left input with itself, or its opposite, times the ratio of their deviations: the angle between
/// them is exactly 0, of which roundings would make their root. A layer before may have turned opposites into others.
/// An else is left open.
void EntrySource::write_multiples(std::size_t i, const Instruction& instruction, const RowFormula& formula) {
  const double epsilon = precision_ == Precision::narrow
                             ? static_cast<double>(std::numeric_limits<float>::epsilon())
                             : std::numeric_limits<double>::epsilon();
  Statements statements(precision_, fmt::format("m{}_", i));
  const Numbers left = numbers(statements, Side::left, instruction.node, formula);
  const std::string p = left[0].written(statements), q = names_.number(Side::right, instruction.node, 0);
  line("if ({} && k{} != 0 && fabs(k{}) >= {} * (sqrt({}) * sqrt({}))) {{", names_.multiples, i, i,
       literal(1 - numerics::perfect_tolerance * epsilon), names_.number(Side::left, instruction.node, 0), q);
  const Symbol covariance(statements, statements.declare("real", fmt::format("copysign({}, k{})", p, i)));
  const Mapped<Symbol> mapped = formula.apply(left, left, covariance);
  text_ += statements.text();
  write_mapped(i, statements, mapped);
  line("k{0} = sqrt({1} / {2}) * k{0};", i, q, p);
  line("}} else");
}

void EntrySource::write_sum(std::size_t i, const Instruction& instruction,
                            const std::vector<double>& factors) {
  const auto sum = [&](char kernel) {
    std::string terms =
        fmt::format("{} * {}", literal(factors[0]), names_.value(instruction.inputs[0], kernel));
    for (std::size_t k = 1; k < factors.size(); ++k)
      terms = fmt::format("fma({}, {}, {})", literal(factors[k]), names_.value(instruction.inputs[k], kernel),
                          terms);
    return terms;
  };
  declare(i, sum('k'), with_ntk() ? sum('t') : "0");
}

void EntrySource::write_product(std::size_t i, const Instruction& instruction, double factor) {
  declare(i, literal(factor), "0");
  for (const std::size_t input : instruction.inputs) {
    // The NTK needs K before it is multiplied.
    if (with_ntk())
      line("t{0} = fma(t{0}, {1}, k{0} * {2});", i, names_.value(input, 'k'), names_.value(input, 't'));
    line("k{0} = k{0} * {1};", i, names_.value(input, 'k'));
  }
}

}  // namespace widelimit
