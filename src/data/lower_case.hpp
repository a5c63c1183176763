#pragma once

#include <string>

namespace widelimit::data {

/// The text in lower case by the rules of Unicode 14, no language in particular: one character each, but
/// U+0130 becomes i and U+0307, and a capital sigma between a letter with case and none such is the final
/// sigma.
std::u32string to_lower_case(const std::u32string& text);

}  // namespace widelimit::data
