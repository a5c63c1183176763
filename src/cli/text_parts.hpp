#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Taking option values apart.
namespace widelimit::cli {

/// The parts of a text between separators; at least one.
[[nodiscard]] std::vector<std::string> split(const std::string& text, char separator);

/// The number that the whole text is, as std::from_chars reads it ("inf" and "nan" as well); nothing where something
/// else stands in front of it, behind it or in its place.
[[nodiscard]] std::optional<double> whole_text_number(std::string_view text);

}  // namespace widelimit::cli
