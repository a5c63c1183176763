// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_WAVES) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_WAVES

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>

#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {
#endif

/// e^-x and e^-x - 1 for x >= 0, for which vectors have faster functions.
template <typename N>
N decay(const N& x) {
  return exponential(-x);
}
template <typename N>
N decay_less_one(const N& x) {
  return exponential_less_one(-x);
}

/// What functions of exponentials share: their auxiliary number is the variance.
struct ExponentialFormula {
  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  static std::array<N, 1> prepare(const N& variance) {
    return {variance};
  }

 protected:
  /// p + q - 2c, at least 0.
  template <typename N>
  static N distance(const N& p, const N& q, const N& c) {
    return at_least(N(0), (p - c) + (q - c));
  }
};

/// phi(x) = a sin(b x + c0), or the cosine. sin sin = [cos(difference) - cos(sum)] / 2, cos cos = [cos(difference) +
/// cos(sum)] / 2: with e1 = exp(-h (p + q - 2c)), e2 = exp(-h (p + q + 2c)) and h = b^2 / 2 both duals are
/// weight (e1 +- k e2), where sin sin has k = -cos(2 c0) and cos cos the opposite. They are computed from the larger
/// exponential and what the smaller lacks of it: with E = exp(-4h |c|) - 1 and c >= 0 e1 + k e2 = e1 ((1 + k) + k E),
/// with c < 0 it is e2 ((1 + k) + E).
struct WaveFormula : ExponentialFormula {
  double amplitude, frequency, phase;
  bool is_cosine;
  double k, one_plus_k, one_minus_k;

  WaveFormula(double of_amplitude, double of_frequency, double of_phase, bool of_cosine)
      : amplitude{of_amplitude}, frequency{of_frequency}, phase{of_phase}, is_cosine{of_cosine} {
    // Those of the sine that the function is; products of sums and differences keep k exact near +-1.
    const double sine_of_phase = is_cosine ? std::cos(phase) : std::sin(phase);
    const double cosine_of_phase = is_cosine ? std::sin(phase) : std::cos(phase);
    k = (sine_of_phase - cosine_of_phase) * (sine_of_phase + cosine_of_phase);
    one_plus_k = 2 * sine_of_phase * sine_of_phase;
    one_minus_k = 2 * cosine_of_phase * cosine_of_phase;
  }

  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    const N at = fused(N(frequency), x, N(phase));
    return N(amplitude) * (is_cosine ? cosine(at) : sine(at));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const double half_square = frequency * frequency / 2, value_weight = amplitude * amplitude / 2;
    const double slope_weight = value_weight * frequency * frequency;
    const N size = magnitude(c);
    const N near = decay(N(half_square) * distance(left[0], right[0], size));
    const N lack = decay_less_one(N(4 * half_square) * size);
    const auto opposed = is_less(c, N(0));
    const N value_factor = choose(opposed, N(value_weight), N(value_weight * k));
    const N slope_factor = choose(opposed, N(slope_weight), N(-slope_weight * k));
    return {near * fused(value_factor, lack, N(value_weight * one_plus_k)),
            near * fused(slope_factor, lack, N(slope_weight * one_minus_k))};
  }
};

/// phi(x) = sqrt(2) sin(sqrt(2 gamma) x + pi / 4), whose dual is a radial basis function.
struct RadialFormula : ExponentialFormula {
  double gamma;
  explicit RadialFormula(double of_gamma) : gamma{of_gamma} {}

  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    return N(std::numbers::sqrt2) * sine(fused(N(std::sqrt(2 * gamma)), x, N(std::numbers::pi / 4)));
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N value = decay(N(gamma) * distance(left[0], right[0], c));
    return {value, N(2 * gamma) * value};
  }
};

/// phi(x) = a exp(b x). p + c and q + c are exact where c is close to -p and -q, so that nothing is lost for opposed
/// inputs.
struct GrowthFormula : ExponentialFormula {
  double amplitude, rate;
  GrowthFormula(double of_amplitude, double of_rate) : amplitude{of_amplitude}, rate{of_rate} {}

  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    return N(amplitude) * exponential(N(rate) * x);
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const double square = rate * rate;
    const N value = N(amplitude * amplitude) * exponential(N(square / 2) * ((left[0] + c) + (right[0] + c)));
    return {value, N(square) * value};
  }
};
}

#endif
