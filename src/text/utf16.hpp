#pragma once

#include <string>
#include <string_view>

namespace widelimit {

/// Whether bytes begin with the byte order mark of UTF-16, of either order.
bool has_utf16_mark(std::string_view bytes);

/// The text as UTF-8, without its mark. Throws DataError, with the offset, for half a unit at the end and for
/// surrogates that are no pair.
std::string utf8_of_utf16(std::string_view bytes);

}  // namespace widelimit
