#pragma once

#include <memory>

#include "widelimit/finite/finite_network.hpp"

namespace widelimit::finite {

/// The layers of a network as one finite layer; errors as FiniteNetwork.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> build_layers(const Network& network, const Form& input,
                                                  const Widths& widths, const Heads& heads,
                                                  std::uint64_t seed);

}  // namespace widelimit::finite
