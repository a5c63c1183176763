#pragma once

#include <memory>

#include "finite/normalised_rows.hpp"
#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/layers/layer_norm.hpp"

namespace widelimit::finite {

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_norm(const Site& site, Centring centring,
                                               const layers::NormOptions& options);

}  // namespace widelimit::finite
