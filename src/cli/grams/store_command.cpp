#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/grams/store_options.hpp"
#include "cli/options/kernel_options.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/tasks/file_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::cli {
namespace {

using store::StoredGram;

void print_batch(const char* name, const nlohmann::json& batch) {
  std::vector<std::string> counts;
  for (const auto& step : batch.at("steps")) counts.push_back(step.at("count").dump());
  say("{:<14} {} inputs, {} channels, {}\n", name, fmt::join(counts, " + "), batch.at("channels").dump(),
      batch.at("shape").is_null() ? "of different shapes" : "shape " + batch.at("shape").dump());
  for (const auto& step : batch.at("steps"))
    for (const auto& [key, value] : step.items())
      if (value.is_string()) say("  {:<14} {}\n", key, value.get<std::string>());
}

/// At which rate a store is computed, and what is left.
void print_pace(const store::StoreProgress& progress) {
  if (progress.processes > 0)
    say("{:<14} {} by {} {}, {} left\n", "computed", rate_text(progress.pairs_per_second), progress.processes,
        progress.processes == 1 ? "process" : "processes", time_text(progress.seconds_left));
  else if (progress.pairs_per_second > 0)
    say("{:<14} by nobody, as far as can be seen; one process did {}, which would take {} more\n", "computed",
        rate_text(progress.pairs_per_second), time_text(progress.seconds_left));
}

void print_info(const std::filesystem::path& folder) {
  const StoredGram stored(folder);
  const auto& facts = stored.facts();
  const store::TileGrid grid = stored.grid();
  const Index there = stored.tiles_there();
  if (prints_json())
    return print_result(
        {{"facts", facts}, {"tiles", grid.count()}, {"tiles_there", there}, {"bytes", stored.bytes_there()}});
  say("{:<14} {}\n", "arrays", fmt::join(stored.arrays(), ", "));
  say("{:<14} {} x {}{}, {}\n", "matrix", grid.rows(), grid.columns(),
      grid.is_symmetric() ? ", symmetric: tiles on and above the diagonal" : "",
      facts.at("precision").get<std::string>());
  say("{:<14} {} of {} there ({:.1f} %), {} a side, {}\n", "tiles", there, grid.count(),
      100.0 * static_cast<double>(there) / static_cast<double>(grid.count()), grid.side(),
      numerics::memory_text(stored.bytes_there()));
  for (const std::string& array : stored.arrays())
    if (const Index of_array = stored.tiles_there(array); of_array != there)
      say("  {:<12} {} of {} files there\n", array, of_array, grid.count());
  if (there < grid.count()) print_pace(stored.progress());
  print_batch("rows", facts.at("rows"));
  if (!grid.is_symmetric()) print_batch("columns", facts.at("columns"));
  const nlohmann::json& arithmetic = facts.at("arithmetic");
  say("{:<14} widelimit {}, vectors {}, BLAS {}\n", "made by", facts.at("library_version").get<std::string>(),
      arithmetic.at("vectors").get<std::string>(), arithmetic.at("blas").get<std::string>());
  if (arithmetic.contains("device")) say("{:<14} {}\n", "device", arithmetic.at("device").get<std::string>());
  for (const auto& layer : facts.at("sampled_layers"))
    say("{:<14} {}: {} samples, seed {}\n", "sampled", layer.at("path").get<std::string>(),
        layer.at("samples").dump(), layer.at("seed").dump());
  say("{:<14} {}\n", "network", facts.at("network").dump());
}

struct VerifyArguments {
  std::filesystem::path folder;
  Index recompute = 0;
  std::uint64_t seed = 0;
  InputFiles rows;
  InputFiles columns;
  StoreArguments store;
  int threads = 0;
  std::string device = "cpu";
};

template <typename Scalar>
void recompute(const VerifyArguments& arguments, const StoredGram& stored, const RunContext& context) {
  const FileInputs<Scalar> x(arguments.rows);
  std::optional<FileInputs<Scalar>> x2;
  if (arguments.columns.given()) x2.emplace(arguments.columns);
  const Network network = parse_network(stored.facts().at("network").dump());
  const StoreTask<Scalar> task{network,
                               x.inputs(),
                               x2 ? &x2->inputs() : nullptr,
                               stored.kernels(),
                               arguments.threads,
                               arguments.device,
                               stored.facts().value("exact_attention", false)};
  store::StoreOptions options = store_options_of(arguments.store, task, context);
  options.report = nullptr;  // The check before has told it.
  auto gram_store = task.open(arguments.folder, options);
  Index compared = 0;
  const auto mismatches = gram_store.recompute(arguments.recompute, arguments.seed, &compared);
  if (!mismatches.empty()) {
    const store::StoreMismatch& first = mismatches.front();
    throw DataError(
        fmt::format("{}: of {} pairs, {} numbers are not what is computed for them, the first the {} of pair "
                    "({}, {}): {} is stored, {} computed",
                    arguments.folder.string(), compared, mismatches.size(), first.array, first.row,
                    first.column, first.stored, first.computed));
  }
  say("{} pairs{} computed again: the same bits\n", compared,
      compared == stored.grid().pairs() ? ", which are all," : "");
}

/// What makes a store whole again, as a shell reads it.
std::string mending_command(const StoredGram& stored, const store::StoreCheck& check,
                            const std::filesystem::path& folder) {
  std::string command;
  if (!check.obstacles.empty()) {
    command = "rm -r";
    for (const std::string& path : check.obstacles) command += " " + shell_quoted(path);
    command += " && ";
  }
  const auto& facts = stored.facts();
  if (facts.contains("command")) {
    // Written anew, word by word: people hand it to their shell.
    std::vector<std::string> words = shell_words(facts.at("command").get<std::string>());
    if (!std::filesystem::path(words.front()).filename().string().starts_with("widelimit"))
      words.front() = "widelimit";
    command += shell_command_line(words);
  } else {
    const Kernels kernels = stored.kernels();
    command += fmt::format("widelimit gram NETWORK --x FILE{} --kernel {} --precision {} --store {}",
                           stored.grid().is_symmetric() ? "" : " --x2 FILE",
                           kernels == Kernels::both   ? "both"
                           : kernels == Kernels::nngp ? "nngp"
                                                      : "ntk",
                           facts.at("precision").get<std::string>(), shell_quoted(folder.string()));
  }
  if (check.tile_side > 0) command += fmt::format(" --tile {}", check.tile_side);
  return command;
}

/// What the records cannot tell.
void print_records(const store::StoreCheck& check, store::UnrecordedTiles unrecorded) {
  if (check.unrecorded > 0)
    say("{} files have no record of their place, as in stores of version 0.1: whether they belong there {}\n",
        check.unrecorded,
        unrecorded == store::UnrecordedTiles::accepted
            ? "cannot be told"
            : "cannot be told, so that they count as damaged without --accept-unrecorded");
  if (!check.records_name_store)
    say("version 0.2 made the store, whose records do not name it: tiles that came with the records of "
        "another store "
        "would not be seen; --recompute compares pairs\n");
  if (check.strange_records > 0)
    say("{} lines of its records are not of the store and count for nothing: changed, cut short, or of "
        "another\n",
        check.strange_records);
}

void print_check(const store::StoreCheck& check, store::UnrecordedTiles unrecorded) {
  if (prints_json())
    return print_result({{"tiles", check.tiles},
                         {"whole", check.whole},
                         {"missing", check.missing.size()},
                         {"damaged", check.damaged},
                         {"reasons", check.reasons},
                         {"unrecorded", check.unrecorded},
                         {"strange_records", check.strange_records},
                         {"records_name_store", check.records_name_store},
                         {"obstacles", check.obstacles},
                         {"unreadable", check.unreadable}});
  say("{} of {} tiles whole\n", check.whole, check.tiles);
  print_records(check, unrecorded);
  for (const store::TileIndex& tile : check.missing) say("missing: tile ({}, {})\n", tile.row, tile.column);
  for (std::size_t d = 0; d < check.damaged.size(); ++d)
    say("damaged: {}{}\n", check.damaged[d],
        check.reasons[d] == store::wrong_checksum ? "" : ": " + check.reasons[d]);
  for (const std::string& path : check.obstacles)
    say("in the way: {}: no file or folder of a store is like this\n", path);
  for (const std::string& message : check.unreadable) say("unreadable: {}\n", message);
}

void verify(const VerifyArguments& arguments, const RunContext& context) {
  const StoredGram stored(arguments.folder, arguments.store.unrecorded);
  const store::StoreCheck check = [&] {
    ProgressBar bar("store");
    return stored.check([&bar](Index done, Index tiles) { bar.show(done, tiles); },
                        context.interrupt.token());
  }();
  print_check(check, arguments.store.unrecorded);
  if (arguments.recompute > 0 && check.damaged.empty() && check.unreadable.empty() &&
      check.obstacles.empty()) {
    if (stored.is_float())
      recompute<float>(arguments, stored, context);
    else
      recompute<double>(arguments, stored, context);
  }
  if (!check.is_complete())
    throw DataError(
        fmt::format("{}: {} tiles are missing, {} files damaged{}{}; to repair it: {}",
                    arguments.folder.string(), check.missing.size(), check.damaged.size(),
                    check.obstacles.empty() ? "" : fmt::format(", {} in the way", check.obstacles.size()),
                    check.unreadable.empty() ? "" : fmt::format(", {} unreadable", check.unreadable.size()),
                    mending_command(stored, check, arguments.folder)));
}

struct ExportArguments {
  std::filesystem::path folder;
  std::filesystem::path out;
  OtherFiles other_files = OtherFiles::refused;
  store::UnrecordedTiles unrecorded = store::UnrecordedTiles::refused;
};

void write_matrices(const ExportArguments& arguments, const RunContext& context) {
  const StoredGram stored(arguments.folder, arguments.unrecorded);
  std::vector<std::string> names;
  for (const std::string& array : stored.arrays()) names.push_back(array + ".npy");
  OutputFolder folder(arguments.out, names, arguments.other_files);
  for (std::size_t a = 0; a < names.size(); ++a)
    folder.write_pieces(names[a], [&](const OutputFolder::WriteBytes& write) {
      stored.write_npy(stored.arrays()[a], write, context.interrupt.token());
    });
  RunRecord record{
      context.command_line, nlohmann::ordered_json::parse(stored.facts().at("network").dump()), {}};
  folder.commit(record);
  const auto columns = stored.grid().columns();
  say("{}: {}, {} x {}\n", arguments.out.string(), fmt::join(names, " and "), stored.grid().rows(), columns);
  if (prints_json())
    print_result(
        {{"folder", arguments.out.string()}, {"files", names}, {"shape", {stored.grid().rows(), columns}}});
}

CLI::Option* add_folder(CLI::App& command, std::filesystem::path& folder) {
  return add_value(command, "folder", folder, "The store's folder", "DIR")->required();
}

void add_info(CLI::App& command) {
  auto folder = std::make_shared<std::filesystem::path>();
  CLI::App* info = command.add_subcommand("info", "Prints what a store is of and how much of it is there");
  add_folder(*info, *folder);
  add_json_option(*info);
  info->callback([folder] { print_info(*folder); });
}

void add_verify(CLI::App& command, const RunContext& context) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* verify_command =
      command.add_subcommand("verify", "Reads every file of a store and names what is missing or damaged");
  add_folder(*verify_command, arguments->folder);
  CLI::Option* again =
      add_value(*verify_command, "--recompute", arguments->recompute,
                "Also compute this many random pairs again and compare bits; needs the inputs of the store",
                whole_number<Index>(1), "N");
  add_value(*verify_command, "--seed", arguments->seed, "Which pairs [0]", "N")->needs(again);
  add_gram_inputs(*verify_command, arguments->rows, arguments->columns);
  add_number(*verify_command, "--threads", arguments->threads, "Worker threads; 0: one a core",
             thread_count(), "N");
  add_device_option(*verify_command, arguments->device);
  verify_command->add_flag("--other-arithmetic", arguments->store.other_arithmetic,
                           "Compare although another kind of processor made the store; last bits may differ");
  add_unrecorded_option(*verify_command, arguments->store.unrecorded);
  add_json_option(*verify_command);
  verify_command->callback([arguments, &context] {
    if (arguments->recompute > 0 && !arguments->rows.given())
      throw CLI::RequiredError("--recompute needs --x FILE or --graphs DIR, which");
    verify(*arguments, context);
  });
}

void add_export(CLI::App& command, const RunContext& context) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* export_command = command.add_subcommand("export", "Writes the whole matrices of a store");
  add_folder(*export_command, arguments->folder);
  add_value(*export_command, "--npy", arguments->out,
            "Folder for nngp.npy [n, n'], ntk.npy and what else there is", "DIR")
      ->required();
  add_unrecorded_option(*export_command, arguments->unrecorded);
  add_force_option(*export_command, arguments->other_files);
  add_json_option(*export_command);
  export_command->callback([arguments, &context] { write_matrices(*arguments, context); });
}

void fill_store_command(CLI::App& command, const RunContext& context) {
  command.require_subcommand(1);
  add_info(command);
  add_verify(command, context);
  add_export(command, context);
  command.footer(
      "Examples:\n"
      "  widelimit store info cifar10-store\n"
      "  widelimit store verify cifar10-store --recompute 1000 --x x.npy\n"
      "  widelimit store export cifar10-store --npy kernels");
}

}  // namespace

const Command store_command{"store", "Inspects stores of Gram matrices (widelimit gram --store)",
                            fill_store_command};

}  // namespace widelimit::cli
