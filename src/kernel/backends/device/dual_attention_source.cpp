#include "kernel/backends/device/dual_attention_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernel/backends/device/cl/dual_attention_source.hpp"
#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "kernel/backends/device/source_beginning.hpp"

namespace widelimit {
namespace {

using numerics::formula::Precision;
using numerics::formula::RowFormula;
using numerics::formula::Statements;
using numerics::formula::Symbol;

/// Intervals 1 - 2^-k <= x <= 1 - 2^-(k+1) of correlations below 1 that a precision tells apart, and nodes in each:
/// those that the CPU takes for results of that precision, with two more in float, whose arithmetic is not in double
/// here.
Index dual_interval_count(Precision precision) { return precision == Precision::wide ? 53 : 24; }
Index dual_node_count(Precision precision) { return precision == Precision::wide ? 10 : 8; }

std::vector<Symbol> prepared_logits(Statements& in, const RowFormula& formula, const char* variance) {
  std::vector<Symbol> all = formula.prepare(Symbol(in, variance));
  // Formulas do arithmetic on what has a name, also where it is the same for all variances.
  for (Symbol& number : all)
    if (number.statements() == nullptr) number = Symbol(in, in.declare("real", number.written(in)));
  return all;
}

std::string listed(const std::vector<double>& numbers, Precision precision) {
  std::string text;
  for (const double number : numbers) text += (text.empty() ? "" : ", ") + literal_of(number, precision);
  return text;
}

}  // namespace

DualAttentionSource::DualAttentionSource(const Program& program, const DualAttentionStage& stage,
                                         const DualAttentionPlaces& places, const ChainSourceOptions& options,
                                         Index kept_size)
    : program_{program},
      stage_{stage},
      form_{stage.form()},
      places_{places},
      options_{options},
      size_{kept_size} {}

bool DualAttentionSource::has_tables(const DualAttentionStage::Form& form) {
  return form.is_homogeneous && form.sees_everything && !form.turns;
}

bool DualAttentionSource::interpolates(const DualAttentionStage::Form& form) {
  return has_tables(form) && !form.is_identity;
}

Index DualAttentionSource::mark_count(const DualAttentionStage::Form& form, Precision precision) {
  return interpolates(form) ? dual_interval_count(precision) + 1 : 0;
}

Index DualAttentionSource::table_size(const DualAttentionStage::Form& form, Precision precision) {
  if (!has_tables(form)) return 0;
  const Index nodes =
      interpolates(form) ? dual_interval_count(precision) * dual_node_count(precision) + 1 : 0;
  return mark_count(form, precision) + 4 * (nodes + 1);
}

std::string DualAttentionSource::literal(double number) const {
  return literal_of(number, options_.precision);
}

std::string DualAttentionSource::beginning() const {
  const bool two = options_.kernel == Kernel::with_ntk;
  const Index marks = mark_count(form_, options_.precision);
  std::string text = MatrixSource(options_, size_).beginning();
  text += fmt::format(
      "#define SUMS {}\n#define IDENTITY {}\n#define HOMOGENEOUS {}\n#define INTERPOLATES {}\n"
      "#define MARKS {}\n#define ITEMS {}\n#define SEES {}\n#define TURNS {}\n",
      two ? 4 : 1, form_.is_identity ? 1 : 0, form_.is_homogeneous && !form_.is_identity ? 1 : 0,
      interpolates(form_) ? 1 : 0, marks, (table_size(form_, options_.precision) - marks) / 4,
      form_.sees_everything ? 1 : 0, form_.turns ? 1 : 0);
  text += fmt::format(
      "#define FACTOR {}\n#define BIAS {}\n#define SQUARE {}\n#define QUERY_BIAS {}\n#define KEY_BIAS {}\n"
      "#define MIRROR {}\n",
      literal(form_.factor), literal(form_.bias), literal(form_.query_key_square), literal(form_.query_bias),
      literal(form_.key_bias), literal(form_.mirror));
  return text + smooth_source_of(program_, options_.precision) + dual_functions +
         (interpolates(form_) ? node_tables() : "");
}

/// Chebyshev's nodes in [-1, 1], and what Lagrange's polynomials are divided by.
std::string DualAttentionSource::node_tables() const {
  const Index count = dual_node_count(options_.precision),
              intervals = dual_interval_count(options_.precision);
  std::vector<double> places, factors;
  for (Index i = 0; i < count; ++i)
    places.push_back(
        std::cos(std::numbers::pi * static_cast<double>(2 * i + 1) / static_cast<double>(2 * count)));
  for (const double place : places) {
    double product = 1;
    for (const double other : places)
      if (other != place) product *= place - other;
    factors.push_back(1 / product);
  }
  return fmt::format(
      "#define INTERVALS {}\n#define NODES {}\n#define SMALLEST {}\n"
      "constant real node_place[] = {{{}}};\nconstant real node_factor[] = {{{}}};\n{}",
      intervals, count, literal(std::exp2(-static_cast<double>(intervals))),
      listed(places, options_.precision), listed(factors, options_.precision), dual_intervals);
}

std::string DualAttentionSource::dual_function() const {
  if (form_.is_identity) return "";
  const auto formula = device_formula(program_, stage_);
  Statements in(options_.precision, "v");
  const std::vector<Symbol> left = prepared_logits(in, *formula, "p"),
                            right = prepared_logits(in, *formula, "q");
  const auto mapped = formula->apply(left, right, Symbol(in, "c"));
  const std::string text = fmt::format("{}*value = {};\n*slope = {};\n", in.text(), mapped.value.written(in),
                                       mapped.factor.written(in));
  // E[phi phi] and E[phi' phi'] for the variances p and q and the covariance c.
  return "inline void dual_of(real p, real q, real c, global const real* smooth, real* value, real* slope) "
         "{\n" +
         text + "}\n#define dual(p, q, c, value, slope) dual_of(p, q, c, smooth, value, slope)\n";
}

MatrixKernel DualAttentionSource::kernel(const char* body, const KeptPlanes* planes, Index items) const {
  MatrixKernel kernel{
      .source = beginning() + dual_function() + MatrixSource(options_, size_).head() + dual_places + body,
      .numbers = {},
      .items = items};
  for (const Index number : {size_, places_.d, places_.e, places_.values, places_.keys, places_.tables,
                             places_.left_state, places_.right_state, planes == nullptr ? 0 : planes->size()})
    kernel.numbers.push_back(static_cast<int>(number));
  if (planes != nullptr) append_numbers(*planes, kernel.numbers);
  return kernel;
}

MatrixKernel DualAttentionSource::variances(const KeptPlanes& from) const {
  ChainSourceOptions records = options_;
  records.records = true;
  const MatrixSource matrix(records, size_);
  MatrixKernel kernel{
      .source = matrix.beginning() + fmt::format("#define WEIGHT {}\n#define ENCODINGS {}\n",
                                                 literal(form_.input_weight), form_.has_encodings ? 1 : 0),
      .numbers = {},
      .items = places_.d};
  kernel.source += matrix.head() + dual_variances;
  for (const Index number : {size_, places_.d, places_.left_state})
    kernel.numbers.push_back(static_cast<int>(number));
  append_numbers(from, kernel.numbers);
  return kernel;
}

MatrixKernel DualAttentionSource::mark(const KeptPlanes& to) const {
  return kernel(dual_mark, &to, to.size());
}

MatrixKernel DualAttentionSource::nodes() const {
  return kernel(dual_nodes, nullptr,
                (table_size(form_, options_.precision) - mark_count(form_, options_.precision)) / 4);
}

MatrixKernel DualAttentionSource::entries(const KeptPlanes& to) const {
  return kernel(dual_entries, &to, to.size());
}

MatrixKernel DualAttentionSource::sums(const KeptPlanes& to) const {
  MatrixKernel made = kernel(dual_sums, &to, to.size());
  made.numbers.push_back(static_cast<int>(std::max(places_.d, places_.e)));
  return made;
}

std::vector<double> DualAttentionSource::sums_table() const {
  const Index count = std::max(places_.d, places_.e);
  std::vector<double> table;
  if (!form_.sees_everything)
    for (Index a = 0; a < count; ++a)
      for (Index c = 0; c < count; ++c) table.push_back(stage_.sees_position(a, c) ? 1 : 0);
  if (!form_.turns) return table;
  const std::vector<double> turns = stage_.turns(2 * count);
  table.insert(table.end(), turns.begin(), turns.end());
  return table;
}

}  // namespace widelimit
