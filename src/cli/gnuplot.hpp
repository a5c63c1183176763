#pragma once

#include <string>

namespace widelimit::cli {

/// Runs gnuplot on a script, passed through a pipe. Error if gnuplot is not installed or refuses the script.
void run_gnuplot(const std::string& script);

}  // namespace widelimit::cli
