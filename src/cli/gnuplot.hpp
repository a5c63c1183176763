#pragma once

#include <string>
#include <string_view>

namespace widelimit::cli {

/// A gnuplot string in single quotes.
[[nodiscard]] std::string gnuplot_quoted(std::string_view text);

/// Pipes a script to gnuplot. Error naming `what` if gnuplot is missing or rejects the script.
void run_gnuplot(const std::string& script, std::string_view what);

}  // namespace widelimit::cli
