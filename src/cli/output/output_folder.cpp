#include "cli/output/output_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "cli/program/run_context.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/replaced_together.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/text/visible_text.hpp"
#include "widelimit/version.hpp"

namespace widelimit::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The files that a folder's run.json lists, and itself; nothing where there is none that can be read.
std::set<std::string> listed_files(const fs::path& folder) {
  if (!fs::is_regular_file(fs::symlink_status(folder / record_name))) return {};
  nlohmann::json record;
  try {
    record = read_json(folder / record_name);
  } catch (const DataError&) {
    return {};
  }
  if (!record.is_object() || !record.contains("widelimit") || !record.contains("files")) return {};
  const nlohmann::json& files = record["files"];
  if (!files.is_array()) return {};
  std::set<std::string> names{record_name};
  for (const nlohmann::json& name : files)
    if (name.is_string()) names.insert(name.get<std::string>());
  return names;
}

/// Whether a file is what a run left behind that was killed while it wrote one of `names`.
bool is_left_behind(const std::string& file, const std::set<std::string>& names) {
  const std::optional<std::string> target = files::target_of_dead_writer(file);
  return target && std::ranges::any_of(names, [&](const std::string& name) {
           return files::name_in_temporary(name) == *target;
         });
}

/// Whether some name lies in this folder.
bool leads_to_any(const std::set<std::string>& names, const std::string& folder) {
  const auto next = names.lower_bound(folder + "/");
  return next != names.end() && next->starts_with(folder + "/");
}

/// What lies in a folder: files by their names relative to it, sorted by whether they are listed. Of folders
/// without listed files only the name is taken. Links, pipes and the like are no run's, whatever run.json says.
struct Content {
  std::set<std::string> listed;
  std::set<std::string> others;
};

Content content_of(const fs::path& folder, const std::set<std::string>& listed,
                   const std::set<std::string>& names) {
  Content content;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator();
       ++entry) {
    const std::string name = entry->path().lexically_relative(folder).generic_string();
    const auto status = entry->symlink_status();
    if (fs::is_directory(status) && leads_to_any(listed, name)) continue;
    if (fs::is_directory(status)) entry.disable_recursion_pending();
    const bool is_listed =
        (listed.contains(name) || is_left_behind(name, names) || is_left_behind(name, listed)) &&
        fs::is_regular_file(status);
    if (is_listed)
      content.listed.insert(name);
    else
      content.others.insert(fs::is_symlink(status) ? name + ", a link" : name);
  }
  return content;
}

std::string record_text(const RunRecord& record, std::set<std::string> names) {
  names.erase(record_name);
  std::vector<std::string> arguments = shell_words(record.command);
  arguments.erase(arguments.begin());
  const Json json{{"widelimit", version},
                  {"command", record.command},
                  {"arguments", arguments},
                  {"directory", files::working_directory().string()},
                  {"network", record.network},
                  {"shapes", record.shapes},
                  {"files", names}};
  return json.dump(1) + "\n";
}

/// run.json keeps it, which is UTF-8; better said before the work.
void require_utf8_place() {
  if (const std::string place = files::working_directory().string(); first_invalid_utf8(place))
    throw DataError(
        fmt::format("{}: the working directory is kept in {}, expected a name in UTF-8; work in another one",
                    visible_text(place), record_name));
}

std::string some_of(const std::set<std::string>& names) {
  constexpr std::size_t most = 3;
  std::vector<std::string> shown;
  for (const std::string& name : names)
    if (shown.size() < most) shown.push_back(name);
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > most ? ", ..." : "");
}

}  // namespace

OutputFolder::OutputFolder(fs::path folder, const std::vector<std::string>& names, OtherFiles others)
    : folder_{std::move(folder)}, others_{others} {
  require_utf8_place();
  make_folder(folder_);
  lock_.emplace(folder_);
  try {
    Names known(names.begin(), names.end());
    known.insert(record_name);
    const Content content = content_of(folder_, listed_files(folder_), known);
    earlier_ = content.listed;
    if (others == OtherFiles::refused && !content.others.empty())
      throw DataError(
          fmt::format("{}: holds files that are not of an earlier run ({}); choose another folder, or write "
                      "into it all the same with --force, which leaves them there",
                      folder_.string(), some_of(content.others)));
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format("{}: cannot be listed: {}", folder_.string(), error.code().message()));
  }
  announce(record_name);
  for (const std::string& name : names) announce(name);
}

void OutputFolder::check_inputs(const std::vector<NamedFile>& read) const {
  Names ours = announced_;
  ours.insert(earlier_.begin(), earlier_.end());
  for (const NamedFile& input : read)
    for (const std::string& name : ours)
      if (are_same_file(input.path, folder_ / name))
        throw ArgumentError(
            fmt::format("{} and --out: expected different files, got {}, which is written anew", input.name,
                        input.path.string()));
}

void OutputFolder::announce(const std::string& name) {
  files::require_no_links(folder_, name);
  make_folder((folder_ / name).parent_path());
  files::check_replaceable(folder_ / name, files::Links::refused);
  announced_.insert(name);
}

void OutputFolder::make_folder(const fs::path& folder) {
  files::require_may_write(folder);
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path next = folder; !next.empty() && !fs::exists(fs::symlink_status(next, error));
       next = next.parent_path())
    if (next.has_filename()) missing.push_back(next);
  // The innermost first, which is also removed first.
  for (auto next = missing.rbegin(); next != missing.rend(); ++next) made_folders_.emplace_front(*next);
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw DataError(fmt::format("{}: cannot make this folder: {}", folder.string(),
                                error ? error.message() : "a file of that name exists"));
  for (const fs::path& made : missing)
    if (const auto gone = gone_.find(made.lexically_relative(folder_)); gone != gone_.end())
      files::set_permissions(made, gone->second);
}

files::ReplacingFile& OutputFolder::stage(const std::string& name) {
  if (!announced_.contains(name))
    throw std::logic_error(fmt::format("{}: the output {} was not announced", folder_.string(), name));
  files::require_no_links(folder_, name);
  // An inner folder may have gone with the files of an earlier run.
  make_folder((folder_ / name).parent_path());
  const auto gone = gone_.find(name);
  staged_.emplace_back(name, folder_ / name,
                       gone == gone_.end() ? std::nullopt : std::optional(gone->second));
  return staged_.back().file;
}

void OutputFolder::write(const std::string& name, std::string_view text) { write_all({{name, "", text}}, 1); }

void OutputFolder::write_all(const std::vector<Contents>& wanted, int threads) {
  // The system copies what is written, one write to a file at a time; different files are copied at once. Where no
  // thread can be started, get() writes.
  const std::launch how = threads == 1 ? std::launch::deferred : std::launch::async | std::launch::deferred;
  std::vector<std::future<void>> writing;
  for (const Contents& contents : wanted) {
    files::ReplacingFile& file = stage(contents.name);
    writing.push_back(std::async(how, [&file, &contents] {
      file.write(contents.head);
      file.write(contents.body);
      file.close();
    }));
  }
  for (std::future<void>& one : writing) one.get();
}

void OutputFolder::write_pieces(const std::string& name, const std::function<void(const WriteBytes&)>& fill) {
  files::ReplacingFile& file = stage(name);
  fill([&file](const void* bytes, std::size_t count) { file.write(bytes, count); });
  file.close();
}

void OutputFolder::draw(const std::string& name, const std::string& script, Gnuplot& gnuplot) {
  files::ReplacingFile& picture = stage(name);
  if (gnuplot.draw(script, picture, (folder_ / name).string()))
    picture.close();
  else
    staged_.pop_back();
}

void OutputFolder::write_inner_record(const std::string& inner, const RunRecord& record) {
  Names names;
  const auto take = [&](const std::string& name) {
    if (name.starts_with(inner)) names.insert(name.substr(inner.size()));
  };
  for (const std::string& name : committed_) take(name);
  for (const Staged& staged : staged_) take(staged.name);
  write(inner + record_name, record_text(record, names));
}

/// What others put there while this run computed is not replaced.
void OutputFolder::require_still_ours(const std::string& name) const {
  const bool is_ours =
      earlier_.contains(name) || committed_.contains(name) || (name == record_name && !committed_.empty());
  std::error_code ignored;
  if (!is_ours && others_ == OtherFiles::refused && fs::exists(fs::symlink_status(folder_ / name, ignored)))
    throw DataError(
        fmt::format("{}: has appeared while this run computed, and is not replaced; move it, and run again",
                    (folder_ / name).string()));
}

void OutputFolder::commit(const RunRecord& record) {
  require_still_ours(record_name);
  for (const Staged& staged : staged_) require_still_ours(staged.name);
  Names written = committed_;
  for (const Staged& staged : staged_) written.insert(staged.name);
  Names all = written;
  all.merge(Names(earlier_));
  // In between, run.json lists more files than there are: none may be left that the next run does not know.
  files::ReplacingFile between(folder_ / record_name, files::Links::refused),
      after(folder_ / record_name, files::Links::refused);
  between.write(record_text(record, all));
  after.write(record_text(record, written));
  files::ReplacedTogether together;
  together.put(between);
  for (Staged& staged : staged_) {
    files::require_no_links(folder_, staged.name);
    together.put(staged.file);
  }
  Names removed;
  for (const std::string& name : earlier_) {
    if (written.contains(name) || name == record_name) continue;
    remember(name);
    together.remove(folder_ / name);
    removed.insert(name);
  }
  together.put(after);
  together.finish();
  staged_.clear();
  committed_ = std::move(written);
  earlier_.clear();
  for (const std::string& name : removed)
    // Folders that only held such files; others are not empty, and stay.
    for (fs::path parent = fs::path(name).parent_path(); !parent.empty(); parent = parent.parent_path()) {
      remember(parent);
      std::error_code ignored;
      fs::remove(folder_ / parent, ignored);
    }
}

void OutputFolder::remember(const fs::path& name) {
  if (const auto permissions = files::permissions_of(folder_ / name))
    gone_.insert_or_assign(name, *permissions);
}

void check_output_file(const fs::path& file) {
  if (file.empty()) return;
  if (!file.parent_path().empty() && !fs::is_directory(file.parent_path()))
    throw DataError(fmt::format("{}: its folder does not exist", file.string()));
  files::check_replaceable(file);
}

void draw_output_file(const fs::path& file, const std::string& script, std::stop_token stop) {
  files::ReplacingFile picture(file);
  Gnuplot gnuplot(std::move(stop));
  if (gnuplot.draw(in_format(script, picture_format(file)), picture, file.string())) picture.commit();
}

}  // namespace widelimit::cli
