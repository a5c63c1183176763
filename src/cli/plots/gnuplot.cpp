#include "cli/plots/gnuplot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <regex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

std::string message_of(int code) { return std::generic_category().message(code); }

/// A file in memory that a child process reads or writes.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : descriptor_{memfd_create(name, MFD_CLOEXEC)} {
    if (descriptor_ < 0) throw Error(fmt::format("cannot make a file in memory: {}", message_of(errno)));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// Writes the text and goes back to its beginning.
  void fill(std::string_view text) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t written = write(descriptor_, text.data() + done, text.size() - done);
      if (written < 0) throw Error(fmt::format("cannot write to a file in memory: {}", message_of(errno)));
      done += static_cast<std::size_t>(written);
    }
    lseek(descriptor_, 0, SEEK_SET);
  }

  /// The first line that is not empty.
  [[nodiscard]] std::string first_line() const {
    std::array<char, 400> bytes{};
    const ssize_t count = pread(descriptor_, bytes.data(), bytes.size(), 0);
    const std::string_view text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    const std::size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
    return std::string(text.substr(begin, text.find('\n', begin) - begin));
  }

 private:
  int descriptor_;
};

/// Starts gnuplot with these files as its standard ones. Throws Error.
pid_t start(int input, int output, int errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGXFSZ);  // ignored in this program
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A group of its own: Ctrl-C reaches this program alone, which then ends the other.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string name = "gnuplot";
  std::array<char*, 2> arguments{name.data(), nullptr};
  pid_t child = 0;
  const int code = posix_spawnp(&child, name.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code == ENOENT) throw Error("gnuplot is not installed");
  if (code != 0) throw Error(fmt::format("gnuplot cannot be started: {}", message_of(code)));
  return child;
}

/// The child's status as waitpid() gives it.
int wait_for(pid_t child, const std::stop_token& stop) {
  constexpr std::chrono::milliseconds interval{5};
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (stop.stop_requested()) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      throw Cancelled("interrupted");
    }
    std::this_thread::sleep_for(interval);
  }
  return status;
}

std::string failure(int status, const std::string& complaint) {
  const std::string how = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                              : fmt::format("failed with status {}", WEXITSTATUS(status));
  return fmt::format("gnuplot {}{}{}", how, complaint.empty() ? "" : ": ", complaint);
}

void run(const std::string& script, int picture, const std::stop_token& stop) {
  MemoryFile input("script"), errors("errors");
  input.fill(script);
  const int status = wait_for(start(input.descriptor(), picture, errors.descriptor()), stop);
  if (status != 0) throw Error(failure(status, errors.first_line()));
  struct stat information {};
  if (fstat(picture, &information) != 0 || information.st_size == 0)
    throw Error(fmt::format("gnuplot drew nothing: {}", errors.first_line()));
}

}  // namespace

std::string gnuplot_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

std::string gnuplot_canvas(int width, int height) {
  return fmt::format("set terminal pngcairo size {},{} noenhanced font ',11'\n", width, height);
}

PictureFormat picture_format(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  for (const auto& [known, format] :
       {std::pair(".png", PictureFormat::png), std::pair(".svg", PictureFormat::svg),
        std::pair(".pdf", PictureFormat::pdf)})
    if (ending == known) return format;
  throw ArgumentError(
      fmt::format("{}: expected a picture's name that ends in .png, .svg or .pdf", file.string()));
}

std::string in_format(const std::string& script, PictureFormat format) {
  if (format == PictureFormat::png) return script;
  static const std::regex terminal("^set terminal pngcairo( enhanced)? size (\\d+),(\\d+)");
  std::smatch found;
  if (!std::regex_search(script, found, terminal))
    throw std::logic_error("a gnuplot script begins with the terminal of a PNG and its size");
  const int width = std::stoi(found[2]), height = std::stoi(found[3]);
  const std::string begin = format == PictureFormat::svg
                                ? fmt::format("set terminal svg{} size {},{}", found[1].str(), width, height)
                                : fmt::format("set terminal pdfcairo{} size {}in,{}in", found[1].str(),
                                              width / 100.0, height / 100.0);
  return begin + found.suffix().str();
}

bool Gnuplot::draw(const std::string& script, files::ReplacingFile& picture, std::string_view name) {
  if (has_failed_) return false;
  try {
    run(script, picture.descriptor(), stop_);
    return true;
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    has_failed_ = true;
    fmt::print(stderr, "widelimit: warning: {} and further pictures are not drawn: {}\n", name, error.what());
    return false;
  }
}

}  // namespace widelimit::cli
