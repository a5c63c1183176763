#pragma once

#include <optional>
#include <string>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// The layer of a network, "layers[3] (erf)", after which a kernel of a pair is not finite although it is before
/// it: for errors. Each input is a batch of one; `same_input`: `right` is `left`. Nothing if there is no such layer,
/// and for inputs of so many positions that looking for it would take long.
template <typename Scalar>
[[nodiscard]] std::optional<std::string> layer_out_of_range(const Network& network,
                                                            const Inputs<Scalar>& left,
                                                            const Inputs<Scalar>& right, bool same_input);

}  // namespace widelimit
