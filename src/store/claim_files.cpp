#include "store/claim_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <fstream>
#include <stop_token>
#include <system_error>
#include <utility>

#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/files/writing_places.hpp"

namespace widelimit::store {
namespace {

namespace fs = std::filesystem;

/// Every process touches it to learn what time the file system has.
constexpr const char* clock_name = "clock";

/// With no time given, utimensat() sets the clock of the file system, which may be that of another machine.
void touch(const fs::path& file) { static_cast<void>(utimensat(AT_FDCWD, file.c_str(), nullptr, 0)); }

/// Of a claim that is there; nothing of one that is gone, or is no claim.
std::string first_line(const fs::path& file) {
  constexpr std::uint64_t longest_claim = 4096;
  try {
    const std::string text = files::read_file(file, longest_claim, "a claim");
    return text.substr(0, text.find('\n'));
  } catch (const DataError&) {
    return "";
  }
}

/// "IDENTITY NUMBER".
std::optional<files::ProcessIdentity> owner_in(const std::string& text) {
  return files::ProcessIdentity::parse(text.substr(0, text.find(' ')));
}

std::string unique_owner() {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{} {}", files::this_process().text(), counter++);
}

[[noreturn]] void fail(const fs::path& path, int code) {
  throw DataError(fmt::format("{}: the store cannot be written to: {}", path.string(),
                              std::generic_category().message(code)));
}

}  // namespace

ClaimFiles::ClaimFiles(fs::path folder, ClaimPulse pulse)
    : folder_{std::move(folder)}, pulse_{pulse}, owner_{unique_owner()} {
  std::error_code error;
  files::require_may_write(folder_);
  files::require_no_link(folder_);
  files::require_no_link(folder_ / clock_name);
  fs::create_directories(folder_, error);
  if (error) fail(folder_, error.value());
  std::ofstream(folder_ / clock_name, std::ios::app).flush();
  for (const auto& entry : fs::directory_iterator(folder_, error))
    if (entry.path().filename() != clock_name && is_abandoned(entry.path())) remove_abandoned(entry.path());
  toucher_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex idle;
    std::condition_variable_any wake;
    std::unique_lock lock(idle);
    // The thread sleeps until the next touch or until it is to stop.
    while (!wake.wait_for(lock, stop, pulse_.interval, [&] { return stop.stop_requested(); })) touch_held();
  });
}

ClaimFiles::~ClaimFiles() {
  toucher_.request_stop();
  toucher_.join();
  // A copy is walked through, because release() takes names out of the list.
  for (const std::string& name : std::vector<std::string>(held_)) release(name);
}

bool ClaimFiles::take(const std::string& name) {
  const fs::path file = folder_ / name;
  if (make(name)) return true;
  if (!is_abandoned(file)) return false;
  remove_abandoned(file);
  return make(name);
}

bool ClaimFiles::make(const std::string& name) {
  const fs::path file = folder_ / name;
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0 && errno == EEXIST) return false;
  if (descriptor < 0) fail(file, errno);
  const std::string text = owner_ + "\n";
  // Without an owner in it, a claim counts until it is old.
  static_cast<void>(!write(descriptor, text.data(), text.size()));
  close(descriptor);
  const std::scoped_lock lock(mutex_);
  held_.push_back(name);
  return true;
}

void ClaimFiles::release(const std::string& name) {
  {
    const std::scoped_lock lock(mutex_);
    std::erase(held_, name);
  }
  // It may have been taken for abandoned, and be another's now.
  std::error_code ignored;
  if (first_line(folder_ / name) == owner_) fs::remove(folder_ / name, ignored);
}

std::vector<std::string> ClaimFiles::taken_by_others(const std::string& beginning) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(beginning) && first_line(entry.path()) != owner_ && !is_abandoned(entry.path()))
      names.push_back(name);
  }
  return names;
}

std::optional<files::ProcessIdentity> ClaimFiles::holder(const std::string& name) const {
  return owner_in(first_line(folder_ / name));
}

bool ClaimFiles::is_abandoned(const fs::path& file) const {
  const auto owner = owner_in(first_line(file));
  if (owner && has_ended(*owner)) return true;
  std::error_code error;
  const auto touched = fs::last_write_time(file, error);
  return !error && now() - touched > pulse_.abandoned_after;
}

/// Moves a claim out of the way and only then looks at it: what another process has put there meanwhile goes back.
void ClaimFiles::remove_abandoned(const fs::path& file) const {
  static std::atomic<unsigned> counter{0};
  const std::string judged = first_line(file);
  const fs::path aside = folder_ / fmt::format("abandoned-{}-{}", files::this_process().text(), counter++);
  std::error_code error;
  // Of several processes that find a claim abandoned only one succeeds in moving it.
  fs::rename(file, aside, error);
  if (error) return;
  // A link does not replace a claim that yet another process has made meanwhile.
  if (first_line(aside) != judged) fs::create_hard_link(aside, file, error);
  fs::remove(aside, error);
}

fs::file_time_type ClaimFiles::now() const {
  touch(folder_ / clock_name);
  std::error_code error;
  const auto time = fs::last_write_time(folder_ / clock_name, error);
  // If the clock cannot be read, no claim counts as old, so that none is taken from a process that still works.
  return error ? fs::file_time_type::min() : time;
}

void ClaimFiles::touch_held() {
  const std::scoped_lock lock(mutex_);
  for (const std::string& name : held_) touch(folder_ / name);
}

}  // namespace widelimit::store
