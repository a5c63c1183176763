#pragma once

#include <optional>
#include <string>
#include <vector>

namespace widelimit::cli {

/// The known name that a name was probably meant to be: the closest one by inserted, deleted and replaced letters,
/// case, blanks, "_" and "-" aside, if these are at most one in five letters or less, else at most two. Nothing for a
/// known name itself.
[[nodiscard]] std::optional<std::string> similar_name(const std::string& name,
                                                      const std::vector<std::string>& known);

}  // namespace widelimit::cli
