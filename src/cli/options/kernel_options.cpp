#include "cli/options/kernel_options.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "cli/options/ranges.hpp"

namespace widelimit::cli {
namespace {

/// One of the words, shown in the help as word|word.
template <typename Value>
void add_choice(CLI::App& command, const std::string& name, Value& target,
                const std::map<std::string, Value>& words, const std::string& type,
                const std::string& description) {
  command
      .add_option_function<std::string>(
          name, [&target, words](const std::string& word) { target = words.at(word); }, description)
      ->transform(CLI::IsMember(words, CLI::ignore_case).description(""))
      ->type_name(type);
}

}  // namespace

void add_kernel_options(CLI::App& command, KernelOptions& options) {
  add_choice<Kernels>(command, "--kernel", options.kernels,
                      {{"nngp", Kernels::nngp}, {"ntk", Kernels::ntk}, {"both", Kernels::both}},
                      "nngp|ntk|both", "Kernels to compute [both]");
  add_choice<Precision>(command, "--precision", options.precision,
                        {{"float", Precision::float32}, {"double", Precision::float64}}, "float|double",
                        "Precision of the Gram matrices; systems with them are solved in double [float]");
  add_number(command, "--threads", options.threads, "Worker threads; 0: one a core",
             CLI::Range(0, 4096).description(""), "N");
}

std::string to_string(Precision precision) { return precision == Precision::float32 ? "float" : "double"; }

}  // namespace widelimit::cli
