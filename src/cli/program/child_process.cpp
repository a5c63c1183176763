#include "cli/program/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

std::string error_message(int code) { return std::generic_category().message(code); }

/// What posix_spawn() is told besides the program and its words.
class SpawnSettings {
 public:
  explicit SpawnSettings(const ChildFiles& files) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, files.input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, files.output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, files.errors, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGXFSZ);  // ignored in this program
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// As C takes lists of texts.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// An empty file to read from and to write to.
class NullFile {
 public:
  NullFile() : descriptor_{open("/dev/null", O_RDWR | O_CLOEXEC)} {
    if (descriptor_ < 0) throw Error(fmt::format("/dev/null: {}", error_message(errno)));
  }
  ~NullFile() { close(descriptor_); }
  NullFile(const NullFile&) = delete;
  NullFile& operator=(const NullFile&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

MemoryFile::MemoryFile(const char* name) : descriptor_{memfd_create(name, MFD_CLOEXEC)} {
  if (descriptor_ < 0) throw Error(fmt::format("cannot make a file in memory: {}", error_message(errno)));
}

MemoryFile::~MemoryFile() { close(descriptor_); }

void MemoryFile::fill(std::string_view text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0) throw Error(fmt::format("cannot write to a file in memory: {}", error_message(errno)));
    done += static_cast<std::size_t>(written);
  }
  lseek(descriptor_, 0, SEEK_SET);
}

std::string MemoryFile::first_line() const {
  std::array<char, 400> bytes{};
  const ssize_t count = pread(descriptor_, bytes.data(), bytes.size(), 0);
  const std::string_view text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  const std::size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  return std::string(text.substr(begin, text.find('\n', begin) - begin));
}

std::vector<std::string> environment_without(const std::vector<std::string_view>& beginnings) {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const auto begins = [&](std::string_view beginning) { return variable.starts_with(beginning); };
    if (std::ranges::none_of(beginnings, begins)) kept.emplace_back(variable);
  }
  return kept;
}

pid_t start_child(const std::vector<std::string>& words, const ChildFiles& files,
                  const std::vector<std::string>& environment) {
  std::vector<std::string> arguments = words, variables = environment;
  const SpawnSettings settings(files);
  pid_t child = 0;
  const int code = posix_spawnp(&child, words.front().c_str(), settings.actions(), settings.attributes(),
                                pointers_to(arguments).data(), pointers_to(variables).data());
  if (code == ENOENT) throw Error(fmt::format("{} is not installed", words.front()));
  if (code != 0) throw Error(fmt::format("{} cannot be started: {}", words.front(), error_message(code)));
  return child;
}

std::string first_line_printed_by(const std::vector<std::string>& words) {
  const NullFile nothing;
  const MemoryFile output("output");
  try {
    const pid_t child = start_child(words, {nothing.descriptor(), output.descriptor(), nothing.descriptor()},
                                    environment_without({}));
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  } catch (const Error&) {
    return "not found";
  }
  const std::string line = output.first_line();
  return line.empty() ? "not found" : line;
}

}  // namespace widelimit::cli
