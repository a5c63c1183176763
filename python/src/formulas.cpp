#include "formulas.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "widelimit/layers/activations.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using namespace numerics::formula;

/// [(name, operation, operands)].
nb::list operations_of(const Statements& statements) {
  nb::list all;
  for (const Operation& operation : statements.operations())
    all.append(nb::make_tuple(operation.name, operation.does, operation.operands));
  return all;
}

nb::object dual_operations(const Layer& layer, bool narrow) {
  const Readable* readable = layers::readable(layer);
  const RowFormulaPointer formula = readable == nullptr ? nullptr : readable->dual_formula();
  if (formula == nullptr) return nb::none();
  Statements statements(narrow ? Precision::narrow : Precision::wide, "v", true);
  const auto left = formula->prepare(Symbol(statements, "p")),
             right = formula->prepare(Symbol(statements, "q"));
  const Mapped<Symbol> mapped = formula->apply(left, right, Symbol(statements, "c"));
  return nb::make_tuple(operations_of(statements), mapped.value.written(statements),
                        mapped.factor.written(statements));
}

nb::object value_operations(const Layer& layer) {
  const Readable* readable = layers::readable(layer);
  Statements statements(Precision::wide, "v", true);
  const auto value = readable == nullptr ? std::nullopt : readable->written_value(Symbol(statements, "x"));
  if (!value) return nb::none();
  return nb::make_tuple(operations_of(statements), value->written(statements));
}

}  // namespace

void bind_formulas(nb::module_& module) {
  module.def(
      "dual_operations", &dual_operations, "layer"_a, "narrow"_a,
      "([(name, operation, operands)], value, factor): E[phi phi] and E[phi' phi'] of variances p and q "
      "and the covariance c, with the constants of float if narrow. None without a closed form.");
  module.def("value_operations", &value_operations, "layer"_a,
             "([(name, operation, operands)], value): phi at x. None for what is no function of a number, or "
             "none that has a formula.");
}

}  // namespace widelimit::python
