#pragma once

#include "widelimit/kernel/inputs.hpp"

namespace widelimit {

/// Inputs that cost what data cost, for measurements without data. Images have smooth shapes, edges and a little noise,
/// as photographs have: the cost of attention depends on how smooth they are. Vectors and sequences, whose tokens
/// resemble each other no more than words do, are independent normal numbers; sequences carry random graphs, for layers
/// that need one.
template <typename Scalar>
[[nodiscard]] Inputs<Scalar> typical_inputs(Index count, const Shape& shape, Index channels);

}  // namespace widelimit
