#pragma once

#include <CLI/CLI.hpp>

namespace widelimit::cli {

/// `widelimit propagation trajectory | exponents | phase | critical | fit | simulate`.
void add_propagation_command(CLI::App& program);

/// `widelimit propagation simulate trajectory | angle | gradient | groups`.
void add_propagation_simulate_command(CLI::App& propagation);

}  // namespace widelimit::cli
