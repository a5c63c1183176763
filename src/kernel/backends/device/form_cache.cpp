#include "kernel/backends/device/form_cache.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "kernel/backends/device/device_notices.hpp"
#include "numerics/formula/text_digest.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/user_cache.hpp"
#include "widelimit/files/writing_places.hpp"
#include "widelimit/version.hpp"

namespace widelimit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".form";

/// Names of devices are short; what is longer was not written here.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 16;

constexpr const char* consequence = "so that it is measured again, which costs some seconds and no result";

/// Nothing where the environment names no folder.
std::optional<fs::path> cache_folder() {
  // No thread of the library sets variables of the environment.
  const char* own = std::getenv(cache_variable);  // NOLINT(concurrency-mt-unsafe)
  if (own != nullptr && *own != '\0') return own;
  const auto found = files::user_cache("widelimit");
  return found ? std::optional(found->folder) : std::nullopt;
}

/// All of a file but the form.
std::string head_of(const FormKey& key) {
  return fmt::format(
      "widelimit, form of a device, 1\nversion: {}\ndevice: {}\nplatform: {}\ndriver: {}\nchain: {}\n",
      version, key.device, key.platform, key.driver, key.chain);
}

std::string text_of(const FormKey& key, const DeviceForm& form) {
  return fmt::format("{}form: {}\n", head_of(key), to_string(form));
}

fs::path file_in(const fs::path& folder, const FormKey& key) {
  return folder / (numerics::formula::digest_of(head_of(key)) + std::string(ending));
}

bool is_in_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// The end of the number or name that begins at `begin`, with the sign of an exponent.
std::size_t end_of_word(std::string_view text, std::size_t begin) {
  const bool is_number = std::isdigit(static_cast<unsigned char>(text[begin])) != 0;
  std::size_t end = begin;
  const auto continues = [&] {
    const char letter = text[end];
    if (is_in_word(letter)) return true;
    return is_number && (letter == '.' || ((letter == '-' || letter == '+') && text[end - 1] == 'e'));
  };
  while (end < text.size() && continues()) ++end;
  return end;
}

bool is_constant(std::string_view word) {
  return std::isdigit(static_cast<unsigned char>(word.front())) != 0 && !word.starts_with("0x") &&
         word.find_first_of(".e") != std::string_view::npos;
}

void add_without_constants(std::string_view source, std::string& to) {
  for (std::size_t at = 0; at < source.size();) {
    if (!is_in_word(source[at])) {
      to += source[at++];
      continue;
    }
    const std::size_t end = end_of_word(source, at);
    const std::string_view word = source.substr(at, end - at);
    to += is_constant(word) ? "#" : word;
    at = end;
  }
}

}  // namespace

std::string chain_digest(std::span<const std::string> sources) {
  std::string text;
  for (const std::string& source : sources) {
    add_without_constants(source, text);
    text += '\0';
  }
  return numerics::formula::digest_of(text);
}

std::optional<DeviceForm> kept_form(const FormKey& key, std::span<const DeviceForm> candidates) {
  const std::optional<fs::path> folder = cache_folder();
  if (!folder) return {};
  const fs::path path = file_in(*folder, key);
  try {
    const auto file = files::RegularFile::if_there(path);
    if (!file) return {};
    if (file->size() <= most_bytes) {
      std::string text(static_cast<std::size_t>(file->size()), '\0');
      text.resize(file->read(0, text.data(), text.size()));
      for (const DeviceForm& form : candidates)
        if (text == text_of(key, form)) return form;
    }
    notice_of_device(fmt::format("device: {}: expected a form of {} as it was kept, got another text, {}",
                                 path.string(), key.device, consequence));
  } catch (const std::exception& error) {
    notice_of_device(
        fmt::format("device: the fastest form cannot be read, {}: {}", consequence, error.what()));
  }
  return {};
}

std::optional<fs::path> keep_form(const FormKey& key, const DeviceForm& form) {
  try {
    const std::optional<fs::path> folder = cache_folder();
    if (!folder)
      throw DataError(fmt::format("none of {}, XDG_CACHE_HOME and HOME names a folder", cache_variable));
    files::require_may_write(*folder);
    std::error_code error;
    fs::create_directories(*folder, error);
    if (error) throw DataError(fmt::format("{}: {}", folder->string(), error.message()));
    files::remove_leftovers(*folder, [](const std::string& target) { return target.ends_with(ending); });
    fs::path path = file_in(*folder, key);
    files::replace_file(path, text_of(key, form), files::Links::refused);
    return path;
  } catch (const std::exception& error) {
    notice_of_device(
        fmt::format("device: the fastest form cannot be kept, {}: {}; set {} to a folder that can be written",
                    consequence, error.what(), cache_variable));
  }
  return {};
}

}  // namespace widelimit
