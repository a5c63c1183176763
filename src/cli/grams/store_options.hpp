#pragma once

#include <filesystem>
#include <string>

#include "cli/options/kernel_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/program/run_context.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/store/gram_store.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace widelimit::cli {

/// What the user says of a store.
struct StoreArguments {
  std::filesystem::path folder;
  Index tile_side = 0;
  store::StorePart part;
  bool grow = false;
  bool other_arithmetic = false;
};

/// Adds --store, --tile, --part, --grow and --other-arithmetic; returns --store. `arguments` must live until the
/// arguments are parsed.
CLI::Option* add_store_options(CLI::App& command, StoreArguments& arguments);

/// Adds --tile, --part and --other-arithmetic, which need the option `folder`.
void add_tile_options(CLI::App& command, CLI::Option& folder, StoreArguments& arguments);

/// "2/8". Throws ArgumentError.
[[nodiscard]] store::StorePart read_part(const std::string& text);

/// What a process computes into a store.
template <typename Scalar>
struct StoreTask {
  const Network& network;
  const Inputs<Scalar>& x1;
  const Inputs<Scalar>* x2;  ///< Null if the store is symmetric.
  const KernelOptions& kernel;
};

/// Computes what is missing in a store, alone or with others (see RunContext), and shows how far it is. Damaged files
/// are told on standard error.
template <typename Scalar>
store::StoreRunReport run_store(const StoreArguments& arguments, const StoreTask<Scalar>& task,
                                const RunContext& context);

/// Computes the store's tiles: those of its part, or what is dealt, together with others who are waited for. The report
/// is that of all.
template <typename Scalar>
store::StoreRunReport compute_dealt(store::GramStore<Scalar>& gram_store, TileDealer* dealer);

/// Options for a store of a task.
[[nodiscard]] store::StoreOptions store_options_of(const StoreArguments& arguments,
                                                   const KernelOptions& kernel, const RunContext& context);

/// A command line without --part and --grow: what computes whatever a store lacks.
[[nodiscard]] std::string command_of_all_parts(const std::string& command_line);

/// What is shown of it.
[[nodiscard]] ProgressBar::State state_of(const store::StoreProgress& progress);

/// "55 tiles: 50 computed, 5 found, 12.3 s".
[[nodiscard]] std::string to_string(const store::StoreRunReport& report);

}  // namespace widelimit::cli
