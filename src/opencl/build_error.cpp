#include "opencl/build_error.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "opencl/call.hpp"
#include "opencl/pocl_cache.hpp"

namespace widelimit::opencl {
namespace {

/// Bytes of a log that a message has.
constexpr std::size_t most_bytes = 2000;

std::string build_log(cl_device_id device, cl_program program) {
  std::size_t size = 0;
  cl_int code = functions()->get_build_info(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (code == CL_SUCCESS && size > 0)
    code = functions()->get_build_info(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  if (code != CL_SUCCESS) return fmt::format("(clGetProgramBuildInfo: {})", error_name(code));
  // Some drivers end texts early.
  log.resize(std::min(log.find('\0'), log.size()));
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.pop_back();
  return log.empty() ? "(the driver left no log)" : log;
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Writes a text into a new file of the system's temporary folder, which only its owner can read. What to tell of it.
std::string kept_in_file(const std::string& text) {
  std::error_code no_folder;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(no_folder);
  if (no_folder) return fmt::format("the whole log cannot be kept: {}", no_folder.message());
  std::string name = (folder / "widelimit-build-log-XXXXXX").string();
  const int file = mkstemp(name.data());
  const bool is_written = file >= 0 && write_all(file, text);
  const std::string reason = std::generic_category().message(errno);
  if (file >= 0) close(file);
  if (is_written) return fmt::format("the whole log, and the source, are in {}", name);
  if (file >= 0) unlink(name.c_str());
  return fmt::format("the whole log cannot be kept in {}: {}", folder.string(), reason);
}

/// A log in one line, as errors are.
std::string in_one_line(std::string log) {
  for (std::size_t at = 0; (at = log.find('\n', at)) != log.npos; at += 3) log.replace(at, 1, " / ");
  return log;
}

/// The first and the last lines of a long log, where the first and the last error stand.
std::string shortened(const std::string& log) {
  const std::string_view all = log, front = all.substr(0, most_bytes / 2),
                         back = all.substr(all.size() - most_bytes / 2);
  const std::size_t first_end = front.rfind('\n'), last_begin = back.find('\n');
  const std::string_view first = first_end == front.npos ? front : front.substr(0, first_end),
                         last = last_begin == back.npos ? back : back.substr(last_begin + 1);
  return fmt::format("{}\n({} bytes left out)\n{}", first, all.size() - first.size() - last.size(), last);
}

}  // namespace

void throw_build_error(const Device& device, cl_program program, const std::string& source, cl_int code) {
  const std::string log = build_log(device.id, program), cache = pocl_cache_remark(device.platform);
  const std::string why =
      cache.empty() ? ", which is a bug of widelimit or of the driver: please report it" : cache;
  const std::string message =
      fmt::format("device: {} ({}, driver {}) cannot build a program of widelimit: clBuildProgram: {}{}",
                  device.name, device.platform, device.driver, error_name(code), why);
  if (log.size() <= most_bytes) throw DeviceError(fmt::format("{}. The log: {}", message, in_one_line(log)));
  const std::string place = kept_in_file(fmt::format("{}\n\n{}", log, source));
  throw DeviceError(fmt::format("{}. The log ({}): {}", message, place, in_one_line(shortened(log))));
}

}  // namespace widelimit::opencl
