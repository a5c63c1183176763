#include "numerics/formula/polynomial.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "numerics/adjoint_entry.hpp"
#include "numerics/checks.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/formula_activation.hpp"

namespace widelimit::numerics {
namespace {

constexpr int highest_degree = 64;

/// What a polynomial needs of a position: g_k(p) = E[phi^(k)(sqrt(p) z)] / sqrt(k!) = sum_m table[k][m] (p -
/// centre)^m. Then E[phi phi] = sum_k g_k(p) g_k(q) c^k (Mehler), with no division by a variance; the
/// derivative dual is its derivative in c.
struct PolynomialMoments : formula::PolynomialFormula {
  [[nodiscard]] double at(std::size_t order, double p) const {
    double sum = 0;
    for (auto it = table[order].rbegin(); it != table[order].rend(); ++it) sum = sum * (p - centre) + *it;
    return sum;
  }

  /// g_k'(p) / g_{k+2}(p), as d/dp E[F(sqrt(p) z)] = E[F''(sqrt(p) z)] / 2; 0 past the degree.
  [[nodiscard]] double slope_factor(std::size_t order) const {
    if (order + 2 >= table.size()) return 0;
    return std::sqrt(static_cast<double>((order + 1) * (order + 2))) / 2;
  }
  /// The order whose moment the slope of this one is a multiple of.
  [[nodiscard]] std::size_t slope_order(std::size_t order) const {
    return order + 2 < table.size() ? order + 2 : order;
  }
};

/// E[x^(2m)] = (2m)! / (2^m m!) p^m, applied to each derivative of sum_j coefficients[j] x^j.
PolynomialMoments monomial_moments(const std::vector<double>& coefficients) {
  PolynomialMoments moments{{0, {}}};
  const std::size_t count = coefficients.size();
  for (std::size_t k = 0; k < count; ++k) {
    // factor = (k + 2m)! / (2^m m! sqrt(k!)), stepped in m.
    double factor = std::sqrt(std::tgamma(static_cast<double>(k) + 1));
    std::vector<double>& row = moments.table.emplace_back();
    for (std::size_t m = 0; k + 2 * m < count; ++m) {
      row.push_back(coefficients[k + 2 * m] * factor);
      const auto top = static_cast<double>(k + 2 * m);
      factor *= (top + 1) * (top + 2) / (2 * (static_cast<double>(m) + 1));
    }
  }
  return moments;
}

/// He_n^(k) = n!/(n-k)! He_{n-k} and E[He_j(sqrt(p) z)] = (j-1)!! (p-1)^(j/2) for even j, 0 for odd: one term
/// an order, in p - 1, so that nothing cancels near unit variance.
PolynomialMoments hermite_moments(int degree) {
  PolynomialMoments moments{{1, std::vector<std::vector<double>>(static_cast<std::size_t>(degree) + 1)}};
  // factor = sqrt(n! / k!) / (n-k)! (n-k-1)!! with j = n - k, stepped in j by 2.
  double factor = 1;
  for (int j = 0; j <= degree; j += 2) {
    std::vector<double>& row = moments.table[static_cast<std::size_t>(degree - j)];
    row.assign(static_cast<std::size_t>(j / 2) + 1, 0.0);
    row.back() = factor;
    const double n_minus_j = degree - j;
    factor *= std::sqrt(n_minus_j * (n_minus_j - 1)) / (j + 2);
  }
  return moments;
}

struct Monomials {
  std::vector<double> coefficients;

  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    N sum = N(coefficients.back());
    for (std::size_t k = coefficients.size() - 1; k-- > 0;) sum = sum * x + N(coefficients[k]);
    return sum;
  }
};

struct NormalizedHermite {
  int degree;

  /// sqrt(k+1) h_{k+1} = x h_k - sqrt(k) h_{k-1}.
  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    N lower = N(0), current = N(1);
    for (int k = 0; k < degree; ++k) {
      const N next = (x * current - N(std::sqrt(k)) * lower) / N(std::sqrt(k + 1));
      lower = current;
      current = next;
    }
    return current;
  }
};

/// A polynomial in c with one more coefficient at a time, highest first, and its first two derivatives (the second
/// halved): Horner's scheme.
template <typename Scalar, int derivatives>
struct HornerSums {
  std::array<Scalar, derivatives + 1> sums{};

  void add(Scalar c, Scalar coefficient) {
    // From the highest derivative down, because each reads the lower one of the step before.
    for (std::size_t n = derivatives; n > 0; --n) sums[n] = sums[n] * c + sums[n - 1];
    sums[0] = sums[0] * c + coefficient;
  }
};

/// Everything that an entry's slopes are made of, the coefficients being products of moments of the two positions.
template <typename Scalar>
struct PolynomialEntry {
  HornerSums<Scalar, 2> value;
  HornerSums<Scalar, 1> in_left, in_right;
};

template <typename Function>
class Polynomial final : public Activation, public formula::Readable {
 public:
  Polynomial(Function function, PolynomialMoments moments)
      : function_{std::move(function)}, moments_{std::move(moments)} {}

  [[nodiscard]] double value(double x) const override { return function_.value(x); }
  [[nodiscard]] double derivative(double x) const override { return slope_at(function_, x); }
  [[nodiscard]] std::optional<formula::Symbol> written_value(const formula::Symbol& x) const override {
    return function_.value(x);
  }

  [[nodiscard]] Dual<double> dual(double p, double q, double c) const override {
    return formula::dual_of(moments_.apply<double>(moments_.prepare(p), moments_.prepare(q), c));
  }

  [[nodiscard]] DualSlopes slopes(double p, double q, double c) const override {
    return formula::slopes_of(moments_, p, q, c);
  }
  [[nodiscard]] SelfSlopes self_slopes(double p) const override {
    return formula::self_slopes_of(moments_, p);
  }

  [[nodiscard]] formula::RowFormulaPointer formula() const override {
    return formula::row_formula(formula::PolynomialFormula(moments_));
  }

  // Auxiliary array k holds g_k at the variances of the positions.
  [[nodiscard]] std::size_t auxiliary_count() const override { return moments_.table.size(); }

  void prepare(const float* variance, float* const* auxiliary, std::size_t size) const override {
    prepare_rows(variance, auxiliary, size);
  }
  void prepare(const double* variance, double* const* auxiliary, std::size_t size) const override {
    prepare_rows(variance, auxiliary, size);
  }
  void apply(const DualRow<float>& row) const override { apply_row(row); }
  void apply(const DualRow<double>& row) const override { apply_row(row); }
  void apply_adjoint(const AdjointRow<float>& row) const override { apply_adjoint_row(row); }
  void apply_adjoint(const AdjointRow<double>& row) const override { apply_adjoint_row(row); }

 private:
  template <typename Scalar>
  void prepare_rows(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) const {
    for (std::size_t k = 0; k < moments_.table.size(); ++k)
      for (std::size_t i = 0; i < size; ++i)
        auxiliary[k][i] = static_cast<Scalar>(moments_.at(k, static_cast<double>(variance[i])));
  }

  /// Horner's scheme over blocks of entries, so that the inner loop runs over contiguous numbers.
  template <typename Scalar>
  void apply_row(const DualRow<Scalar>& row) const {
    constexpr std::size_t block = 64;
    for (std::size_t begin = 0; begin < row.size; begin += block) {
      const std::size_t size = std::min(block, row.size - begin);
      std::array<Scalar, block> value{};
      std::array<Scalar, block> derivative{};
      Scalar* const nngp = row.nngp + begin;
      for (std::size_t k = moments_.table.size(); k-- > 0;) {
        const Scalar* const left = row.left[k] + begin;
        const Scalar* const right = row.right[k] + begin;
        for (std::size_t i = 0; i < size; ++i) {
          derivative[i] = derivative[i] * nngp[i] + value[i];
          value[i] = value[i] * nngp[i] + left[i] * right[i];
        }
      }
      // The covariances are overwritten only when no order reads them any more.
      std::copy_n(value.begin(), size, nngp);
      if (row.ntk == nullptr) continue;
      for (std::size_t i = 0; i < size; ++i) row.ntk[begin + i] *= derivative[i];
    }
  }

  /// As apply_row(), with the prepared moments of the next but one order for the slopes in p and q.
  template <typename Scalar>
  void apply_adjoint_row(const AdjointRow<Scalar>& row) const {
    constexpr std::size_t block = 32;
    for (std::size_t begin = 0; begin < row.size; begin += block) {
      const std::size_t size = std::min(block, row.size - begin);
      std::array<PolynomialEntry<Scalar>, block> entries{};
      for (std::size_t k = moments_.table.size(); k-- > 0;) {
        const std::size_t next = moments_.slope_order(k);
        const auto factor = static_cast<Scalar>(moments_.slope_factor(k));
        for (std::size_t i = 0; i < size; ++i) {
          const std::size_t at = begin + i;
          const Scalar c = row.nngp[at], left = row.left[k][at], right = row.right[k][at];
          entries[i].value.add(c, left * right);
          entries[i].in_left.add(c, factor * row.left[next][at] * right);
          entries[i].in_right.add(c, factor * left * row.right[next][at]);
        }
      }
      for (std::size_t i = 0; i < size; ++i) write_slopes(row, begin + i, entries[i]);
    }
  }

  template <typename Scalar>
  static void write_slopes(const AdjointRow<Scalar>& row, std::size_t i,
                           const PolynomialEntry<Scalar>& entry) {
    const auto dual_of = [](const auto& horner) {
      return Dual<double>{static_cast<double>(horner.sums[0]), static_cast<double>(horner.sums[1])};
    };
    const Dual<double> dual = dual_of(entry.value);
    write_adjoint(row, i,
                  {dual, dual_of(entry.in_left), dual_of(entry.in_right),
                   2 * static_cast<double>(entry.value.sums[2]), dual.derivative});
  }

  Function function_;
  PolynomialMoments moments_;
};

}  // namespace

ActivationPtr polynomial(std::vector<double> coefficients) {
  if (coefficients.empty() || coefficients.size() > highest_degree + 1)
    throw ArgumentError(
        fmt::format("polynomial: coefficients must hold 1 to {} numbers, lowest order first, got {}",
                    highest_degree + 1, coefficients.size()));
  for (std::size_t k = 0; k < coefficients.size(); ++k)
    require_finite("polynomial", fmt::format("coefficients[{}]", k).c_str(), coefficients[k]);
  PolynomialMoments moments = monomial_moments(coefficients);
  return std::make_shared<Polynomial<Monomials>>(Monomials{std::move(coefficients)}, std::move(moments));
}

ActivationPtr monomial(int degree) {
  require_within("monomial", "degree", degree, 0, highest_degree);
  std::vector<double> coefficients(static_cast<std::size_t>(degree) + 1);
  coefficients.back() = 1;
  return polynomial(std::move(coefficients));
}

ActivationPtr hermite(int degree) {
  require_within("hermite", "degree", degree, 0, highest_degree);
  return std::make_shared<Polynomial<NormalizedHermite>>(NormalizedHermite{degree}, hermite_moments(degree));
}

}  // namespace widelimit::numerics
