#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

/// What users wrote, as error messages show it: never long, never unreadable.
namespace widelimit {

/// The characters of the first `length` bytes, "..." after them if there are more. UTF-8 stays; control characters and
/// bytes that are no character become "?", marks that turn the direction of a text their escapes.
[[nodiscard]] std::string cut_text(std::string_view text, std::size_t length = 60);

/// A JSON value, cut in the same way.
[[nodiscard]] std::string shown_json(const nlohmann::json& value);

}  // namespace widelimit
