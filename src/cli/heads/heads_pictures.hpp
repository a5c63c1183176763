#pragma once

#include <string>
#include <string_view>

#include "cli/heads/heads_experiment.hpp"

namespace widelimit::cli {

/// The first lines of a script whose key stands beside the plot.
inline constexpr const char* heads_canvas =
    "set terminal pngcairo enhanced size 1000,650\nset grid\nset key outside\nset autoscale xfix\n"
    "set offsets graph 0.02, graph 0.02\n";

/// The last lines of a script that has nothing to draw: empty axes that say why.
[[nodiscard]] std::string empty_axes(std::string_view why);

/// Whether there is a picture of an experiment.
[[nodiscard]] bool has_heads_picture(std::string_view experiment);

/// gnuplot script of the picture of an experiment's table: one colour a quantity, theory as a line, samples as points.
[[nodiscard]] std::string heads_script(std::string_view experiment, const ResultTable& table);

}  // namespace widelimit::cli
