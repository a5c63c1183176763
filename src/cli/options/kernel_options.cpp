#include "cli/options/kernel_options.hpp"

#include <CLI/CLI.hpp>

#include "cli/options/ranges.hpp"

namespace widelimit::cli {

void add_device_option(CLI::App& command, std::string& device) {
  add_value(
      command, "--device", device,
      "Where kernels are computed: cpu, gpu, or part of the name of a device or its platform as the command "
      "devices prints it, followed by :N where several answer; NAME:0,NAME:1 and NAME:all share the tiles "
      "[cpu]",
      // An empty text, as of a variable of the shell that is not set, would be the CPU unasked.
      CLI::Validator(
          [](const std::string& text) {
            return text.empty() ? std::string("expected cpu, gpu or a name, got an empty text")
                                : std::string();
          },
          ""),
      "cpu|gpu|NAME");
}

void add_kernel_options(CLI::App& command, KernelOptions& options) {
  add_choice<Kernels>(command, "--kernel", options.kernels,
                      {{"nngp", Kernels::nngp}, {"ntk", Kernels::ntk}, {"both", Kernels::both}},
                      "nngp|ntk|both", "Kernels to compute [both]");
  add_choice<Precision>(command, "--precision", options.precision,
                        {{"float", Precision::float32}, {"double", Precision::float64}}, "float|double",
                        "Precision of the Gram matrices; systems with them are solved in double [float]");
  add_number(command, "--threads", options.threads, "Worker threads; 0: one a core", thread_count(), "N");
  add_device_option(command, options.device);
  add_exact_attention_option(command, options.exact_attention);
}

void add_exact_attention_option(CLI::App& command, bool& exact) {
  command.add_flag(
      "--exact-attention", exact,
      "Attention before flatten by whole products, not by the leading combinations of an input's outputs "
      "that hold all but 1e-7 of it (1e-13 in double)");
}

GramOptions gram_options(const KernelOptions& options) {
  GramOptions run;
  run.kernels = options.kernels;
  run.threads = options.threads;
  run.device = options.device;
  run.exact_attention = options.exact_attention;
  return run;
}

std::string to_string(Precision precision) { return precision == Precision::float32 ? "float" : "double"; }

}  // namespace widelimit::cli
