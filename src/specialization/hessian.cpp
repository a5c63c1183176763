#include "widelimit/specialization/hessian.hpp"

#include <cmath>

#include "numerics/finite_result.hpp"
#include "numerics/roots.hpp"
#include "specialization/checks.hpp"

namespace widelimit::specialization {

namespace {

constexpr double bias_range = 60;

void check_sizes(const char* where, Index tokens, Index heads) {
  require_at_least(where, "tokens L", tokens, 2);
  require_at_least(where, "heads H", heads, 1);
}

double squared(double x) { return x * x; }

}  // namespace

/// From b0, v0 at m = r = 0 the flow ends on the curve L v = L + e^b, along a conserved quantity
/// (docs/theory/head-specialization.md, section 5).
Softmax1Point softmax1_fixed_point(Index tokens, Index heads, double b0, double v0) {
  check_sizes("softmax1_fixed_point", tokens, heads);
  if (!std::isfinite(b0) || !std::isfinite(v0))
    throw ArgumentError(fmt::format("softmax1_fixed_point: b and v must be finite, got {} and {}", b0, v0));
  const double L = static_cast<double>(tokens), H = static_cast<double>(heads);
  const auto v_at = [&](double b) { return 1 + std::exp(b) / L; };
  const auto conserved = [&](double b, double v) { return b - L * std::exp(-b) + v * v / (2 * H); };
  const double value = conserved(b0, v0);
  const auto excess = [&](double b) { return conserved(b, v_at(b)) - value; };
  const std::optional<double> b = numerics::bracketed_root(excess, -bias_range, bias_range);
  if (!b)
    throw NumericalError(
        fmt::format("softmax1_fixed_point: from b = {}, v = {} the end lies outside [-{}, {}]", b0, v0,
                    bias_range, bias_range));
  return {*b, v_at(*b)};
}

HessianConstants hessian_constants(HeadActivation activation, Index tokens, Index heads) {
  check_sizes("hessian_constants", tokens, heads);
  const double b = activation == HeadActivation::softmax1 ? softmax1_fixed_point(tokens, heads).b : 0;
  return hessian_constants_at(activation, tokens, heads, b);
}

HessianConstants hessian_constants_at(HeadActivation activation, Index tokens, Index heads, double b) {
  check_sizes("hessian_constants", tokens, heads);
  const double L = static_cast<double>(tokens), H = static_cast<double>(heads);
  const bool may_rest = activation == HeadActivation::softmax1;
  if (!may_rest && b != 0)
    throw ArgumentError(fmt::format("hessian_constants: b has no effect with the activation {}: leave it out",
                                    head_activation_name(activation)));
  const double w = may_rest ? 1 / (L + std::exp(b)) : 1 / L;
  // These are the constants of docs/theory/head-specialization.md, section 5; w is the weight of a token at rest.
  HessianConstants constants;
  constants.c1 = (squared(1 - w) + (L - 1) * w * w) / (H * H * L);
  constants.c2 = constants.c1 / L;
  const double scale = (L - 1) / (H * L * L);
  if (activation == HeadActivation::bayes) {
    constants.c3 = scale * (1 - 2 / (H * L));
    constants.c4 = 2 * (L - 1) / (H * H * L * L * L);
  } else {
    constants.c3 = scale * (1 - 2 * w);
  }
  if (may_rest) {
    constants.c5 = squared(1 - L * w) / (L * H * H);
    constants.b = b;
    constants.v = 1 + std::exp(b) / L;
  }
  // The pull at the very start has b = 0 and v = 1 instead of the values at rest.
  const double w0 = may_rest ? 1 / (L + 1) : 1 / L;
  constants.initial_pull = 2 * w0 / H * (squared(1 - w0) + (L - 1) * w0 * w0);
  for (const double c : {constants.c1, constants.c2, constants.c3, constants.c4, constants.c5, constants.v})
    numerics::finite_result("hessian_constants", "a constant", c,
                            fmt::format("take a smaller bias b than {}", b));
  return constants;
}

double second_order_form(const HessianConstants& constants, const Matrix<double>& m, const Matrix<double>& S,
                         const Vector<double>& b_shift, const Matrix<double>& covariance) {
  constexpr const char* where = "second_order_form";
  require_shape(where, "S", S, m.rows(), m.rows());
  require_shape(where, "b_shift", b_shift, m.rows(), 1);
  require_shape(where, "covariance", covariance, m.cols(), m.cols());
  const Vector<double> total = m.colwise().sum().transpose();
  const double spread = (m * covariance * m.transpose()).trace();
  return constants.c1 * (S.sum() + total.squaredNorm()) +
         (constants.c2 + constants.c4) * total.dot(covariance * total) -
         (constants.c3 + constants.c4) * spread + constants.c5 * squared(b_shift.sum());
}

EscapeRates escape_rates(const HessianConstants& constants, Index heads, double eigenvalue) {
  require_at_least("escape_rates", "heads H", heads, 1);
  if (!(eigenvalue >= 0))
    throw ArgumentError(fmt::format("escape_rates: eigenvalue must be >= 0, got {}", eigenvalue));
  // Both rates are those along an eigenvector of the covariance: of heads against each other,
  // and of all heads together.
  const double split = 2 * (constants.c3 + constants.c4) * eigenvalue;
  const double pull = constants.c1 + (constants.c2 + constants.c4) * eigenvalue;
  const double common = split - 2 * static_cast<double>(heads) * pull;
  constexpr const char* advice = "take smaller constants or a smaller eigenvalue";
  numerics::finite_result("escape_rates", "the rate of heads that move apart", split, advice);
  numerics::finite_result("escape_rates", "the rate of heads that move together", common, advice);
  return {split, common};
}

FourthOrder fourth_order(Index tokens, Index heads, double variance_learned, double variance_new) {
  check_sizes("fourth_order", tokens, heads);
  const double L = static_cast<double>(tokens), H = static_cast<double>(heads);
  // p is the weight w of a token in docs/theory/head-specialization.md, section 5, rest is 1 - w, skew is 1 - 2 w.
  const double p = 1 / L, rest = 1 - p, skew = 1 - 2 * p;
  const double product = variance_learned * variance_new, sum = variance_learned + variance_new;
  const double q2 = p * p * rest * skew * skew;
  const double q1 =
      p * p * skew * skew * (rest * rest + 3 * p * rest) + 4 * (L - 1) * (L - 2) * std::pow(p, 6);
  FourthOrder result;
  result.k1 = product * q2 / (H * H);
  result.k2 = -p * rest * skew / H * (product * (1 - 12 * p * rest) - 6 * p * sum);
  result.k3 = 2 / (H * H) * ((L + sum) * q1 + product * q2);
  return result;
}

}  // namespace widelimit::specialization
