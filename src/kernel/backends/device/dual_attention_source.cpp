#include "kernel/backends/device/dual_attention_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

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

constexpr const char* dual_places = R"(
  const int d = offsets[1], e = offsets[2], count = offsets[8];
  global const real *v = numbers + offsets[3], *k = numbers + offsets[4];
  global real* tables = numbers + offsets[5];
  global const real *p = left + offsets[6], *q = right + offsets[7];
  global const int* planes = offsets + 9;
)";

constexpr const char* dual_functions = R"(
// An entry from its four sums.
inline void write_entry(const real* sums, real query, real query_ntk, global real* to, ulong size) {
  const real s = FACTOR * sums[0];
  *to = s + BIAS;
#if KERNELS == 2
  const real logits = fma(fma(2, query, query_ntk), sums[2], query * sums[3]);
  to[size] = fma(2, s, BIAS) + FACTOR * fma(SQUARE, logits, sums[1]);
#endif
}

// 1 less the size of the correlation of two numbers, which does not cancel next to 1. Without a variance it is 0.
inline real distance_of(real p, real q, real c, real* correlation) {
  *correlation = 0;
  if (!(p > 0 && q > 0)) return 1;
  const real square = c * c, determinant = fma(p, q, -square) - fma(c, c, -square);
  *correlation = copysign((real)1, c);
  if (!(determinant > 0)) return 0;
  *correlation = clamp(c / (sqrt(p) * sqrt(q)), (real)-1, (real)1);
  return fmin(determinant / (p * q) / (1 + fabs(*correlation)), (real)1);
}
)";

constexpr const char* dual_intervals = R"(
// The number of 1 itself is INTERVALS.
inline int interval_of(real distance) {
  return distance < SMALLEST ? INTERVALS : max(0, -1 - ilogb(distance));
}
)";

constexpr const char* dual_variances = R"(
  global const int* planes = offsets + 3;
  global real* state = lefts + pairs[3 * pair] + offsets[2];
  for (int a = share * GROUP + lane; a < offsets[1]; a += (int)shares * GROUP)
    state[a] = fma(WEIGHT, numbers[place_in(planes, a, a)], ENCODINGS ? table[a] : 0);
}
)";

constexpr const char* dual_mark = R"(
  for (int n = share * GROUP + lane; n < count; n += (int)shares * GROUP) {
    int a, b;
    if (!positions_at(planes, n, &a, &b)) continue;
    real correlation;
    const real distance =
        distance_of(p[a] + QUERY_BIAS, q[b] + QUERY_BIAS, k[a * e + b] + QUERY_BIAS, &correlation);
    // All items write the same number.
    tables[interval_of(distance)] = 1;
  }
}
)";

constexpr const char* dual_nodes = R"(
  local real parts[2 * SUMS * GROUP];
  for (int item = share; item < ITEMS; item += (int)shares) {
    // The last item has the sums of V K~, T_V K~ and V T~.
    const int of_products = item == ITEMS - 1;
#if INTERPOLATES
    const int interval = item / NODES, wanted = of_products || tables[interval] != 0;
    const real x = interval < INTERVALS
                       ? 1 - ldexp(fma((real)0.25, node_place[item % NODES], (real)0.75), -interval)
                       : 1;
#else
    const int wanted = 1;
#endif
    real sum[SUMS], low[SUMS];
    for (int m = 0; m < SUMS; ++m) sum[m] = low[m] = 0;
    const int entries = wanted ? d * e : 0;
    for (int n = lane; n < entries; n += GROUP) {
      const real key = k[n] + KEY_BIAS;
      real value = key, slope = 1;
#if INTERPOLATES
      if (!of_products) dual(p[n / e] + KEY_BIAS, q[n % e] + KEY_BIAS, x * key, &value, &slope);
#endif
      add(&sum[0], &low[0], v[n] * value);
#if KERNELS == 2
      add(&sum[1], &low[1], v[size + n] * value);
      add(&sum[2], &low[2], v[n] * key * slope);
      add(&sum[3], &low[3], v[n] * k[size + n] * slope);
#endif
    }
    for (int m = 0; m < SUMS; ++m) {
      parts[2 * m * GROUP + lane] = sum[m];
      parts[(2 * m + 1) * GROUP + lane] = low[m];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < SUMS) {
      real total = 0, rest = 0;
      for (int n = 0; n < GROUP; ++n) {
        add(&total, &rest, parts[2 * lane * GROUP + n]);
        rest += parts[(2 * lane + 1) * GROUP + n];
      }
      tables[MARKS + item * 4 + lane] = total + rest;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
)";

constexpr const char* dual_entries = R"(
  global const real* products = tables + MARKS + 4 * (ITEMS - 1);
  for (int n = share * GROUP + lane; n < count; n += (int)shares * GROUP) {
    int a, b;
    if (!positions_at(planes, n, &a, &b)) continue;
    const real query = k[a * e + b] + QUERY_BIAS;
    real sums[4] = {0, 0, 0, 0};
#if INTERPOLATES
    const real variance = p[a] + QUERY_BIAS, right_variance = q[b] + QUERY_BIAS;
    real correlation;
    const real distance = distance_of(variance, right_variance, query, &correlation), x = fabs(correlation);
    const int interval = interval_of(distance);
    global const real* nodes = tables + MARKS + 4 * (interval * NODES);
    if (interval == INTERVALS) {
      for (int m = 0; m < SUMS; ++m) sums[m] = nodes[m];
    } else {
      // Lagrange's polynomials.
      const real t = 4 * (ldexp(distance, interval) - (real)0.75);
      real weight[NODES], before = 1, after = 1;
      for (int i = 0; i < NODES; ++i) {
        weight[i] = before * node_factor[i];
        before *= t - node_place[i];
      }
      for (int i = NODES - 1; i >= 0; --i) {
        weight[i] *= after;
        after *= t - node_place[i];
      }
      for (int i = 0; i < NODES; ++i)
        for (int m = 0; m < SUMS; ++m) sums[m] = fma(weight[i], nodes[4 * i + m], sums[m]);
    }
    if (correlation < 0) {
      sums[0] -= x * (MIRROR * products[0]);
#if KERNELS == 2
      sums[1] -= x * (MIRROR * products[1]);
      for (int m = 2; m < 4; ++m) sums[m] = fma(MIRROR, products[m], -sums[m]);
#endif
    }
    const real scale = SQUARE * (sqrt(variance) * sqrt(right_variance));
#else
    for (int m = 0; m < SUMS; ++m) sums[m] = products[m];
    const real scale = SQUARE * query;
#endif
    sums[0] *= scale;
    sums[1] *= scale;
    write_entry(sums, query, KERNELS == 2 ? k[size + a * e + b] : 0, numbers + planes[12] + n, size);
  }
}
)";

constexpr const char* dual_sums = R"(
  const int seen = offsets[22];
  global const real* turns = table + (SEES ? 0 : seen * seen);
  for (int n = share * GROUP + lane; n < count; n += (int)shares * GROUP) {
    int a, b;
    if (!positions_at(planes, n, &a, &b)) continue;
    const real query = k[a * e + b] + QUERY_BIAS;
    real of_left = 1, of_right = 1, of_pair = SQUARE * query, scale = 1;
#if HOMOGENEOUS
    // Deviations of a and b are a factor: variances of logits are products, whose squares may be out of range.
    const real variance = p[a] + QUERY_BIAS, right_variance = q[b] + QUERY_BIAS;
    distance_of(variance, right_variance, query, &of_pair);
    scale = SQUARE * (sqrt(variance) * sqrt(right_variance));
#elif !IDENTITY
    of_left = SQUARE * (p[a] + QUERY_BIAS);
    of_right = SQUARE * (q[b] + QUERY_BIAS);
#endif
    real sums[4] = {0, 0, 0, 0}, low[4] = {0, 0, 0, 0};
    for (int i = 0; i < d; ++i) {
      if (!SEES && table[a * seen + i] == 0) continue;
      real part[4] = {0, 0, 0, 0};
      for (int j = 0; j < e; ++j) {
        if (!SEES && table[b * seen + j] == 0) continue;
        const int at = i * e + j;
        const real turn = TURNS ? turns[abs((i - a) - (j - b))] : 1, key = k[at] + KEY_BIAS;
        real value = of_pair * (turn * key), slope = 1;
#if !IDENTITY
        dual(of_left * (p[i] + KEY_BIAS), of_right * (q[j] + KEY_BIAS), value, &value, &slope);
#endif
        part[0] = fma(v[at], value, part[0]);
#if KERNELS == 2
        part[1] = fma(v[size + at], value, part[1]);
        part[2] = fma(v[at] * key, turn * slope, part[2]);
        part[3] = fma(v[at] * k[size + at], turn * slope, part[3]);
#endif
      }
      for (int m = 0; m < SUMS; ++m) add(&sums[m], &low[m], part[m]);
    }
    for (int m = 0; m < SUMS; ++m) sums[m] += low[m];
    sums[0] *= scale;
    sums[1] *= scale;
    write_entry(sums, query, KERNELS == 2 ? k[size + a * e + b] : 0, numbers + planes[12] + n, size);
  }
}
)";

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
