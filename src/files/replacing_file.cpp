#include "widelimit/files/replacing_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include "files/file_size_signal.hpp"
#include "files/process_identity.hpp"
#include "files/whole_name.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/writing_places.hpp"

namespace widelimit::files {
namespace {

namespace fs = std::filesystem;

/// What a symbolic link points to; other paths as they are.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  fs::path target = fs::weakly_canonical(path, error);
  return error ? path : target;
}

struct TemporaryName {
  std::string target;
  std::optional<ProcessIdentity> writer;
  pid_t number_of_writer = 0;  ///< As version 0.1 named it, which knew no other machines.
};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What temporary_name() made of a file's name.
std::optional<TemporaryName> temporary_name_in(const std::string& name) {
  constexpr std::string_view ending = ".part";
  if (!name.ends_with(ending)) return {};
  const std::string stem = name.substr(0, name.size() - ending.size());
  const std::size_t dot = stem.rfind('.'), dash = stem.rfind('-');
  if (dot == stem.npos || dot == 0 || dash == stem.npos || dash < dot || !is_number(stem.substr(dash + 1)))
    return {};
  const std::string writer = stem.substr(dot + 1, dash - dot - 1);
  TemporaryName parts{stem.substr(0, dot), ProcessIdentity::parse(writer)};
  if (parts.writer) return parts;
  const auto [stop, error] =
      std::from_chars(writer.data(), writer.data() + writer.size(), parts.number_of_writer);
  const bool is_old = is_number(writer) && error == std::errc{} && parts.number_of_writer > 0;
  return is_old ? std::optional(parts) : std::nullopt;
}

/// Whether the writer is known to run no more.
bool has_ended(const TemporaryName& name) {
  if (name.writer) return files::has_ended(*name.writer);
  return kill(name.number_of_writer, 0) != 0 && errno != EPERM;
}

bool runs_here(const TemporaryName& name) {
  return !has_ended(name) && (!name.writer || name.writer->space == this_process().space);
}

bool was_untouched_for_an_hour(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  return !error && fs::file_time_type::clock::now() - written > std::chrono::hours(1);
}

}  // namespace

ReplacingFile::ReplacingFile(const fs::path& target, Links links, std::optional<Permissions> permissions)
    : target_{links == Links::followed ? resolved(whole_name(target)) : whole_name(target)},
      temporary_{temporary_name(target_)} {
  require_may_write(target_);
  if (links == Links::refused) require_no_link(target_);
  std::error_code error;
  const auto status = fs::status(target_, error);
  // The temporary file has a shorter name, and would be renamed after the work.
  if (error == std::errc::filename_too_long)
    throw DataError(fmt::format("{}: cannot be written: {}", target_.string(), error.message()));
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw DataError(
        fmt::format("{}: cannot be written: expected a regular file or none, found a folder or device",
                    target_.string()));
  if (const auto there = permissions_of(target_)) permissions = there;
  constexpr mode_t usual = 0666, own = 0600;  // less what the user's mask takes away
  descriptor_ =
      open(temporary_.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions ? own : usual);
  const int code = errno;
  if (descriptor_ >= 0 && permissions) set_permissions(descriptor_, *permissions);
  if (descriptor_ >= 0) return;
  // What stands there is somebody else's.
  temporary_.keep();
  fail("create", code);
}

ReplacingFile::~ReplacingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ReplacingFile::write(const void* bytes, std::size_t count) {
  const FileSizeSignalBlock block;
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(descriptor_, next, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    next += written;
    count -= static_cast<std::size_t>(written);
  }
}

void ReplacingFile::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("write", errno);
}

void ReplacingFile::commit() {
  if (descriptor_ >= 0) close();
  std::error_code error;
  fs::rename(temporary_.path(), target_, error);
  if (error) throw DataError(fmt::format("{}: cannot be replaced: {}", target_.string(), error.message()));
  temporary_.keep();
}

void ReplacingFile::commit_to_disk() {
  if (fsync(descriptor_) != 0) fail("write", errno);
  commit();
  sync_folder(target_.parent_path());
}

void sync_folder(const fs::path& folder) {
  const fs::path path = folder.empty() ? "." : folder;
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const int code = errno;
  if (descriptor >= 0) ::close(descriptor);
  // Some network file systems sync no folders: their servers do so by themselves.
  if (!synced && code != EINVAL && code != ENOTSUP)
    throw DataError(fmt::format("{}: cannot be written to the disk: {}", path.string(),
                                std::generic_category().message(code)));
}

void ReplacingFile::fail(std::string_view action, int code) const {
  throw DataError(fmt::format("{}: cannot be written: failed to {} {}: {}", target_.string(), action,
                              temporary_.path().filename().string(), std::generic_category().message(code)));
}

void check_replaceable(const fs::path& target, Links links) { const ReplacingFile file(target, links); }

fs::path temporary_name(const fs::path& target, std::string_view ending) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}-{}.{}", name_in_temporary(target.string()), this_process().text(), counter++,
                     ending);
}

std::string name_in_temporary(const std::string& target) {
  // What temporary_name() adds has at most 91 bytes.
  constexpr std::size_t longest = 160, kept = 150;
  const std::size_t begin = target.rfind('/') + 1;
  if (target.size() - begin <= longest) return target;
  std::size_t end = begin + kept;
  // No character of UTF-8 is cut, which some file systems would refuse.
  while (end > begin && (static_cast<unsigned char>(target[end]) & 0xc0) == 0x80) --end;
  return target.substr(0, end) + "~" + short_sum(target.substr(begin));
}

std::optional<std::string> target_of_writer(const std::string& name) {
  const auto parts = temporary_name_in(name);
  return parts ? std::optional(parts->target) : std::nullopt;
}

std::optional<std::string> target_of_dead_writer(const std::string& name) {
  const auto parts = temporary_name_in(name);
  return parts && has_ended(*parts) ? std::optional(parts->target) : std::nullopt;
}

bool is_of_another_here(const std::string& name) {
  const auto parts = temporary_name_in(name);
  return parts && parts->writer && runs_here(*parts) && *parts->writer != this_process();
}

void remove_leftovers(const fs::path& folder,
                      const std::function<bool(const std::string& target)>& is_target) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const auto parts = temporary_name_in(entry->path().filename().string());
    if (!parts || !is_target(parts->target)) continue;
    // Where the name has no machine, it may be another one's.
    const bool is_known_to_be_dead = parts->writer && has_ended(*parts);
    std::error_code ignored;
    if (is_known_to_be_dead || (!runs_here(*parts) && was_untouched_for_an_hour(entry->path())))
      fs::remove(entry->path(), ignored);
  }
}

void replace_file(const fs::path& target, std::string_view text, Links links) {
  ReplacingFile file(target, links);
  file.write(text);
  file.commit();
}

}  // namespace widelimit::files
