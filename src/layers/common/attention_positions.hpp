#pragma once

#include "widelimit/layers/attention.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::layers {

/// R between the positions of two inputs, [d, d'] (docs/theory/attention.md, section 1).
Matrix<double> position_covariance(const PositionalEncodings& positions, const Shape& left,
                                   const Shape& right);

/// Throws ArgumentError if the encodings are out of range in themselves.
void check_positions(const PositionalEncodings& positions);

/// Throws ArgumentError if the encodings do not fit inputs of this shape.
void check_positions_fit(const PositionalEncodings& positions, const Shape& input);

/// Throws ArgumentError if the encodings fit inputs of each shape, but not the two together.
void check_positions_pair(const PositionalEncodings& positions, const Shape& left, const Shape& right);

}  // namespace widelimit::layers
