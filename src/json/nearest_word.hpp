#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace widelimit {

/// The word that `given` was probably meant to be: the one that takes the fewest letters to insert, remove or replace,
/// of words that take at most a third of its letters. Empty if there is none.
[[nodiscard]] std::string nearest_word(std::string_view given, const std::vector<std::string>& words);

}  // namespace widelimit
