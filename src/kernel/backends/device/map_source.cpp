#include "kernel/backends/device/map_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernel/backends/device/cl/matrix_source.hpp"
#include "kernel/backends/device/source_beginning.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

/// The windows of a pooling along one axis; padding counts in the divisor.
SparseAxis window_axis(const Window3& window, std::size_t k, Index input, Index output, Index front,
                       PoolKind kind) {
  SparseAxis axis{.columns = input};
  const double weight = kind == PoolKind::average ? 1 / static_cast<double>(window.size[k]) : 1;
  for (Index a = 0; a < output; ++a) {
    const Index first = window.stride[k] * a - front;
    for (Index b = std::max<Index>(first, 0); b < std::min(first + window.size[k], input); ++b) {
      axis.column.push_back(b);
      axis.weight.push_back(weight);
    }
    axis.begin.push_back(axis.column.size());
  }
  return axis;
}

PositionMap::Side pool_side(const PoolNode& pool, const Index3& input, const Index3& output) {
  const Window3 window(pool.window);
  const Index3 front = window.front(input);
  PositionMap::Side side{.axes = {}, .input = input, .output = output};
  side.windows = {window.size, front};
  for (std::size_t k = 0; k < 3; ++k)
    side.axes[k] = window_axis(window, k, input[k], output[k], front[k], pool.kind);
  return side;
}

/// The entries of row a of a matrix, as macros: numbers from BEGIN<k>(a) to END<k>(a), each with a column and a weight.
class MatrixText {
 public:
  MatrixText(const PositionMap::Side& side, const Index3& stride,
             const numerics::formula::Statements& numbers)
      : numbers_{numbers} {
    for (std::size_t k = 0; k < 3; ++k)
      if (side.windows)
        write_windows(k, side, stride[k]);
      else
        write_tables(k, side.axes[k]);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void write_windows(std::size_t k, const PositionMap::Side& side, Index stride) {
    const Index size = side.windows->size[k], front = side.windows->front[k];
    // Windows of which nothing is left have no entries, and no weight.
    const double weight = side.axes[k].weight.empty() ? 0 : side.axes[k].weight.front();
    text_ += fmt::format(
        "#define BEGIN{0}(a) max(0, {1} * (a) - ({2}))\n#define END{0}(a) min({3}, {1} * (a) - ({2}) + {4})\n"
        "#define COLUMN{0}(i) (i)\n#define WEIGHT{0}(i) {5}\n",
        k, stride, front, side.input[k], size, numbers_.literal(weight));
  }
  void write_tables(std::size_t k, const SparseAxis& axis) {
    const auto table = [&](const char* type, const char* name, const auto& values, const auto& written) {
      text_ += fmt::format("constant {} {}{}[] = {{", type, name, k);
      for (const auto& value : values) text_ += written(value) + ", ";
      // A table of nothing is not possible.
      text_ += values.empty() ? "0};\n" : "};\n";
    };
    table("int", "begin", axis.begin, [](std::size_t value) { return std::to_string(value); });
    table("int", "column", axis.column, [](Index value) { return std::to_string(value); });
    table("real", "weight", axis.weight, [&](double value) { return numbers_.literal(value); });
    text_ += fmt::format(
        "#define BEGIN{0}(a) begin{0}[a]\n#define END{0}(a) begin{0}[(a) + 1]\n#define COLUMN{0}(i) "
        "column{0}[i]\n"
        "#define WEIGHT{0}(i) weight{0}[i]\n",
        k);
  }

  const numerics::formula::Statements& numbers_;
  std::string text_;
};

/// Devices have at least so many bytes for tables.
constexpr std::size_t most_table_bytes = 60'000;

std::size_t table_bytes(const PositionMap::Side& side) {
  std::size_t bytes = 0;
  for (const SparseAxis& axis : side.axes)
    bytes += sizeof(int) * (axis.begin.size() + axis.column.size()) + sizeof(double) * axis.weight.size();
  return side.windows ? 0 : bytes;
}

constexpr std::array<const char*, 3> axes{"x", "y", "z"};

KeptPlanes::Names named(const char* name) {
  return {fmt::format("{}0", name), fmt::format("{}1", name), fmt::format("{}2", name)};
}

/// Writes the kernel of one side.
class MapWriter {
 public:
  MapWriter(const PositionMap& map, Index kernel_size, const ChainSourceOptions& options)
      : map_{map}, kernel_size_{kernel_size}, options_{options} {}

  /// Over the left positions a that are summed at an output position, between right positions b and all outputs.
  std::string left(const KeptPlanes& before, const KeptPlanes& between) {
    begin(map_.left, between);
    for (std::size_t k = 0; k < 3; ++k) {
      write_right_position(between, k, fmt::format("{} * {}", map_.stride[k], axes[k]), "b");
    }
    open_sums(before, {"x", "y", "z"});
    for (std::size_t k = 0; k < 3; ++k) {
      line("const int a{0} = COLUMN{0}(i{0});", k);
      write_displacement(before, k, fmt::format("b{0} - a{0}", k));
    }
    close_sums(before.place(named("d"), named("a")));
    return std::move(text_);
  }

  /// Over the right positions b that are summed at a right output position.
  std::string right(const KeptPlanes& between, const KeptPlanes& after) {
    begin(map_.right, after);
    for (std::size_t k = 0; k < 3; ++k) write_right_position(after, k, axes[k], "b");
    open_sums(between, named("b"));
    for (std::size_t k = 0; k < 3; ++k)
      write_displacement(between, k, fmt::format("COLUMN{0}(i{0}) - {1} * {2}", k, map_.stride[k], axes[k]));
    close_sums(between.place(named("d"), {"x", "y", "z"}));
    return std::move(text_);
  }

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  [[nodiscard]] int kernels() const { return options_.kernel == Kernel::with_ntk ? 2 : 1; }

  void begin(const PositionMap::Side& side, const KeptPlanes& to) {
    text_ = source_beginning(options_.precision) + around_function;
    text_ += MatrixText(side, map_.stride, numerics::formula::Statements(options_.precision, "")).text();
    text_ += run_kernel_head(options_);
    line("const ulong group = get_group_id(0);");
    line("global real* numbers = kept + group / shares * {};", kernels() * kernel_size_);
    line("const int items = (int)shares * {0}, first = (int)(group % shares) * {0} + (int)get_local_id(0);",
         options_.group);
    line("for (int n = first; n < {}; n += items) {{", to.size());
    line("int rest = n;");
    // The last axis of the left position is the fastest.
    const auto split = [&](const std::string& name, Index size) {
      line("const int {} = rest % {};", name, size);
      line("rest /= {};", size);
    };
    for (std::size_t k = 3; k-- > 0;) split(axes[k], to.left[k]);
    for (std::size_t k = 3; k-- > 0;) split(fmt::format("e{}", k), to.count[k]);
    to_ = &to;
  }

  /// The right position at displacement e<k> from `from`.
  void write_right_position(const KeptPlanes& at, std::size_t k, const std::string& from, const char* name) {
    if (at.wraps(k)) {
      line("const int {0}{1} = around({2} + e{1}, {3});", name, k, from, at.right[k]);
    } else {
      line("const int {0}{1} = {2} + e{1} + ({3});", name, k, from, at.low[k]);
      line("if ({0}{1} < 0 || {0}{1} >= {2}) continue;", name, k, at.right[k]);
    }
  }

  void open_sums(const KeptPlanes& from, const KeptPlanes::Names& outputs) {
    from_ = &from;
    for (int kernel = 0; kernel < kernels(); ++kernel) line("real sum{0} = 0, low{0} = 0;", kernel);
    for (std::size_t k = 0; k < 3; ++k)
      line("for (int i{0} = BEGIN{0}({1}); i{0} < END{0}({1}); ++i{0}) {{", k, outputs[k]);
  }
  void write_displacement(const KeptPlanes& at, std::size_t k, const std::string& difference) {
    line("const int d{} = {};", k, at.displacement(k, difference));
    // What is not kept is not needed.
    if (!at.wraps(k)) line("if (d{0} < 0 || d{0} >= {1}) continue;", k, at.count[k]);
  }
  void close_sums(const std::string& place) {
    line("const real factor = WEIGHT0(i0) * WEIGHT1(i1) * WEIGHT2(i2);");
    line("const int place = {};", place);
    for (int kernel = 0; kernel < kernels(); ++kernel)
      line("add(&sum{0}, &low{0}, factor * numbers[{1} + place]);", kernel,
           kernel * kernel_size_ + from_->first);
    line("}}}}}}");
    for (int kernel = 0; kernel < kernels(); ++kernel)
      line("numbers[{1} + n] = sum{0} + low{0};", kernel, kernel * kernel_size_ + to_->first);
    line("}}}}");
  }

  const PositionMap& map_;
  Index kernel_size_;
  const ChainSourceOptions& options_;
  const KeptPlanes *from_ = nullptr, *to_ = nullptr;
  std::string text_;
};

}  // namespace

const PositionMatrices* position_matrices(const Operation& operation) {
  return dynamic_cast<const PositionMatrices*>(pair_stage_of(operation));
}

PositionMap position_map(const Program& program, NodeId node, const PairGeometry& geometry) {
  const Operation& operation = program.graph.nodes[node].operation;
  const NodeId input = program.graph.nodes[node].inputs[0];
  const Index3 &left_in = geometry.left_sizes[input], &right_in = geometry.right_sizes[input],
               &left_out = geometry.left_sizes[node], &right_out = geometry.right_sizes[node];
  if (const auto* pool = std::get_if<PoolNode>(&operation))
    return {pool_side(*pool, left_in, left_out), pool_side(*pool, right_in, right_out),
            Window3(pool->window).stride};
  const PositionMatrices& stage = *position_matrices(operation);
  PositionMap map{{stage.matrices(geometry.shapes.left[input]), left_in, left_out},
                  {stage.matrices(geometry.shapes.right[input]), right_in, right_out}};
  for (const PositionMap::Side* side : {&map.left, &map.right})
    if (table_bytes(*side) > most_table_bytes)
      throw DeviceError(
          fmt::format("device: {} has a map whose tables take {} bytes, more than {}; choose the device cpu",
                      program.graph.nodes[node].path, table_bytes(*side), most_table_bytes));
  for (const PositionMap::Side* side : {&map.left, &map.right})
    for (std::size_t k = 0; k < 3; ++k)
      if (side->axes[k].columns != side->input[k] || side->axes[k].rows() != side->output[k])
        throw DeviceError(fmt::format("device: {} has a map that exchanges axes; choose the device cpu",
                                      program.graph.nodes[node].path));
  for (std::size_t k = 0; k < 3; ++k) map.stride[k] = std::max<Index>(left_in[k] / left_out[k], 1);
  return map;
}

/// Between both, left positions are outputs and right ones inputs: b is as far from stride * a as the windows of all
/// outputs that are kept after the map say.
KeptPlanes planes_between(const PositionMap& map, const KeptPlanes& after) {
  constexpr Index far = std::numeric_limits<Index>::max() / 4;
  Index3 least{far, far, far}, most{-far, -far, -far};
  for (std::size_t k = 0; k < 3; ++k) {
    const SparseAxis& right = map.right.axes[k];
    for (Index a = 0; a < map.left.output[k]; ++a)
      for (Index b = 0; b < map.right.output[k]; ++b) {
        const Index offset = b - a - after.low[k];
        if (!after.wraps(k) && (offset < 0 || offset >= after.count[k])) continue;
        for (std::size_t i = right.begin[static_cast<std::size_t>(b)];
             i < right.begin[static_cast<std::size_t>(b) + 1]; ++i) {
          least[k] = std::min(least[k], right.column[i] - map.stride[k] * a);
          most[k] = std::max(most[k], right.column[i] - map.stride[k] * a);
        }
      }
    if (least[k] > most[k]) least[k] = most[k] = 0;
  }
  return {map.left.output, map.right.input, least, most};
}

MapSources map_sources(const PositionMap& map, const KeptPlanes& before, const KeptPlanes& between,
                       const KeptPlanes& after, Index kernel_size, const ChainSourceOptions& options) {
  MapWriter writer(map, kernel_size, options);
  return {writer.left(before, between), writer.right(between, after), between.size(), after.size()};
}

}  // namespace widelimit
