#pragma once

#include <string>

namespace widelimit::numerics::formula {

/// 32 hexadecimal digits that tell texts apart, the same in every process. Against accidents: whoever wants to can make
/// two texts of one digest.
[[nodiscard]] std::string digest_of(const std::string& text);

}  // namespace widelimit::numerics::formula
