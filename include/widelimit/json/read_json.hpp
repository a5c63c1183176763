#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

/// Reads JSON, in the same way for network files, configurations and reference files.
namespace widelimit {

/// Nesting depth of lists and objects; deeper ones are refused, because readers descend by recursion.
inline constexpr std::size_t deepest_json = 256;

/// Parses a JSON text. `name` precedes every message: a file, or a description of the text.
/// Errors  DataError: no JSON (line and column), a key that an object holds twice, numbers beyond the range of double,
///         more than `deepest_json` levels, 1,000,000 lists and objects, or 1 MiB in one text; all but the first name
///         the field.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& name);

/// Reads a file of at most 256 MiB. DataError naming it if it cannot be read, and as parse_json.
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& file);

/// Call it while an exception is handled: throws it again. This library's errors are preceded by `name`
/// unless their message begins with it; the exceptions of the JSON library become DataErrors.
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
