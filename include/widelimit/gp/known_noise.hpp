#pragma once

#include <vector>

#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// The amplitude a > 0 under which targets [n] are most likely, N(0, a K + noise I): Brent's method around the best of
/// the amplitudes for which noise / a is one of `grid` times the mean diagonal of K. NotPositiveDefinite if K + (noise
/// / a) I cannot be factorised for any of them, ArgumentError for a noise or a grid that is not positive. Cost: n^3 / 3
/// multiplications for each of about 40 amplitudes.
[[nodiscard]] double known_noise_amplitude(const Matrix<double>& gram, const Matrix<double>& targets,
                                           double noise, const std::vector<double>& grid, int threads);

}  // namespace widelimit::gp
