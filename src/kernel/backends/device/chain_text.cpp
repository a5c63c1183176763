#include "kernel/backends/device/chain_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace widelimit {

using numerics::formula::Precision;

Index turns_of(const ChainSourceOptions& options) { return options.group / options.form.items; }

Index largest_plane(const Chain& chain, const PairGeometry& geometry) {
  Index most = 0;
  for (const Instruction& instruction : chain.instructions)
    most = std::max(most, product(geometry.left_sizes[instruction.node]));
  return most;
}

std::string run_kernel_head(const ChainSourceOptions& options) {
  return run_kernel_head(options, options.group);
}

std::string run_kernel_head(const ChainSourceOptions& options, Index items) {
  const char* states = options.records ? "global real*" : "global const real* restrict";
  return fmt::format(
      "__attribute__((reqd_work_group_size({0}, 1, 1)))\n"
      "kernel void run({1} lefts, {1} rights, global const ulong* pairs, global const int* offsets,\n"
      "                ulong first_pair, ulong shares, global real* sums, global real* kept,\n"
      "                global const real* table, global const real* smooth) {{\n",
      items, states);
}

namespace {

/// Adds the totals of all lanes up; item 0 of a share leaves them. There: [sums, their errors, of both kernels][lane].
std::string added_lanes(Index lanes) {
  return fmt::format(R"(barrier(CLK_LOCAL_MEM_FENCE);
if (lane == 0) {{
  for (int n = 1; n < {0}; ++n) {{
    add(&sum_k, &low_k, totals[n]);
    low_k += totals[{0} + n];
    add(&sum_t, &low_t, totals[{1} + n]);
    low_t += totals[{2} + n];
  }}
  sums[4 * group] = sum_k;
  sums[4 * group + 1] = low_k;
  sums[4 * group + 2] = sum_t;
  sums[4 * group + 3] = low_t;
}}
)",
                     lanes, 2 * lanes, 3 * lanes);
}

}  // namespace

std::string sums_of_group(Index group) {
  return fmt::format(R"(local real totals[{0}];
totals[lane] = sum_k;
totals[{1} + lane] = low_k;
totals[{2} + lane] = sum_t;
totals[{3} + lane] = low_t;
)",
                     4 * group, group, 2 * group, 3 * group) +
         added_lanes(group);
}

std::size_t chain_plane_bytes(const Chain& chain, const PairGeometry& geometry,
                              const ChainSourceOptions& options) {
  const Index numbers = static_cast<Index>(chain.slot_count) * largest_plane(chain, geometry) *
                            (options.kernel == Kernel::with_ntk ? 2 : 1) +
                        4 * options.group;
  return static_cast<std::size_t>(numbers) *
         (options.precision == Precision::wide ? sizeof(double) : sizeof(float));
}

std::string in_comment(const std::string& path) {
  std::string text = path.substr(0, 60);
  for (char& letter : text)
    if (letter < ' ' || letter > '~' || letter == '\\' || letter == '?') letter = '_';
  return text;
}

std::string local_planes(std::size_t slots, Index entries, Index beside, bool with_ntk) {
  std::string text;
  for (std::size_t slot = 0; slot < slots; ++slot)
    for (const char kernel : {'k', 't'}) {
      if (kernel == 't' && !with_ntk) continue;
      text += beside == 1
                  ? fmt::format("local real slot_{}{}[{}];\n", kernel, slot, entries)
                  : fmt::format(
                        "local real all_{0}{1}[{2}];\nlocal real* slot_{0}{1} = all_{0}{1} + {3} * beside;\n",
                        kernel, slot, entries * beside, entries);
    }
  return text;
}

std::string loop_of_share(Index planes, Index beside) {
  // Barriers must be reached by all items of a group: shares without a plane left go through the last one without
  // work.
  return beside > 1
             ? fmt::format(
                   "for (int first = 0; first < {0}; first += (int)shares) {{\n"
                   "const int wanted = first + (int)(group % shares), works = wanted < {0}, plane = works ? "
                   "wanted : {1};\n",
                   planes, planes - 1)
             : fmt::format("for (int plane = (int)(group % shares); plane < {}; plane += (int)shares) {{\n",
                           planes);
}

std::string sums_of_turns(Index turns) {
  std::string text;
  for (Index turn = 0; turn < turns; ++turn)
    text += fmt::format("real sum_k{0} = 0, low_k{0} = 0, sum_t{0} = 0, low_t{0} = 0;\n", turn);
  return text;
}

std::string parts_of_turns(Index turns) {
  std::string text;
  for (Index turn = 0; turn < turns; ++turn)
    text += fmt::format("real part_k{0} = 0, part_t{0} = 0;\n", turn);
  return text;
}

std::string added_parts(Index turns, bool with_ntk) {
  std::string text;
  for (Index turn = 0; turn < turns; ++turn) {
    text += fmt::format("add(&sum_k{0}, &low_k{0}, part_k{0});\n", turn);
    if (with_ntk) text += fmt::format("add(&sum_t{0}, &low_t{0}, part_t{0});\n", turn);
  }
  return text;
}

std::string sums_of_shares(const ChainSourceOptions& options) {
  const Index lanes = options.group;
  std::string text =
      options.form.planes == 1
          ? fmt::format("local real totals[{}];\n", 4 * lanes)
          : fmt::format("local real all_totals[{}];\nlocal real* totals = all_totals + {} * beside;\n",
                        4 * lanes * options.form.planes, 4 * lanes);
  for (Index turn = 0; turn < turns_of(options); ++turn)
    text += fmt::format(
        "totals[lane + {0}] = sum_k{4};\ntotals[{1} + lane + {0}] = low_k{4};\n"
        "totals[{2} + lane + {0}] = sum_t{4};\ntotals[{3} + lane + {0}] = low_t{4};\n",
        turn * options.form.items, lanes, 2 * lanes, 3 * lanes, turn);
  text += "real sum_k = sum_k0, low_k = low_k0, sum_t = sum_t0, low_t = low_t0;\n";
  return text + added_lanes(lanes);
}

std::string seen_positions(std::size_t axis, const Window3& window, Index front, Index left, Index right) {
  const auto end = [&](Index size) { return window.end[axis] < 0 ? size : std::min(window.end[axis], size); };
  return fmt::format(
      "const int f{0} = piece{0} ? f{0}1 : f{0}0, at{0} = {1} * {2} - {3};\n"
      "const int from{0} = max(max({4}, {4} - f{0}), at{0}), to{0} = min(min({5}, {6} - f{0}), at{0} + "
      "{7});\n",
      axis, window.stride[axis], left_axes[axis], front, window.begin[axis], end(left), end(right),
      window.size[axis]);
}

std::string looped_positions(const Index3& size, const std::string& added) {
  return fmt::format(
      "for (int i = from0; i < to0; ++i)\nfor (int j = from1; j < to1; ++j)\n"
      "for (int m = from2; m < to2; ++m) {{\nconst int b = (i * {} + j) * {} + m;\n{}}}\n",
      size[1], size[2], added);
}

std::string written_positions(const Index3& window, const Index3& size,
                              const std::function<std::string(const std::string&)>& added) {
  std::string text = fmt::format("const int b = (at0 * {} + at1) * {} + at2;\n", size[1], size[2]);
  for (std::size_t k = 0; k < 3; ++k)
    for (Index n = 0; n < window[k]; ++n)
      text += fmt::format("const int sees{0}_{1} = at{0} + {1} >= from{0} && at{0} + {1} < to{0};\n", k, n);
  for (Index i = 0; i < window[0]; ++i)
    for (Index j = 0; j < window[1]; ++j)
      for (Index m = 0; m < window[2]; ++m)
        text += fmt::format("if (sees0_{} && sees1_{} && sees2_{}) {{\n{}}}\n", i, j, m,
                            added(fmt::format("b + {}", (i * size[1] + j) * size[2] + m)));
  return text;
}

}  // namespace widelimit
