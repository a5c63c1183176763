#pragma once

#include <string>
#include <vector>

#include "cli/options/kernel_options.hpp"
#include "cli/program/run_context.hpp"
#include "widelimit/index.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// What `devices --tune` measures.
struct TuningArguments {
  bool tunes = false;
  std::vector<std::string> networks{"conv-gap:depth=8", "conv-flatten:depth=8", "struct"};
  std::vector<Index> input{32, 32, 3};
  KernelOptions kernel{.device = "gpu"};
};

/// Adds --tune and what belongs to it. `arguments` must live until they are parsed.
void add_tuning_options(CLI::App& command, TuningArguments& arguments);

/// Measures the forms of each network on the device, keeps the fastest, and prints all of them.
void tune_devices(const TuningArguments& arguments, bool as_json, const RunContext& context);

}  // namespace widelimit::cli
