#include "cli/plots/gnuplot.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <regex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cli/output/result_text.hpp"
#include "cli/program/child_process.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

/// gnuplot without what is about its own windows, fonts, libraries of scripts and fits: a picture is the same for
/// everybody.
pid_t start_gnuplot(int input, int output, int errors) {
  // -d: no file of settings is read, neither the system's nor ~/.gnuplot, which may run commands.
  return start_child({"gnuplot", "-d"}, {input, output, errors},
                     environment_without({"GNU", "GDFONTPATH=", "FIT_"}));
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
  // Without it names would be drawn in the locale's encoding.
  input.fill("set encoding utf8\n" + script);
  const int status = wait_for(start_gnuplot(input.descriptor(), picture, errors.descriptor()), stop);
  if (status != 0) throw Error(failure(status, errors.first_line()));
  struct stat information {};
  if (fstat(picture, &information) != 0 || information.st_size == 0)
    throw Error(fmt::format("gnuplot drew nothing: {}", errors.first_line()));
}

}  // namespace

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
    warn("{} and further pictures are not drawn: {}", name, error.what());
    return false;
  }
}

}  // namespace widelimit::cli
