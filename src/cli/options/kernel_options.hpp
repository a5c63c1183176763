#pragma once

#include <string>

#include "widelimit/kernel/gram.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

enum class Precision { float32, float64 };

/// What every command that computes Gram matrices lets the user choose.
struct KernelOptions {
  Kernels kernels = Kernels::both;
  Precision precision = Precision::float32;
  int threads = 0;
  std::string device = "cpu";
  bool exact_attention = false;
};

/// Adds --device, which says where kernels are computed (GramOptions::device).
void add_device_option(CLI::App& command, std::string& device);

/// Adds --exact-attention. `exact` must live until the arguments are parsed.
void add_exact_attention_option(CLI::App& command, bool& exact);

/// Adds --kernel, --precision, --threads, --device and --exact-attention. `options` must live until the arguments are
/// parsed.
void add_kernel_options(CLI::App& command, KernelOptions& options);

/// What gram() is to do by them; progress and stop are the command's.
[[nodiscard]] GramOptions gram_options(const KernelOptions& options);

[[nodiscard]] std::string to_string(Precision precision);

}  // namespace widelimit::cli
