#include "files/process_identity.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>
#include <vector>

namespace widelimit::files {
namespace {

std::string link_text(const char* link) {
  std::array<char, 256> text{};
  const ssize_t length = readlink(link, text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "";
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "unknown";
  constexpr std::size_t longest = 48;
  std::string host = std::string(name.data()).substr(0, longest);
  for (char& c : host)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return host;
}

std::string eight_digits(std::uint64_t number) { return fmt::format("{:08x}", number & 0xffffffff); }

/// FNV-1a, the same in every process.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash ^ (hash >> 32);
}

std::string number_space() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return short_sum(boot + link_text("/proc/self/ns/pid"));
}

/// As /proc counts, where has_ended() looks; 0 if that is not there.
long number_in_proc() { return std::strtol(link_text("/proc/self").c_str(), nullptr, 10); }

std::vector<std::string> fields_of(const std::string& text) {
  std::vector<std::string> fields{""};
  for (const char c : text)
    if (c == '-')
      fields.emplace_back();
    else
      fields.back() += c;
  return fields;
}

bool is_hexadecimal(const std::string& text) {
  return text.size() == 8 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string short_sum(std::string_view text) { return eight_digits(hash_of(text)); }

std::string ProcessIdentity::text() const { return fmt::format("{}-{}-{}-{}", host, space, process, random); }

std::optional<ProcessIdentity> ProcessIdentity::parse(const std::string& text) {
  const auto fields = fields_of(text);
  if (fields.size() != 4 || fields[0].empty() || !is_hexadecimal(fields[1]) || !is_hexadecimal(fields[3]))
    return {};
  long process = 0;
  const char* end = fields[2].data() + fields[2].size();
  const auto [stop, error] = std::from_chars(fields[2].data(), end, process);
  if (error != std::errc{} || stop != end || process <= 0) return {};
  return ProcessIdentity{fields[0], fields[1], process, fields[3]};
}

ProcessIdentity this_process() {
  static std::mutex mutex;
  static ProcessIdentity known;
  const long in_proc = number_in_proc();
  const long number = in_proc > 0 ? in_proc : getpid();
  const std::scoped_lock lock(mutex);
  // One that was forked is another.
  if (known.process != number)
    known = {host_name(), number_space(), number, eight_digits(std::random_device{}())};
  return known;
}

bool has_ended(const ProcessIdentity& process) {
  const ProcessIdentity own = this_process();
  if (process.host != own.host || process.space != own.space || number_in_proc() <= 0) return false;
  if (process.process == own.process) return process.random != own.random;
  std::ifstream stream(fmt::format("/proc/{}/stat", process.process));
  // Others' processes may be hidden there.
  if (!stream) return kill(static_cast<pid_t>(process.process), 0) != 0 && errno == ESRCH;
  std::string facts;
  std::getline(stream, facts);
  // "4711 (name) Z ...": it has ended, and nobody has asked how.
  const std::size_t name_end = facts.rfind(')');
  return name_end != std::string::npos && facts.substr(name_end, 3) == ") Z";
}

}  // namespace widelimit::files
