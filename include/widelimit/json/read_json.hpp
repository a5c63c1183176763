#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

/// Reading of JSON, the same for network files, configurations and reference files.
namespace widelimit {

/// Lists and objects within one another; deeper ones are refused, because readers descend by recursion.
inline constexpr std::size_t deepest_json = 256;

/// Parses a JSON text. `name` stands before every message: a file, or what the text is.
/// Errors  DataError: no JSON (line and column), a key that an object holds twice, numbers beyond the range of double,
///         more than `deepest_json` levels; the last three name the field.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& name);

/// Reads a file of at most 256 MiB. DataError naming it if it cannot be read, and as parse_json.
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& file);

/// To be called while an exception is handled: throws it again. This library's errors get `name` before
/// their message unless it stands there already; the exceptions of the JSON library become DataErrors.
[[noreturn]] void rethrow_named(const std::string& name);

/// body(), with `name`, the file that it works on, before its errors.
template <typename Body>
decltype(auto) naming_errors(const std::string& name, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    rethrow_named(name);
  }
}

}  // namespace widelimit
