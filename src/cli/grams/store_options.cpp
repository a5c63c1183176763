#include "cli/grams/store_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cli/options/ranges.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/output/text_parts.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {

namespace {

/// "2/8".
store::StorePart read_part(const std::string& text) {
  const auto part = two_integers(text, '/');
  if (!part || part->first < 1 || part->first > part->second)
    throw ArgumentError(fmt::format("--part: expected K/N with K from 1 to N, got {}", text));
  return {part->first, part->second};
}

}  // namespace

CLI::Option* add_store_options(CLI::App& command, StoreArguments& arguments) {
  CLI::Option* folder = add_value(command, "--store", arguments.folder,
                                  "Folder of a store: tiles are kept as they are computed, a later "
                                  "run continues with what is missing (docs/scale.md)",
                                  "DIR");
  add_tile_options(command, *folder, arguments);
  command
      .add_flag("--grow", arguments.grow,
                "Let inputs after the rows of the store join it; the others are not computed again")
      ->needs(folder);
  return folder;
}

void add_tile_options(CLI::App& command, CLI::Option& folder, StoreArguments& arguments) {
  add_value(command, "--tile", arguments.tile_side,
            "Inputs a side of a tile of a new store; vectors: a multiple of 512 [chosen]",
            whole_number<Index>(1), "N")
      ->needs(&folder);
  command
      .add_option_function<std::string>(
          "--part", [&arguments](const std::string& text) { arguments.part = read_part(text); },
          "Compute part K of N of the store's tiles: parts cost the same, and need not know of each other "
          "[1/1]")
      ->type_name("K/N")
      ->needs(&folder);
  command
      .add_flag("--other-arithmetic", arguments.other_arithmetic,
                "Continue a store that another kind of processor began; last bits then differ between tiles")
      ->needs(&folder);
  add_unrecorded_option(command, arguments.unrecorded)->needs(&folder);
}

CLI::Option* add_unrecorded_option(CLI::App& command, store::UnrecordedTiles& unrecorded) {
  return command.add_flag_callback(
      "--accept-unrecorded", [&unrecorded] { unrecorded = store::UnrecordedTiles::accepted; },
      "Take tiles of whose place the store has no record, as in stores of version 0.1, as they are");
}

int threads_of(int asked, const RunContext& context) {
  return asked == 0 && context.dealer != nullptr ? context.dealer->threads() : asked;
}

namespace {

/// A command line without --part, --grow and --accept-unrecorded: what computes whatever a store lacks.
std::string command_of_all_parts(const std::string& command_line) {
  std::string command = command_line;
  const auto remove = [&command](const std::string& option, bool has_value) {
    for (auto place = command.find(" " + option); place != command.npos; place = command.find(" " + option)) {
      auto end = place + 1 + option.size();
      if (has_value && end < command.size() && command[end] == ' ') ++end;
      end = std::min(command.find(' ', end), command.size());
      command.erase(place, end - place);
    }
  };
  remove("--part", true);
  remove("--grow", false);
  remove("--accept-unrecorded", false);
  return command;
}

}  // namespace

store::StoreOptions store_options_of(const StoreArguments& arguments, const RunContext& context) {
  store::StoreOptions options;
  options.tile_side = arguments.tile_side;
  options.part = arguments.part;
  options.grow = arguments.grow;
  options.other_arithmetic = arguments.other_arithmetic;
  options.unrecorded = arguments.unrecorded;
  options.command = command_of_all_parts(context.command_line);
  options.report = [](const std::string& message) { print_notice("widelimit: " + message); };
  return options;
}

template <typename Scalar>
store::StoreRunReport run_store(const StoreArguments& arguments, const StoreTask<Scalar>& task,
                                const RunContext& context, const ShowStore& show) {
  distributed::TileDealer* const dealer = context.dealer;
  store::StoreOptions options = store_options_of(arguments, task, context);
  if (dealer == nullptr || dealer->is_first()) options.progress = show;
  auto gram_store = task.open(arguments.folder, options);
  if (dealer == nullptr) return gram_store.compute();
  store::StoreRunReport report = gram_store.compute(dealer->deal());
  dealer->wait_for_all();
  report.computed = dealer->sum(report.computed);
  report.found = dealer->sum(report.found);
  return report;
}

ProgressBar::State state_of(const store::StoreProgress& progress) {
  return {.done = progress.pairs_done + progress.pairs_computed,
          .total = progress.pairs,
          .rate = progress.pairs_per_second,
          .seconds_left = progress.seconds_left,
          .parts = fmt::format("{} of {} tiles", progress.tiles_done, progress.tiles)};
}

std::string to_string(const store::StoreRunReport& report) {
  return fmt::format(
      "{} tiles: {} computed, {} found{}, {:.1f} s", report.computed + report.found, report.computed,
      report.found,
      report.damaged.empty() ? "" : fmt::format(", {} damaged files mended", report.damaged.size()),
      report.seconds);
}

template store::StoreRunReport run_store(const StoreArguments&, const StoreTask<float>&, const RunContext&,
                                         const ShowStore&);
template store::StoreRunReport run_store(const StoreArguments&, const StoreTask<double>&, const RunContext&,
                                         const ShowStore&);

}  // namespace widelimit::cli
