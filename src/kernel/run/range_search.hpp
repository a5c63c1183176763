#pragma once

#include <optional>
#include <string>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// The layer of a network after which a kernel of a pair is not finite although it is finite before it, such as
/// "layers[3] (erf)"; errors name it. Each input is a batch of one; `same_input` says that `right` is `left`. Returns
/// nothing if there is no such layer, and for inputs of so many positions that the search would take long.
template <typename Scalar>
[[nodiscard]] std::optional<std::string> layer_out_of_range(const Network& network,
                                                            const Inputs<Scalar>& left,
                                                            const Inputs<Scalar>& right, bool same_input);

}  // namespace widelimit
