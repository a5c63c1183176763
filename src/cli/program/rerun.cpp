#include "cli/program/rerun.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "cli/output/output_folder.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/given_arguments.hpp"
#include "cli/program/run_context.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/json/shown_text.hpp"
#include "widelimit/store/sha256.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view out_option = "--out", out_with_value = "--out=", yes_flag = "--yes";
constexpr const char* passed_flags[] = {"--json", "--quiet"};

/// run.json, of which no more than its size is believed.
json read_record(const fs::path& path) {
  static_cast<void>(files::RegularFile(path));
  return read_json(path);
}

/// Whether a name leads to a file below the folder that lists it.
bool is_below(const fs::path& name) {
  const fs::path plain = name.lexically_normal();
  return plain.is_relative() && !plain.empty() && *plain.begin() != "..";
}

std::string digest_of(const fs::path& path) {
  try {
    const files::RegularFile file(path);
    store::Sha256 sum;
    std::vector<char> block(std::size_t{1} << 20);
    std::uint64_t offset = 0;
    while (const std::size_t count = file.read(offset, block.data(), block.size())) {
      sum.add(block.data(), count);
      offset += count;
    }
    return sum.digest();
  } catch (const DataError&) {
    return "";
  }
}

/// The names of the files that a record lists, without those that lead elsewhere.
std::vector<std::string> listed_names(const json& record) {
  std::vector<std::string> names;
  if (!record.is_object() || !record.contains("files") || !record.at("files").is_array()) return names;
  for (const json& name : record.at("files"))
    if (name.is_string() && is_below(name.get<std::string>())) names.push_back(name.get<std::string>());
  return names;
}

void enter_directory(const json& record, const fs::path& path) {
  if (!record.contains("directory")) return;
  const json& place = record.at("directory");
  if (!place.is_string())
    throw DataError(fmt::format("{}: directory: expected a text, got {}", path.string(), shown_json(place)));
  const auto directory = place.get<std::string>();
  std::error_code error;
  fs::current_path(directory, error);
  if (error)
    throw DataError(fmt::format("{}: the run was begun in {}, which cannot be entered: {}", path.string(),
                                directory, error.message()));
}

/// The words with another folder after --out.
void set_out(std::vector<std::string>& words, const fs::path& out, const fs::path& path) {
  bool is_set = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == out_option && i + 1 < words.size())
      words[++i] = out.string();
    else if (words[i].starts_with(out_with_value))
      words[i] = std::string(out_with_value) + out.string();
    else
      continue;
    is_set = true;
  }
  if (!is_set)
    throw ArgumentError(fmt::format(
        "rerun --out: the run of {} has no --out that another folder could replace", path.string()));
}

fs::path absolute_folder(const std::string& word) {
  return fs::weakly_canonical(files::working_directory() / word);
}

std::string listed(const char* what, const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  if (names.empty()) return "";
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + std::min<std::ptrdiff_t>(std::ssize(names), most));
  return fmt::format("; {} {}: {}{}", names.size(), what, fmt::join(shown, ", "),
                     names.size() > most ? ", ..." : "");
}

}  // namespace

std::optional<Rerun> Rerun::in(const std::vector<std::string>& given) {
  if (given.size() < 3 || given[1] != "rerun") return std::nullopt;
  Rerun rerun;
  rerun.program_ = given[0];
  std::optional<std::string> folder;
  for (std::size_t i = 2; i < given.size(); ++i) {
    const std::string& word = given[i];
    if (std::ranges::find(passed_flags, word) != std::end(passed_flags))
      rerun.flags_.push_back(word);
    else if (word == yes_flag)
      rerun.may_write_anywhere_ = true;
    else if (word == out_option && i + 1 < given.size())
      rerun.out_ = absolute_folder(given[++i]);
    else if (word.starts_with(out_with_value))
      rerun.out_ = absolute_folder(word.substr(out_with_value.size()));
    else if (folder || word.starts_with('-'))
      return std::nullopt;
    else
      folder = word;
  }
  if (!folder) return std::nullopt;
  rerun.folder_ = absolute_folder(*folder);
  // Whoever gives its run.json means the folder.
  if (rerun.folder_.filename() == record_name && !fs::is_directory(rerun.folder_))
    rerun.folder_ = rerun.folder_.parent_path();
  return rerun;
}

std::vector<std::string> Rerun::begin() {
  const fs::path path = folder_ / record_name;
  const json record = read_record(path);
  std::vector<std::string> words = words_in(record, path);
  files::refuse_pipes();
  if (!may_write_anywhere_)
    files::confine_writing(
        out_.value_or(folder_),
        out_ ? "add --yes if you trust the run.json that asks for it"
             : "give --out FOLDER, or add --yes if you trust the run.json that asks for it");
  if (out_) set_out(words, *out_, path);
  for (const std::string& name : listed_names(record)) before_.push_back({name, digest_of(folder_ / name)});
  enter_directory(record, path);
  words.insert(words.begin(), program_);
  print_notice(short_message(
      fmt::format("in {}: {}", files::working_directory().string(), shell_command_line(words))));
  for (const std::string& flag : flags_)
    if (std::ranges::find(words, flag) == words.end()) words.push_back(flag);
  return words;
}

void Rerun::compare() const {
  const fs::path now = out_.value_or(folder_);
  std::vector<std::string> same, other, missing;
  for (const auto& [name, digest] : before_) {
    const std::string found = digest_of(now / name);
    (found.empty() ? missing : found == digest ? same : other).push_back(name);
  }
  print_notice(fmt::format("{}: {} of {} files have the same bits as {}{}{}", now.string(), same.size(),
                           before_.size(), out_ ? "in " + folder_.string() : "before", listed("other", other),
                           listed("not there", missing)));
}

namespace {

void fill_rerun_command(CLI::App& command, const RunContext& /*context*/) {
  command.add_option("folder", "Folder of an earlier run, or the run.json in it")
      ->required()
      ->type_name("FOLDER");
  command.add_option("--out", "Write the results to this folder instead, and compare them")
      ->type_name("OTHER");
  command.add_flag_callback(
      "--yes", [] {}, "Let the run write wherever its run.json says: only if you trust it");
  add_json_option(command);
  // A folder alone has become the command that it names before.
  command.callback([] { throw ArgumentError("rerun: expected one folder and nothing else"); });
}

}  // namespace

const Command rerun_command{"rerun",
                            "Runs again what wrote a folder, by the arguments in its run.json and from the "
                            "same working directory, and says "
                            "which files have the same bits. Nothing is written outside of the folder",
                            fill_rerun_command};

}  // namespace widelimit::cli
