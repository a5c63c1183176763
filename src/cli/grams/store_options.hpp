#pragma once

#include <filesystem>
#include <functional>
#include <string>

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
  store::UnrecordedTiles unrecorded = store::UnrecordedTiles::refused;
};

/// Adds --store, --tile, --part, --grow, --other-arithmetic and --accept-unrecorded; returns --store. `arguments` must
/// live until the arguments are parsed.
CLI::Option* add_store_options(CLI::App& command, StoreArguments& arguments);

/// Adds --tile, --part, --other-arithmetic and --accept-unrecorded, which need the option `folder`.
void add_tile_options(CLI::App& command, CLI::Option& folder, StoreArguments& arguments);

/// Adds --accept-unrecorded.
CLI::Option* add_unrecorded_option(CLI::App& command, store::UnrecordedTiles& unrecorded);

/// What a process computes into a store.
template <typename Scalar>
struct StoreTask {
  const Network& network;
  const Inputs<Scalar>& x1;
  const Inputs<Scalar>* x2;  ///< Null if the store is symmetric.
  Kernels kernels;
  int threads;  ///< 0: see threads_of().
  std::string device;
  bool exact_attention;

  [[nodiscard]] store::GramStore<Scalar> open(const std::filesystem::path& folder,
                                              const store::StoreOptions& options) const {
    return x2 == nullptr ? store::GramStore<Scalar>(folder, network, x1, options)
                         : store::GramStore<Scalar>(folder, network, x1, *x2, options);
  }
};

using ShowStore = std::function<void(const store::StoreProgress&)>;

/// Computes what is missing in a store or its part, alone or with others (see RunContext), who are waited for; the
/// report is that of all. The first of them shows how far it is. Damaged files are told on standard error.
template <typename Scalar>
store::StoreRunReport run_store(const StoreArguments& arguments, const StoreTask<Scalar>& task,
                                const RunContext& context, const ShowStore& show);

/// Threads where the user asked for so many: for 0 their share where several processes compute together.
[[nodiscard]] int threads_of(int asked, const RunContext& context);

/// Options for stores, but for their kernels; what they report is told on standard error.
[[nodiscard]] store::StoreOptions store_options_of(const StoreArguments& arguments,
                                                   const RunContext& context);

/// Options for a store of a task.
template <typename Scalar>
[[nodiscard]] store::StoreOptions store_options_of(const StoreArguments& arguments,
                                                   const StoreTask<Scalar>& task, const RunContext& context) {
  store::StoreOptions options = store_options_of(arguments, context);
  options.gram.kernels = task.kernels;
  options.gram.threads = threads_of(task.threads, context);
  options.gram.device = task.device;
  options.gram.exact_attention = task.exact_attention;
  options.gram.stop = context.interrupt.token();
  return options;
}

/// What is shown of it.
[[nodiscard]] ProgressBar::State state_of(const store::StoreProgress& progress);

/// "55 tiles: 50 computed, 5 found, 12.3 s".
[[nodiscard]] std::string to_string(const store::StoreRunReport& report);

}  // namespace widelimit::cli
