#include "files/replacing_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

#include "widelimit/error.hpp"

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

/// Process and number in the name: two writers of one file must not share a temporary one.
fs::path temporary_name(fs::path target) {
  static std::atomic<unsigned> counter{0};
  target += fmt::format(".{}-{}.part", getpid(), counter++);
  return target;
}

struct TemporaryName {
  std::string target;
  pid_t writer;
};

/// What temporary_name() made of a file's name.
std::optional<TemporaryName> temporary_name_in(const std::string& name) {
  constexpr std::string_view ending = ".part";
  if (!name.ends_with(ending)) return {};
  const std::size_t dash = name.rfind('-'), dot = dash == 0 ? name.npos : name.rfind('.', dash - 1);
  if (dash == name.npos || dot == name.npos || dot == 0) return {};
  const auto number = [](std::string_view digits) {
    int value = -1;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    return error == std::errc{} && stop == end ? value : -1;
  };
  const std::string_view text = name;
  const int writer = number(text.substr(dot + 1, dash - dot - 1));
  if (writer <= 0 || number(text.substr(dash + 1, text.size() - ending.size() - dash - 1)) < 0) return {};
  return TemporaryName{name.substr(0, dot), writer};
}

/// While an object lives, this thread takes no SIGXFSZ: writing beyond a limit fails instead.
class FileSizeSignalBlock {
 public:
  FileSizeSignalBlock() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileSizeSignalBlock() {
    // One that came meanwhile would end the program as soon as it may.
    constexpr timespec at_once{0, 0};
    while (sigismember(&before_, SIGXFSZ) == 0 && sigtimedwait(&signal_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileSizeSignalBlock(const FileSizeSignalBlock&) = delete;
  FileSizeSignalBlock& operator=(const FileSizeSignalBlock&) = delete;

 private:
  sigset_t signal_{};
  sigset_t before_{};
};

}  // namespace

ReplacingFile::ReplacingFile(const fs::path& target)
    : target_{resolved(target)}, temporary_{temporary_name(target_)} {
  std::error_code error;
  const auto status = fs::status(target_, error);
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw DataError(
        fmt::format("{}: cannot be written: expected a regular file or none, found a folder or device",
                    target_.string()));
  constexpr int permissions = 0666;  // less what the user's mask takes away
  descriptor_ = open(temporary_.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
  if (descriptor_ < 0) fail("create", errno);
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

void check_replaceable(const fs::path& target) { const ReplacingFile file(target); }

std::optional<std::string> target_of_writer(const std::string& name) {
  const auto parts = temporary_name_in(name);
  return parts ? std::optional(parts->target) : std::nullopt;
}

std::optional<std::string> target_of_dead_writer(const std::string& name) {
  const auto parts = temporary_name_in(name);
  if (!parts) return {};
  const bool lives = kill(parts->writer, 0) == 0 || errno == EPERM;
  return lives ? std::nullopt : std::optional(parts->target);
}

void replace_file(const fs::path& target, std::string_view text) {
  ReplacingFile file(target);
  file.write(text);
  file.commit();
}

}  // namespace widelimit::files
