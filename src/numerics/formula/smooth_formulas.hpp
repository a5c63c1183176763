// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_SMOOTH) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_SMOOTH

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <array>
#include <numbers>
#include <span>
#include <vector>

#include "numerics/formula/arc.hpp"
#include "numerics/rows/exponential_rows.hpp"
#include "numerics/rows/tilted_rows.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {
#endif

/// What erf, GELU and exp(-x^2) share. Auxiliary numbers: the variance p, and the inverse root of s + p.
struct TiltedFormula {
  TiltedDual dual;

  [[nodiscard]] static std::size_t auxiliary_count() { return 2; }
  [[nodiscard]] static double largest_variance(Precision precision) {
    return precision == Precision::narrow ? 1e18 : 1e150;
  }
  template <typename N>
  std::array<N, 2> prepare(const N& variance) const {
    return {variance, N(1) / root(N(dual.shift) + variance)};
  }

 protected:
  /// R, of s^2 + s (p + q) + det, of which no term is negative, so that nothing cancels.
  template <typename N>
  [[nodiscard]] N tilted_root(const N& p, const N& q, const N& det) const {
    return root(fused(N(dual.shift), p + q, det) + N(dual.shift * dual.shift));
  }
};

struct ErfFormula : TiltedFormula {
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N weight = N(dual.weight);
    const N tilted = tilted_root(left[0], right[0], determinant(left[0], right[0], c));
    return {fused(weight, acute_angle(c, tilted, left[1] * right[1]), N(dual.offset)), weight / tilted};
  }
};

/// The formulas of gelu.cpp.
struct GeluFormula : TiltedFormula {
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N one = N(1), half = N(0.5), over_two_pi = N(std::numbers::inv_pi / 2);
    const N inverse = left[1] * right[1], det = determinant(left[0], right[0], c);
    const N tilted = tilted_root(left[0], right[0], det), over_root = one / tilted;
    const N both_positive = over_two_pi * acute_angle(tilted, magnitude(c), inverse);
    // For c < 0 s tends to 0, and 1/2 minus the other angle would lose it.
    const N s = choose(is_less(c, N(0)), both_positive, half - both_positive);
    const N shrinkage = (N(2) + (left[0] + right[0])) * (inverse * inverse);
    const N density = over_two_pi * over_root;
    const N rest = fused(c, c * shrinkage, det);
    const N slope = fused(over_root, over_root, shrinkage);
    return {fused(c, s, density * rest), fused(c * density, slope, s)};
  }
};

/// With a negative shift exp(b x^2), b > 0, whose expectation exists for variances below half of it.
struct GaussianFormula : TiltedFormula {
  [[nodiscard]] double largest_variance(Precision precision) const {
    return dual.shift < 0 ? -dual.shift / 2 : TiltedFormula::largest_variance(precision);
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N over_root = N(1) / tilted_root(left[0], right[0], determinant(left[0], right[0], c));
    const N value = N(dual.weight) * over_root;
    return {value, value * over_root * (c * over_root)};
  }
};

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

/// Sines and cosines, by the larger exponential and what the smaller lacks of it.
struct WaveFormula : ExponentialFormula {
  WaveDual dual;
  explicit WaveFormula(const WaveDual& of) : dual{of} {}

  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N size = magnitude(c);
    const N near = exponential(N(-dual.half_square) * distance(left[0], right[0], size));
    const N lack = exponential_less_one(N(-4 * dual.half_square) * size);
    const auto opposed = is_less(c, N(0));
    const N value_factor = choose(opposed, N(dual.value_weight), N(dual.value_weight * dual.k));
    const N derivative_factor =
        choose(opposed, N(dual.derivative_weight), N(-dual.derivative_weight * dual.k));
    return {near * fused(value_factor, lack, N(dual.value_weight * dual.one_plus_k)),
            near * fused(derivative_factor, lack, N(dual.derivative_weight * dual.one_minus_k))};
  }
};

/// Radial basis functions.
struct RadialFormula : ExponentialFormula {
  ExponentialDual dual;
  explicit RadialFormula(const ExponentialDual& of) : dual{of} {}

  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N value = N(dual.weight) * exponential(N(-dual.rate) * distance(left[0], right[0], c));
    return {value, N(dual.slope) * value};
  }
};

/// phi(x) = a exp(b x). p + c and q + c are exact where c is close to -p and -q, so that nothing is lost for opposed
/// inputs.
struct GrowthFormula : ExponentialFormula {
  ExponentialDual dual;
  explicit GrowthFormula(const ExponentialDual& of) : dual{of} {}

  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N value = N(dual.weight) * exponential(N(dual.rate) * ((left[0] + c) + (right[0] + c)));
    return {value, N(dual.slope) * value};
  }
};

/// Polynomials: the moments of polynomial.cpp, g_k(p) = sum_m table[k][m] (p - centre)^m, are the auxiliary numbers.
struct PolynomialFormula {
  double centre;
  std::vector<std::vector<double>> table;

  [[nodiscard]] std::size_t auxiliary_count() const { return table.size(); }
  template <typename N>
  std::vector<N> prepare(const N& variance) const {
    std::vector<N> numbers;
    const N from_centre = variance - N(centre);
    for (const std::vector<double>& row : table) {
      // Symbols fold no constants, so an order without moments, and the highest coefficient, are numbers as such.
      N sum = N(row.empty() ? 0.0 : row.back());
      for (std::size_t m = row.empty() ? 0 : row.size() - 1; m-- > 0;)
        sum = fused(sum, from_centre, N(row[m]));
      numbers.push_back(sum);
    }
    return numbers;
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    N value = left[table.size() - 1] * right[table.size() - 1];
    if (table.size() == 1) return {value, N(0)};
    // Horner's scheme for the value and for its derivative in c, which begins with the highest coefficient.
    N derivative = value;
    value = fused(value, c, left[table.size() - 2] * right[table.size() - 2]);
    for (std::size_t k = table.size() - 2; k-- > 0;) {
      derivative = fused(derivative, c, value);
      value = fused(value, c, left[k] * right[k]);
    }
    return {value, derivative};
  }
};

/// exp(-x^2) sin(x): the formulas of gabor.cpp.
struct GaborFormula : ExponentialFormula {
  [[nodiscard]] static double largest_variance(Precision precision) {
    return precision == Precision::narrow ? 1e15 : 1e140;
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N one = N(1), four = N(4), det = four * determinant(left[0], right[0], c),
            sides = left[0] + right[0];
    const N d = one + (N(2) * sides + det), inverse = one / d;
    const N factor = exponential(N(-0.5) * ((sides + det) * inverse)) / root(d);
    const N tilted = c * inverse, sine = hyperbolic_sine(tilted);
    const N weight = four * tilted * (one + (one + sides) * inverse);
    const N cosine = root(fused(sine, sine, one));
    return {factor * sine, factor * fused(weight, sine, fused(N(8) * tilted, c, one) * inverse * cosine)};
  }
};
}

#endif
