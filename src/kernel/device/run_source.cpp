#include "kernel/device/run_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

#include "kernel/plan/affine_kind.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit {
namespace {

using numerics::formula::Mapped;
using numerics::formula::Precision;
using numerics::formula::RowFormula;
using numerics::formula::Statements;
using numerics::formula::Symbol;

constexpr std::array<char, 3> left_axis{'x', 'y', 'z'}, right_axis{'u', 'v', 'w'};

/// A path as a comment has it: names of users may end a line, or continue it.
std::string in_comment(const std::string& path) {
  std::string text = path.substr(0, 60);
  for (char& letter : text)
    if (letter < ' ' || letter > '~' || letter == '\\' || letter == '?') letter = '_';
  return text;
}

/// Writes the statements of one run.
class Writer {
 public:
  Writer(const Program& program, const Run& run, const PairGeometry& geometry, const RunGeometry& of_run,
         const RunPlaces& places, const StateLayout& left, const StateLayout& right,
         const RunSourceOptions& options)
      : program_{program},
        run_{run},
        geometry_{geometry},
        of_run_{of_run},
        places_{places},
        left_{left},
        right_{right},
        options_{options},
        last_reader_(run.instructions.size(), 0) {
    for (std::size_t i = 0; i < run.instructions.size(); ++i)
      for (const std::size_t input : run.instructions[i].inputs) last_reader_[input] = i;
  }

  std::string planes() {
    for (std::size_t i = 0; i < run_.instructions.size();) i = write_loop(i);
    return std::move(text_);
  }

 private:
  [[nodiscard]] bool with_ntk() const { return options_.kernel == Kernel::with_ntk; }
  [[nodiscard]] const Operation& operation(std::size_t i) const {
    return program_.graph.nodes[run_.instructions[i].node].operation;
  }
  [[nodiscard]] const Index3& left_size(std::size_t i) const {
    return geometry_.left_sizes[run_.instructions[i].node];
  }
  [[nodiscard]] const Index3& right_size(std::size_t i) const {
    return geometry_.right_sizes[run_.instructions[i].node];
  }
  [[nodiscard]] std::string literal(double number) const {
    return Statements(options_.precision, "").literal(number);
  }

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }

  [[nodiscard]] bool moves_windows(std::size_t i) const {
    const auto* affine = std::get_if<AffineNode>(&operation(i));
    return affine != nullptr && affine_kind(*affine) != AffineKind::single_position;
  }

  /// Whether instruction i can be evaluated entry by entry in the loop that instruction `first` began.
  [[nodiscard]] bool joins(std::size_t first, std::size_t i, const std::set<std::size_t>& read_around) const {
    if (moves_windows(i) || std::holds_alternative<InputNode>(operation(i))) return false;
    // Other lanes may still read this slot around their entries.
    if (read_around.contains(run_.instructions[i].slot)) return false;
    return left_size(i) == left_size(first) && right_size(i) == right_size(first) &&
           of_run_.maps[i] == of_run_.maps[first];
  }

  /// Writes a loop over the entries of a plane for instruction `first` and those after it that need no other entries.
  std::size_t write_loop(std::size_t first) {
    std::set<std::size_t> read_around;
    if (moves_windows(first)) read_around.insert(run_.instructions[run_.instructions[first].inputs[0]].slot);
    std::size_t end = first + 1;
    while (end < run_.instructions.size() && joins(first, end, read_around)) ++end;
    line("barrier(CLK_LOCAL_MEM_FENCE);");
    open_loop(first);
    in_registers_.clear();
    for (std::size_t i = first; i < end; ++i) write_instruction(i);
    for (std::size_t i = first; i < end; ++i)
      if (last_reader_[i] >= end) store(i);
    if (end == run_.instructions.size() && !options_.records) {
      line("part_k += k{};", end - 1);
      if (with_ntk()) line("part_t += t{};", end - 1);
    }
    line("}}}}");
    return end;
  }

  /// Offsets, extents and positions of the plane of an instruction.
  void open_loop(std::size_t i) {
    line("{{");
    write_offsets(i, "e");
    const Index3 &left = left_size(i), &right = right_size(i);
    for (std::size_t k = 0; k < 3; ++k) {
      if (places_.whole[k]) {
        line("const int n{} = {};", k, left[k]);
      } else {
        line("const int origin{0} = max(0, -e{0}0), n{0} = min({1}, {2} - e{0}0) - origin{0};", k, left[k],
             right[k]);
      }
    }
    line("const int count = {};", product_of_extents());
    line("for (int n = lane; n < count; n += {}) {{", options_.group);
    line("const int z = n % n2{}, rest = n / n2, y = rest % n1{}, x = rest / n1{};", origin(2), origin(1),
         origin(0));
    for (std::size_t k = 0; k < 3; ++k)
      line("const int piece{0} = {1}, {2} = {3} + (piece{0} ? e{0}1 : e{0}0);", k, piece(k, right[k]),
           right_axis[k], left_axis[k]);
    line("const int a = (x * {} + y) * {} + z;", left[1], left[2]);
  }

  [[nodiscard]] std::string product_of_extents() const {
    const bool all = places_.whole[0] && places_.whole[1] && places_.whole[2];
    return all ? "n0 * n1 * n2" : "n0 > 0 && n1 > 0 && n2 > 0 ? n0 * n1 * n2 : 0";
  }
  [[nodiscard]] std::string origin(std::size_t k) const {
    return places_.whole[k] ? "" : fmt::format(" + origin{}", k);
  }
  /// Whether the position belongs to the second offset.
  [[nodiscard]] std::string piece(std::size_t k, Index right) const {
    return places_.whole[k] && places_.offsets[k].size() > 1
               ? fmt::format("{} + e{}0 >= {}", left_axis[k], k, right)
               : "0";
  }

  /// The offsets of an instruction along every axis, of both pieces.
  void write_offsets(std::size_t i, const char* name) {
    const OffsetMap& map = of_run_.maps[i];
    for (std::size_t k = 0; k < 3; ++k)
      for (int j = 0; j < 2; ++j)
        line("const int {0}{1}{2} = {3} * o{1}{2} + {4};", name, k, j, map.stride[k], map.shift[k]);
  }

  void write_instruction(std::size_t i) {
    line("// {}", in_comment(program_.graph.nodes[run_.instructions[i].node].path));
    std::visit([&](const auto& of_kind) { write(i, of_kind); }, operation(i));
    in_registers_.insert(i);
  }

  void declare(std::size_t i, const std::string& nngp, const std::string& ntk) {
    line("real k{} = {};", i, nngp);
    if (with_ntk()) line("real t{} = {};", i, ntk);
  }
  void store(std::size_t i) {
    line("slot_k{}[a] = k{};", run_.instructions[i].slot, i);
    if (with_ntk()) line("slot_t{}[a] = t{};", run_.instructions[i].slot, i);
  }
  /// An input of an instruction at its own entry.
  [[nodiscard]] std::string value(std::size_t i, std::size_t input, char kernel) const {
    const std::size_t source = run_.instructions[i].inputs[input];
    return in_registers_.contains(source)
               ? fmt::format("{}{}", kernel, source)
               : fmt::format("slot_{}{}[a]", kernel, run_.instructions[source].slot);
  }

  void write(std::size_t i, const InputNode& /*node*/) {
    const NodeId node = run_.instructions[i].node;
    const Index channels = left_.arrays[node];
    line("real sum{} = 0;", i);
    line("for (int c = 0; c < {}; ++c)", channels);
    line("sum{0} = fma(left[{1}], right[{2}], sum{0});", i, place(left_, node, "c", left_axis),
         place(right_, node, "c", right_axis));
    declare(i, fmt::format("sum{} * {}", i, literal(1 / static_cast<double>(channels))), "0");
  }

  /// Where an auxiliary array of a node has the number of the entry's position.
  [[nodiscard]] static std::string place(const StateLayout& state, NodeId node, const std::string& array,
                                         const std::array<char, 3>& axis) {
    const PlaneLayout& layout = state.planes[node];
    return fmt::format("{} + {} * {} + {} * {} + {} * {} + {}", state.offset[node], state.positions[node],
                       array, layout.stride[0], axis[0], layout.stride[1], axis[1], axis[2]);
  }

  void write(std::size_t i, const AffineNode& node) {
    const Window3 window(node.window);
    const double scale = node.weight_variance / static_cast<double>(product(window.size));
    if (affine_kind(node) == AffineKind::single_position) {
      declare(i, value(i, 0, 'k'), with_ntk() ? value(i, 0, 't') : "0");
    } else {
      declare(i, "0", "0");
      write_window(i, window);
    }
    line("k{0} = fma({1}, k{0}, {2});", i, literal(scale), literal(node.bias_variance));
    if (!with_ntk()) return;
    if (node.weights == AffineNode::Weights::none)
      line("t{0} = {1} * t{0};", i, literal(scale));
    else
      line("t{0} = fma({1}, t{0}, k{0});", i, literal(scale));
  }

  /// Adds the entries that the window at this entry sees in both inputs.
  void write_window(std::size_t i, const Window3& window) {
    const std::size_t source = run_.instructions[i].inputs[0];
    const Index3 &left = left_size(source), &right = right_size(source);
    const Index3 front = window.front(left);
    line("{{");
    write_offsets(source, "f");
    for (std::size_t k = 0; k < 3; ++k) {
      const auto end = [&](Index size) { return window.end[k] < 0 ? size : std::min(window.end[k], size); };
      line("const int f{0} = piece{0} ? f{0}1 : f{0}0, at{0} = {1} * {2} - {3};", k, window.stride[k],
           left_axis[k], front[k]);
      line(
          "const int from{0} = max(max({1}, {1} - f{0}), at{0}), to{0} = min(min({2}, {3} - f{0}), at{0} + "
          "{4});",
          k, window.begin[k], end(left[k]), end(right[k]), window.size[k]);
    }
    line("for (int i = from0; i < to0; ++i)");
    line("for (int j = from1; j < to1; ++j)");
    line("for (int m = from2; m < to2; ++m) {{");
    line("const int b = (i * {} + j) * {} + m;", left[1], left[2]);
    const std::size_t slot = run_.instructions[source].slot;
    line("k{} += slot_k{}[b];", i, slot);
    if (with_ntk()) line("t{} += slot_t{}[b];", i, slot);
    line("}}}}");
  }

  void write(std::size_t i, const RowNode& node) {
    const NodeId id = run_.instructions[i].node;
    const auto formula = numerics::formula::formula_of(*node.stage);
    if (formula == nullptr) throw std::logic_error("device: a stage without formula");
    declare(i, value(i, 0, 'k'), with_ntk() ? value(i, 0, 't') : "0");
    line("{{");
    Statements statements(options_.precision, fmt::format("v{}_", i));
    const auto numbers = [&](const char* side, const StateLayout& state, const std::array<char, 3>& axis) {
      std::vector<Symbol> all;
      for (std::size_t k = 0; k < formula->auxiliary_count(); ++k) {
        const std::string at = fmt::format("{}[{}]", side, place(state, id, std::to_string(k), axis));
        all.emplace_back(statements, statements.declare("real", at));
      }
      return all;
    };
    const Symbol covariance(statements, fmt::format("k{}", i));
    std::vector<Symbol> left, right;
    if (options_.records && formula->prepares()) {
      left = formula->prepare(covariance);
      // Formulas do arithmetic on what has a name, also where it is the same for all variances.
      for (Symbol& number : left)
        if (number.statements() == nullptr)
          number = Symbol(statements, statements.declare("real", number.written(statements)));
      right = left;
    } else {
      left = numbers("left", left_, left_axis);
      right = numbers("right", right_, right_axis);
    }
    const Mapped<Symbol> mapped = formula->apply(left, right, covariance);
    text_ += statements.text();
    if (options_.records && formula->prepares())
      for (std::size_t k = 0; k < left.size(); ++k)
        line("left[{}] = {};", place(left_, id, std::to_string(k), left_axis), left[k].written(statements));
    line("k{} = {};", i, mapped.value.written(statements));
    if (with_ntk()) line("t{0} = {1} * t{0};", i, mapped.factor.written(statements));
    write_self_factor(i, *formula);
    line("}}");
  }

  void write_self_factor(std::size_t i, const RowFormula& formula) {
    if (formula.self_factor() == 1) return;
    line("if ({}) {{", options_.records ? "1" : "same && u == x && v == y && w == z");
    line("k{0} = {1} * k{0};", i, literal(formula.self_factor()));
    if (with_ntk()) line("t{0} = {1} * t{0};", i, literal(formula.self_factor()));
    line("}}");
  }

  void write(std::size_t i, const SumNode& node) {
    const auto sum = [&](char kernel) {
      std::string terms = fmt::format("{} * {}", literal(node.factors[0]), value(i, 0, kernel));
      for (std::size_t k = 1; k < node.factors.size(); ++k)
        terms = fmt::format("fma({}, {}, {})", literal(node.factors[k]), value(i, k, kernel), terms);
      return terms;
    };
    declare(i, sum('k'), with_ntk() ? sum('t') : "0");
  }

  void write(std::size_t i, const ProductNode& node) {
    declare(i, literal(node.factor), "0");
    for (std::size_t k = 0; k < run_.instructions[i].inputs.size(); ++k) {
      // The NTK needs K before it is multiplied.
      if (with_ntk()) line("t{0} = fma(t{0}, {1}, k{0} * {2});", i, value(i, k, 'k'), value(i, k, 't'));
      line("k{0} = k{0} * {1};", i, value(i, k, 'k'));
    }
  }

  template <typename Other>
  void write(std::size_t /*i*/, const Other& /*node*/) {
    throw std::logic_error("device: an operation that no run on a device has");
  }

  const Program& program_;
  const Run& run_;
  const PairGeometry& geometry_;
  const RunGeometry& of_run_;
  const RunPlaces& places_;
  const StateLayout& left_;
  const StateLayout& right_;
  const RunSourceOptions& options_;
  std::vector<std::size_t> last_reader_;  ///< [instruction]
  std::set<std::size_t> in_registers_;    ///< Instructions of the loop that is being written.
  std::string text_;
};

constexpr const char* group_sums = R"(
// Adds a plane's sum to the sum of all before, and what rounding loses of it.
inline void add(real* sum, real* low, real part) {
  const real both = *sum + part, added = both - *sum;
  *low += (*sum - (both - added)) + (part - added);
  *sum = both;
}
)";

}  // namespace

Index largest_plane(const Run& run, const PairGeometry& geometry) {
  Index most = 0;
  for (const Instruction& instruction : run.instructions)
    most = std::max(most, product(geometry.left_sizes[instruction.node]));
  return most;
}

RunSource::RunSource(const Program& program, const Run& run, const PairGeometry& geometry,
                     const RunGeometry& of_run, const RunPlaces& places, const StateLayout& left,
                     const StateLayout& right, const RunSourceOptions& options) {
  const bool wide = options.precision == Precision::wide, with_ntk = options.kernel == Kernel::with_ntk;
  const Index most = largest_plane(run, geometry);
  const std::size_t number = wide ? sizeof(double) : sizeof(float);
  local_bytes_ = run.slot_count * static_cast<std::size_t>(most) * (with_ntk ? 2 : 1) * number +
                 static_cast<std::size_t>(4 * options.group) * number;
  if (wide) text_ += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
  text_ += "#pragma OPENCL FP_CONTRACT OFF\n";
  text_ += fmt::format("typedef {} real;\n", wide ? "double" : "float");
  text_ += group_sums;
  text_ += fmt::format("__attribute__((reqd_work_group_size({}, 1, 1)))\n", options.group);
  if (options.records)
    text_ += "kernel void run(global real* states, global const ulong* places) {\n";
  else
    text_ +=
        "kernel void run(global const real* restrict lefts, global const real* restrict rights,\n"
        "                global const ulong* pairs, global const int* offsets, ulong first_pair, ulong "
        "shares,\n"
        "                global real* sums) {\n";
  for (std::size_t slot = 0; slot < run.slot_count; ++slot) {
    text_ += fmt::format("local real slot_k{}[{}];\n", slot, most);
    if (with_ntk) text_ += fmt::format("local real slot_t{}[{}];\n", slot, most);
  }
  text_ += "const int lane = (int)get_local_id(0);\nconst ulong group = get_group_id(0);\n";
  Writer writer(program, run, geometry, of_run, places, left, right, options);
  if (options.records) {
    text_ += "global real* left = states + places[group];\nglobal const real* right = left;\n";
    for (int k = 0; k < 3; ++k) text_ += fmt::format("const int o{0}0 = 0, o{0}1 = 0;\n", k);
    text_ += writer.planes() + "}\n";
    return;
  }
  text_ +=
      "const ulong pair = first_pair + group / shares;\n"
      "global const real* left = lefts + pairs[3 * pair];\n"
      "global const real* right = rights + pairs[3 * pair + 1];\n"
      "const int same = pairs[3 * pair + 2] != 0;\n"
      "real sum_k = 0, low_k = 0, sum_t = 0, low_t = 0;\n";
  text_ += fmt::format("for (int plane = (int)(group % shares); plane < {}; plane += (int)shares) {{\n",
                       places.planes());
  const auto size = [&](std::size_t k) { return places.offsets[k].size(); };
  text_ += fmt::format("const int d2 = plane % {0}, d1 = plane / {0} % {1}, d0 = plane / {2};\n", size(2),
                       size(1), size(1) * size(2));
  std::size_t begin = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    text_ += fmt::format(
        "const int o{0}0 = offsets[2 * ({1} + d{0})], o{0}1 = offsets[2 * ({1} + d{0}) + 1];\n", k, begin);
    begin += size(k);
  }
  text_ += "real part_k = 0, part_t = 0;\n";
  text_ += writer.planes();
  text_ += "add(&sum_k, &low_k, part_k);\n";
  if (with_ntk) text_ += "add(&sum_t, &low_t, part_t);\n";
  text_ += "}\n";
  text_ += fmt::format(R"(local real totals[{0}];
totals[lane] = sum_k;
totals[{1} + lane] = low_k;
totals[{2} + lane] = sum_t;
totals[{3} + lane] = low_t;
barrier(CLK_LOCAL_MEM_FENCE);
if (lane == 0) {{
  for (int n = 1; n < {1}; ++n) {{
    add(&sum_k, &low_k, totals[n]);
    low_k += totals[{1} + n];
    add(&sum_t, &low_t, totals[{2} + n]);
    low_t += totals[{3} + n];
  }}
  sums[4 * group] = sum_k;
  sums[4 * group + 1] = low_k;
  sums[4 * group + 2] = sum_t;
  sums[4 * group + 3] = low_t;
}}
}}
)",
                       4 * options.group, options.group, 2 * options.group, 3 * options.group);
}

}  // namespace widelimit
