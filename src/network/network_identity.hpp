#pragma once

#include <string>

#include "widelimit/network/network.hpp"

namespace widelimit {

/// What tells networks apart: to_json() of a network, also with layers of a user's own that no file can be read back
/// to, if they have parameters or a formula. NetworkError for others, which nothing tells apart in another process.
[[nodiscard]] std::string network_identity(const Network& network);

}  // namespace widelimit
