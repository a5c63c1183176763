#pragma once

#include <string>
#include <string_view>

#include "cli/heads/heads_experiment.hpp"

namespace widelimit::cli {

/// Whether there is a picture of an experiment.
[[nodiscard]] bool has_heads_picture(std::string_view experiment);

/// gnuplot script of the picture of an experiment's table: one colour a quantity, theory as a line, samples as points.
[[nodiscard]] std::string heads_script(std::string_view experiment, const ResultTable& table);

}  // namespace widelimit::cli
