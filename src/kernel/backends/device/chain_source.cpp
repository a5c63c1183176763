#include "kernel/backends/device/chain_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

#include "kernel/backends/device/chain_text.hpp"
#include "kernel/backends/device/cl/matrix_source.hpp"
#include "kernel/backends/device/entry_source.hpp"
#include "kernel/backends/device/row_windows.hpp"
#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "kernel/backends/device/source_beginning.hpp"
#include "kernel/plan/primitives.hpp"

namespace widelimit {
namespace {

using numerics::formula::Precision;
using numerics::formula::Statements;

/// Writes the statements of one chain.
class Writer {
 public:
  Writer(const Program& program, const Chain& chain, const PairGeometry& geometry,
         const ChainGeometry& of_chain, const ChainPlaces& places, const StateLayout& left,
         const StateLayout& right, const ChainMemory& memory, const ChainSourceOptions& options)
      : program_{program},
        chain_{chain},
        geometry_{geometry},
        of_run_{of_chain},
        places_{places},
        left_{left},
        right_{right},
        memory_{memory},
        options_{options},
        last_reader_(chain.instructions.size(), 0),
        entries_(program, options.precision, options.kernel, options.records, names()) {
    for (std::size_t i = 0; i < chain.instructions.size(); ++i)
      for (const std::size_t input : chain.instructions[i].inputs) last_reader_[input] = i;
  }

  std::string planes() {
    for (std::size_t i = 0; i < chain_.instructions.size();) i = write_loop(i);
    return std::move(text_);
  }

 private:
  [[nodiscard]] bool with_ntk() const { return options_.kernel == Kernel::with_ntk; }
  [[nodiscard]] const Operation& operation(std::size_t i) const {
    return program_.graph.nodes[chain_.instructions[i].node].operation;
  }
  [[nodiscard]] const Index3& left_size(std::size_t i) const {
    return geometry_.left_sizes[chain_.instructions[i].node];
  }
  [[nodiscard]] const Index3& right_size(std::size_t i) const {
    return geometry_.right_sizes[chain_.instructions[i].node];
  }
  [[nodiscard]] std::string literal(double number) const { return literal_of(number, options_.precision); }

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }

  [[nodiscard]] EntrySource::Names names() const {
    return {.value = [this](std::size_t i, char kernel) { return value(i, kernel); },
            .number =
                [this](EntrySource::Side side, NodeId node, std::size_t k) {
                  const bool left = side == EntrySource::Side::left;
                  return fmt::format(
                      "{}[{}]", left ? "left" : "right",
                      place(left ? left_ : right_, node, std::to_string(k), left ? left_axes : right_axes));
                },
            .same = "same && u == x && v == y && w == z"};
  }

  /// Whether an instruction reads entries around its own in another slot.
  [[nodiscard]] bool moves_windows(std::size_t i) const {
    return !chain_.instructions[i].loads && reads_of(operation(i)) == Reads::windows;
  }

  /// Whether instruction i can be evaluated entry by entry in the loop that instruction `first` began.
  [[nodiscard]] bool joins(std::size_t first, std::size_t i, const std::set<std::size_t>& read_around) const {
    if (moves_windows(i) || multiplies_features(operation(i))) return false;
    // Other lanes may still read this slot around their entries.
    if (read_around.contains(chain_.instructions[i].slot)) return false;
    return left_size(i) == left_size(first) && right_size(i) == right_size(first) &&
           of_run_.maps[i] == of_run_.maps[first];
  }

  /// Writes a loop over the entries of a plane for instruction `first` and those after it that need no other entries.
  std::size_t write_loop(std::size_t first) {
    std::set<std::size_t> read_around;
    if (moves_windows(first))
      read_around.insert(chain_.instructions[chain_.instructions[first].inputs[0]].slot);
    std::size_t end = first + 1;
    while (end < chain_.instructions.size() && joins(first, end, read_around)) ++end;
    const bool finishes = end == chain_.instructions.size() && !options_.records,
               finishes_later = finishes && has_rows() && memory_.target == nullptr;
    line("barrier(CLK_LOCAL_MEM_FENCE);");
    open_loop(first, options_.form.rows);
    in_registers_.clear();
    for (std::size_t i = first; i < end; ++i) write_instruction(i);
    for (std::size_t i = first; i < end; ++i)
      if (last_reader_[i] >= end || (finishes_later && i + 1 == end)) store(i);
    if (finishes && !finishes_later) finish_entry(end - 1);
    text_ += has_rows() ? "}}}}\n" : "}}\n";
    if (finishes_later) write_sums(end - 1);
    return end;
  }

  /// Items have other entries of the root than those that their lanes add up.
  void write_sums(std::size_t root) {
    line("barrier(CLK_LOCAL_MEM_FENCE);");
    open_loop(root, 1);
    in_registers_.clear();
    declare(root, value(root, 'k'), with_ntk() ? value(root, 't') : "0");
    finish_entry(root);
    line("}}}}");
  }

  /// Keeps an entry of the root, or adds it to the sum of its plane.
  void finish_entry(std::size_t root) {
    const KeptPlanes* target = memory_.target;
    for (const char kernel : {'k', 't'}) {
      if (kernel == 't' && !with_ntk()) continue;
      if (target == nullptr)
        add_to_part(kernel, root);
      else
        line("{} = {}{};", kept(*target, kernel, names_of(left_axes), names_of(right_axes)), kernel, root);
    }
  }

  /// Adds an entry to the part of its lane: items take the entries of several lanes in turn.
  void add_to_part(char kernel, std::size_t root) {
    const Index turns = turns_of(options_);
    if (turns == 1) return line("part_{0}0 += {0}{1};", kernel, root);
    for (Index turn = 0; turn < turns; ++turn)
      line("{2}if (n / {3} % {4} == {5}) part_{0}{5} += {0}{1};", kernel, root, turn == 0 ? "" : "else ",
           options_.form.items, turns, turn);
  }

  static KeptPlanes::Names names_of(const std::array<char, 3>& axes) {
    return {std::string(1, axes[0]), std::string(1, axes[1]), std::string(1, axes[2])};
  }
  /// Inputs that meet themselves keep only what leads to variances; what else is evaluated there, nothing reads. Nor
  /// does anything depend on nodes of which no offset is demanded (before local convolutions, between sizes).
  [[nodiscard]] bool is_kept(NodeId node) const {
    if (memory_.kept.nodes.contains(node)) return true;
    if (!options_.records && !geometry_.demanded[node].empty())
      throw std::logic_error("device: a node is read that was not kept");
    return false;
  }
  /// An entry of what is kept.
  [[nodiscard]] std::string kept(const KeptPlanes& planes, char kernel, const KeptPlanes::Names& left,
                                 const KeptPlanes::Names& right) const {
    KeptPlanes::Names displacements;
    for (std::size_t k = 0; k < 3; ++k)
      displacements[k] = planes.displacement(k, fmt::format("{} - {}", right[k], left[k]));
    return fmt::format("numbers[{} + {}]", planes.first + (kernel == 't' ? memory_.kept.size : 0),
                       planes.place(displacements, left));
  }

  [[nodiscard]] bool has_rows() const { return options_.form.rows > 1; }

  /// Offsets, extents and positions of the plane of an instruction, by single entries or by several rows of a column.
  void open_loop(std::size_t i, Index rows) {
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
    if (rows > 1) line("const int blocks = (n1 + {}) / {};", rows - 1, rows);
    line("const int count = {};", product_of_extents(rows > 1 ? "blocks" : "n1"));
    line("for (int n = lane; n < {}; n += {}) {{", options_.form.planes > 1 ? "(works ? count : 0)" : "count",
         options_.form.items);
    if (rows == 1) {
      line("const int z = n % n2{}, rest = n / n2, y = rest % n1{}, x = rest / n1{};", origin(2), origin(1),
           origin(0));
    } else {
      line("const int z = n % n2{}, rest = n / n2, y0 = rest % blocks * {}{}, x = rest / blocks{};",
           origin(2), rows, origin(1), origin(0));
      if (sums_window(i)) write_window_of_rows(i);
      line("for (int row = 0; row < {}; ++row) {{", rows);
      line("const int y = y0 + row;");
      line("if (y < n1{}) {{", origin(1));
    }
    for (std::size_t k = 0; k < 3; ++k) text_ += piece_text(k, right[k]);
    line("const int a = (x * {} + y) * {} + z;", left[1], left[2]);
  }
  [[nodiscard]] std::string piece_text(std::size_t k, Index right) const {
    return fmt::format("const int piece{0} = {1}, {2} = {3} + (piece{0} ? e{0}1 : e{0}0);\n", k,
                       piece(k, right), right_axes[k], left_axes[k]);
  }

  [[nodiscard]] std::string product_of_extents(const char* rows) const {
    std::string some;
    for (std::size_t k = 0; k < 3; ++k)
      if (!places_.whole[k]) some += fmt::format("{}n{} > 0", some.empty() ? "" : " && ", k);
    const std::string all = fmt::format("n0 * {} * n2", rows);
    return some.empty() ? all : fmt::format("{} ? {} : 0", some, all);
  }
  [[nodiscard]] std::string origin(std::size_t k) const {
    return places_.whole[k] ? "" : fmt::format(" + origin{}", k);
  }
  /// Whether the position belongs to the second offset.
  [[nodiscard]] std::string piece(std::size_t k, Index right) const {
    return places_.whole[k] && places_.offsets[k].size() > 1
               ? fmt::format("{} + e{}0 >= {}", left_axes[k], k, right)
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
    line("// {}", in_comment(program_.graph.nodes[chain_.instructions[i].node].path));
    written_for(program_.graph.nodes[chain_.instructions[i].node].path, [&] {
      if (chain_.instructions[i].loads)
        load(i);
      else
        std::visit([&](const auto& of_kind) { write(i, of_kind); }, operation(i));
    });
    in_registers_.insert(i);
  }

  void declare(std::size_t i, const std::string& nngp, const std::string& ntk) {
    line("real k{} = {};", i, nngp);
    if (with_ntk()) line("real t{} = {};", i, ntk);
  }
  void load(std::size_t i) {
    const NodeId node = chain_.instructions[i].node;
    const auto entry = [&](char kernel) -> std::string {
      return is_kept(node)
                 ? kept(memory_.kept.nodes.at(node), kernel, names_of(left_axes), names_of(right_axes))
                 : "0";
    };
    entries_.declare(i, entry('k'), with_ntk() ? entry('t') : "0");
    text_ += entries_.take();
  }

  void store(std::size_t i) {
    line("slot_k{}[a] = k{};", chain_.instructions[i].slot, i);
    if (with_ntk()) line("slot_t{}[a] = t{};", chain_.instructions[i].slot, i);
  }
  /// An instruction at the entry of the loop.
  [[nodiscard]] std::string value(std::size_t source, char kernel) const {
    return in_registers_.contains(source)
               ? fmt::format("{}{}", kernel, source)
               : fmt::format("slot_{}{}[a]", kernel, chain_.instructions[source].slot);
  }

  void write(std::size_t i, const InputNode& /*node*/) {
    const NodeId node = chain_.instructions[i].node;
    const Index channels = left_.arrays[node];
    line("real sum{} = 0;", i);
    line("for (int c = 0; c < {}; ++c)", channels);
    line("sum{0} = fma(left[{1}], right[{2}], sum{0});", i, place(left_, node, "c", left_axes),
         place(right_, node, "c", right_axes));
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
      declare(i, value(chain_.instructions[i].inputs[0], 'k'),
              with_ntk() ? value(chain_.instructions[i].inputs[0], 't') : "0");
    } else {
      const bool is_summed = has_rows() && sums_window(i);
      declare(i, is_summed ? "window_k[row]" : "0", is_summed && with_ntk() ? "window_t[row]" : "0");
      if (affine_kind(node) == AffineKind::circular)
        write_around(i, window, true);
      else if (!is_summed)
        write_window(i, window);
    }
    entries_.write_affine(i, scale, node.bias_variance, node.weights == AffineNode::Weights::trained);
    text_ += entries_.take();
  }

  /// Adds the entries that the window at this entry sees in both inputs.
  void write_window(std::size_t i, const Window3& window) {
    const std::size_t source = chain_.instructions[i].inputs[0], slot = chain_.instructions[source].slot;
    const Index3 &left = left_size(source), &right = right_size(source), front = window.front(left);
    line("{{");
    write_offsets(source, "f");
    for (std::size_t k = 0; k < 3; ++k) text_ += seen_positions(k, window, front[k], left[k], right[k]);
    const auto added = [&](const std::string& place) {
      std::string text = fmt::format("k{} += slot_k{}[{}];\n", i, slot, place);
      if (with_ntk()) text += fmt::format("t{} += slot_t{}[{}];\n", i, slot, place);
      return text;
    };
    text_ += options_.form.unrolled && product(window.size) <= most_unrolled
                 ? written_positions(window.size, left, added)
                 : looped_positions(left, added("b"));
    line("}}");
  }

  /// Whether an instruction sums entries of a slot.
  [[nodiscard]] bool sums_window(std::size_t i) const {
    if (!moves_windows(i)) return false;
    const auto* node = std::get_if<AffineNode>(&operation(i));
    return node != nullptr && affine_kind(*node) != AffineKind::single_position &&
           affine_kind(*node) != AffineKind::circular;
  }
  /// The sums of the windows at all rows of an item, in the order of write_window().
  void write_window_of_rows(std::size_t i) {
    const std::size_t source = chain_.instructions[i].inputs[0];
    const Window3 window(std::get<AffineNode>(operation(i)).window);
    const Index3 &left = left_size(source), &right = right_size(source), front = window.front(left);
    const auto seen = [&](std::size_t k) {
      return piece_text(k, right_size(i)[k]) + seen_positions(k, window, front[k], left[k], right[k]);
    };
    write_offsets(source, "f");
    text_ += windows_of_rows({.rows = options_.form.rows,
                              .window = window.size,
                              .front = front[1],
                              .source = left,
                              .slot = chain_.instructions[source].slot,
                              .with_ntk = with_ntk(),
                              .unrolled = options_.form.unrolled,
                              .across = seen(0) + seen(2),
                              .along = seen(1),
                              .has_row = "y < n1" + origin(1)});
  }

  /// The same from what is kept, for windows that go around the border, or see nothing beyond it.
  void write_around(std::size_t i, const Window3& window, bool wraps) {
    const NodeId source = program_.graph.nodes[chain_.instructions[i].node].inputs[0];
    if (!is_kept(source)) return;
    const Index3 &left = geometry_.left_sizes[source], &right = geometry_.right_sizes[source];
    const Index3 left_front = window.front(left), right_front = window.front(right);
    for (std::size_t k = 0; k < 3; ++k) line("for (int i{0} = 0; i{0} < {1}; ++i{0}) {{", k, window.size[k]);
    for (std::size_t k = 0; k < 3; ++k) {
      const auto position = [&](char name, char axis, Index front, Index size) {
        const std::string place = fmt::format("{} * {} + i{} - {}", window.stride[k], axis, k, front);
        if (wraps) return line("const int {}{} = around({}, {});", name, k, place, size);
        line("const int {}{} = {};", name, k, place);
        line("if ({0}{1} < {2} || {0}{1} >= {3}) continue;", name, k, window.begin[k],
             window.end[k] < 0 ? size : std::min(window.end[k], size));
      };
      position('a', left_axes[k], left_front[k], left[k]);
      position('b', right_axes[k], right_front[k], right[k]);
    }
    const KeptPlanes& planes = memory_.kept.nodes.at(source);
    for (const char kernel : {'k', 't'})
      if (kernel == 'k' || with_ntk())
        line("{}{} += {};", kernel, i, kept(planes, kernel, {"a0", "a1", "a2"}, {"b0", "b1", "b2"}));
    line("}}}}}}");
  }

  /// Entries of other positions than equal ones are 0, whatever the bias.
  void write(std::size_t i, const LocalAffineNode& node) {
    const Window3 window(node.affine.window);
    declare(i, "0", "0");
    line("if (u == x && v == y && w == z) {{");
    write_around(i, window, affine_kind(node.affine) == AffineKind::circular);
    entries_.write_affine(i, node.affine.weight_variance / static_cast<double>(product(window.size)),
                          node.affine.bias_variance, node.affine.weights == AffineNode::Weights::trained);
    if (node.stage) entries_.write_affine_stage(i, *node.stage);
    text_ += entries_.take();
    line("}}");
  }

  /// What acts entry by entry; chains have nothing else.
  template <typename Other>
  void write(std::size_t i, const Other& /*node*/) {
    static_cast<void>(entries_.write(i, chain_.instructions[i], operation(i)));
    text_ += entries_.take();
  }

  const Program& program_;
  const Chain& chain_;
  const PairGeometry& geometry_;
  const ChainGeometry& of_run_;
  const ChainPlaces& places_;
  const StateLayout& left_;
  const StateLayout& right_;
  const ChainMemory& memory_;
  const ChainSourceOptions& options_;
  std::vector<std::size_t> last_reader_;  ///< [instruction]
  std::set<std::size_t> in_registers_;    ///< Instructions of the loop that is being written.
  EntrySource entries_;
  std::string text_;
};

}  // namespace

ChainSource::ChainSource(const Program& program, const Chain& chain, const PairGeometry& geometry,
                         const ChainGeometry& of_chain, const ChainPlaces& places, const StateLayout& left,
                         const StateLayout& right, const ChainMemory& memory,
                         const ChainSourceOptions& options) {
  const bool with_ntk = options.kernel == Kernel::with_ntk;
  const Index items = options.form.items, beside = options.form.planes;
  const Index most = largest_plane(chain, geometry), turns = turns_of(options);
  local_bytes_ = static_cast<std::size_t>(beside) * chain_plane_bytes(chain, geometry, options);
  text_ += source_beginning(options.precision);
  text_ += around_function;
  text_ += smooth_source_of(program, options.precision);
  text_ += run_kernel_head(options, items * beside);
  text_ +=
      beside == 1
          ? "const int lane = (int)get_local_id(0);\n"
          : fmt::format("const int lane = (int)get_local_id(0) % {0}, beside = (int)get_local_id(0) / {0};\n",
                        items);
  text_ += local_planes(chain.slot_count, most, beside, with_ntk);
  text_ += beside == 1 ? "const ulong group = get_group_id(0);\n"
                       : fmt::format("const ulong group = get_group_id(0) * {} + beside;\n", beside);
  Writer writer(program, chain, geometry, of_chain, places, left, right, memory, options);
  const char* states = options.records ? "global real*" : "global const real*";
  text_ += fmt::format(
      "const ulong pair = first_pair + group / shares;\n"
      "{0} left = lefts + pairs[3 * pair];\n{0} right = rights + pairs[3 * pair + 1];\n"
      "const int same = pairs[3 * pair + 2] != 0;\n"
      "global real* numbers = kept + group / shares * {1};\n",
      states, (with_ntk ? 2 : 1) * memory.kept.size);
  text_ += sums_of_turns(turns);
  text_ += loop_of_share(places.planes(), beside);
  const auto size = [&](std::size_t k) { return places.offsets[k].size(); };
  text_ += fmt::format("const int d2 = plane % {0}, d1 = plane / {0} % {1}, d0 = plane / {2};\n", size(2),
                       size(1), size(1) * size(2));
  std::size_t begin = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    text_ += fmt::format(
        "const int o{0}0 = offsets[2 * ({1} + d{0})], o{0}1 = offsets[2 * ({1} + d{0}) + 1];\n", k, begin);
    begin += size(k);
  }
  text_ += parts_of_turns(turns);
  text_ += writer.planes();
  text_ += added_parts(turns, with_ntk);
  text_ += "}\n";
  if (!options.records && memory.target == nullptr) text_ += sums_of_shares(options);
  text_ += "}\n";
}

}  // namespace widelimit
