#pragma once

#include "cli/program/run_context.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// `widelimit propagation fit`.
void add_propagation_fit_command(CLI::App& propagation);

/// `widelimit propagation simulate trajectory | histograms | angle | gradient | phase | groups`.
void add_propagation_simulate_command(CLI::App& propagation, const RunContext& context);

/// `widelimit propagation simulate phase`.
void add_propagation_simulate_phase_command(CLI::App& simulate, const RunContext& context);

/// `widelimit propagation network`.
void add_propagation_network_command(CLI::App& propagation, const RunContext& context);

/// `widelimit propagation measure`.
void add_propagation_measure_command(CLI::App& propagation, const RunContext& context);

}  // namespace widelimit::cli
