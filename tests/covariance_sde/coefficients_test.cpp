#include "widelimit/covariance_sde/coefficients.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <numbers>

#include "covariance_sde/example_covariances.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;

namespace {

using Dense = Matrix<double>;

double largest_difference(const Dense& a, const Dense& b) { return (a - b).cwiseAbs().maxCoeff(); }

const SdeModel attention_only = attention_model(ResidualWeights::shaped(0.6), 0.8);
const SdeModel unit_attention{.attention_drift = 1, .attention_noise = 1};

/// The softmax moments as eq. 10 prints them, by sums over tokens.
struct PrintedMoments {
  explicit PrintedMoments(const Dense& v) : v{v}, m{v.rows()}, mean_row(v.rowwise().mean()), mean{v.mean()} {}
  double first(Index a, Index d, Index b, Index w) const {
    return v(a, b) * (v(d, w) - mean_row(d) - mean_row(w) + mean);
  }
  double second(Index a, Index d) const {
    return v(a, a) * (v(d, d) - 2 * mean_row(d) + 2 * mean - v.trace() / static_cast<double>(m));
  }
  Dense v;
  Index m;
  Vector<double> mean_row;
  double mean;
};

/// b / (gamma^2 / tau_0^2) by the sums of Theorem 4.2.
double printed_drift(const PrintedMoments& s, Index a, Index b) {
  const double m = static_cast<double>(s.m);
  double first = 0, second = 0;
  for (Index nu = 0; nu < s.m; ++nu) {
    for (Index kappa = 0; kappa < s.m; ++kappa) first += s.v(nu, kappa) * s.first(a, nu, b, kappa);
    second += s.v(b, nu) * s.second(a, nu) + s.v(a, nu) * s.second(b, nu);
  }
  return first / (m * m) + second / (2 * m);
}

double printed_tensor(const PrintedMoments& s, Index a, Index b, Index d, Index w) {
  double sum = 0;
  for (Index n = 0; n < s.m; ++n)
    for (Index k = 0; k < s.m; ++k)
      sum += s.v(a, k) * s.v(d, n) * s.first(b, k, w, n) + s.v(a, k) * s.v(w, n) * s.first(b, k, d, n) +
             s.v(b, n) * s.v(d, k) * s.first(a, n, w, k) + s.v(b, n) * s.v(w, k) * s.first(a, n, d, k);
  return sum / static_cast<double>(s.m * s.m);
}

/// c E[sigma(u) sigma(v)] by the midpoint rule over the angle of (u, v): shares no formula with the library.
double relu_map_by_angle(double rho, ActivationSlopes slopes) {
  const auto sigma = [&](double x) { return x > 0 ? slopes.plus * x : slopes.minus * x; };
  const double theta = std::acos(rho);
  const int n = 20'000;
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double t = 2 * std::numbers::pi * (i + 0.5) / n;
    sum += sigma(std::cos(t)) * sigma(std::cos(t - theta));
  }
  return slopes.normaliser() * 2 * sum / n;
}

}  // namespace

TEST_CASE("coefficients: the closed attention drift is the printed sum of Theorem 4.2") {
  for (const Dense& v :
       {examples::b(), examples::c(), examples::e(), examples::f(), examples::random(5, 1)}) {
    const PrintedMoments moments(v);
    const Dense computed = drift(unit_attention, v);
    for (Index a = 0; a < v.rows(); ++a)
      for (Index b = 0; b < v.rows(); ++b)
        CHECK(computed(a, b) == Approx(printed_drift(moments, a, b)).scale(0).epsilon(1e-12));
  }
}

TEST_CASE("coefficients: the closed attention tensor is the printed sum of Theorem 4.2") {
  for (const Dense& v : {examples::b(), examples::c(), examples::e(), examples::random(5, 2)}) {
    const PrintedMoments moments(v);
    const Dense computed = attention_diffusion(v, AttentionMask::full);
    const double scale = computed.cwiseAbs().maxCoeff();
    Index row = 0;
    for (Index a = 0; a < v.rows(); ++a)
      for (Index b = a; b < v.rows(); ++b, ++row) {
        Index column = 0;
        for (Index d = 0; d < v.rows(); ++d)
          for (Index w = d; w < v.rows(); ++w, ++column)
            CHECK(std::abs(computed(row, column) - printed_tensor(moments, a, b, d, w)) < 1e-13 * scale);
      }
  }
}

TEST_CASE("coefficients: the moments are those of eq. 10") {
  const Dense v = examples::e();
  const PrintedMoments moments(v);
  const Dense second = second_softmax_moment(v);
  for (Index a = 0; a < 4; ++a)
    for (Index d = 0; d < 4; ++d) {
      CHECK(second(a, d) == Approx(moments.second(a, d)).scale(0).epsilon(1e-13));
      CHECK(first_softmax_moment(v, a, d, 1, 2) == Approx(moments.first(a, d, 1, 2)).scale(0).epsilon(1e-13));
    }
}

TEST_CASE("coefficients: the second moment acts from three tokens of unequal norms on only") {
  CHECK(second_softmax_moment(examples::b()).cwiseAbs().maxCoeff() < 1e-16);
  Dense exchangeable = Dense::Constant(4, 4, 0.3);
  exchangeable.diagonal().setConstant(1.2);
  CHECK(second_softmax_moment(exchangeable).cwiseAbs().maxCoeff() < 1e-16);
  CHECK(second_softmax_moment(examples::c()).cwiseAbs().maxCoeff() > 0.1);
}

TEST_CASE("coefficients: homogeneity, permutations, one token, identical tokens") {
  const Dense v = examples::e();
  CHECK(largest_difference(drift(unit_attention, 3 * v), 27 * drift(unit_attention, v)) < 1e-12);
  CHECK(largest_difference(attention_diffusion(3 * v, AttentionMask::full),
                           81 * attention_diffusion(v, AttentionMask::full)) < 1e-11);
  Eigen::PermutationMatrix<Eigen::Dynamic> swap(4);
  swap.indices() << 2, 0, 3, 1;
  const SdeModel model = transformer_model(ResidualWeights::shaped(0.6), 0.8, {0.5, -0.75});
  const Dense permuted = swap * v * swap.transpose();
  CHECK(largest_difference(drift(model, permuted), swap * drift(model, v) * swap.transpose()) < 1e-14);
  const Dense one{{1.7}};
  CHECK(drift(model, one)(0, 0) == 0);
  CHECK(attention_diffusion(one, AttentionMask::full)(0, 0) == 0);
  const Dense identical = Dense::Constant(3, 3, 2);
  CHECK(drift(attention_only, identical).cwiseAbs().maxCoeff() < 1e-30);
  CHECK(drift(model, identical).cwiseAbs().maxCoeff() < 1e-30);
  CHECK(attention_diffusion(identical, AttentionMask::full).cwiseAbs().maxCoeff() < 1e-30);
}

TEST_CASE("coefficients: the last causal token moves as if nothing were masked") {
  for (const Dense& v : {examples::c(), examples::e()}) {
    SdeModel causal = unit_attention;
    causal.mask = AttentionMask::causal;
    const Index last = v.rows() - 1, corner = v.rows() * (v.rows() + 1) / 2 - 1;
    CHECK(drift(causal, v)(last, last) ==
          Approx(drift(unit_attention, v)(last, last)).scale(0).epsilon(1e-13));
    CHECK(diffusion(causal, v)(corner, corner) ==
          Approx(diffusion(unit_attention, v)(corner, corner)).scale(0).epsilon(1e-13));
    // The first token sees itself only, and its attention is constant.
    CHECK(std::abs(drift(causal, v)(0, 0)) < 1e-15);
    CHECK(std::abs(diffusion(causal, v)(0, 0)) < 1e-15);
    CHECK(std::abs(drift(causal, v)(1, 1) - drift(unit_attention, v)(1, 1)) > 1e-2);
  }
}

TEST_CASE("coefficients: the diffusion is positive semidefinite and as singular as V") {
  const SdeModel model = transformer_model(ResidualWeights::shaped(0.6), 0.8, {0.5, -0.75});
  const auto spectrum = [&](const Dense& v) {
    return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(diffusion(model, v), Eigen::EigenvaluesOnly)
        .eigenvalues()
        .eval();
  };
  CHECK(spectrum(examples::e())(0) > 1e-3);
  const Eigen::VectorXd singular = spectrum(examples::f());
  CHECK(std::abs(singular(0)) < 1e-14);
  CHECK((singular.array() > 1e-10).count() == 3);  // symmetric 2 x 2 matrices
}

TEST_CASE("correlation drift: the one-layer map at any width, by quadrature") {
  for (const Index n : {16, 300})
    for (const double rho : {-0.95, -0.5, 0.0, 0.2, 0.9}) {
      const ActivationSlopes slopes = shaped_slopes({0.5, -0.75}, n);
      CHECK(relu_correlation_map(rho, slopes) ==
            Approx(relu_map_by_angle(rho, slopes)).scale(0).epsilon(1e-7));
      const double change = static_cast<double>(n) * (relu_correlation_map(rho, slopes) - rho);
      CHECK(change ==
            Approx(slopes.normaliser() * correlation_drift(rho, {0.5, -0.75})).scale(0).epsilon(1e-9));
    }
  CHECK(relu_correlation_map(0, {1, 0}) == Approx(1 / std::numbers::pi));  // ReLU
}

TEST_CASE("correlation drift: ends, the seam of the series, and digits near one") {
  const ShapedSlopes slopes{0, -1};
  CHECK(correlation_drift(1, slopes) == 0);
  CHECK(correlation_drift(1 + 1e-12, slopes) == 0);
  CHECK(correlation_drift(0, slopes) == Approx(1 / (2 * std::numbers::pi)).scale(0).epsilon(1e-15));
  CHECK(correlation_drift(-1, slopes) == Approx(0.5).scale(0).epsilon(1e-15));
  const double seam = std::cos(0.5);
  CHECK(std::abs(correlation_drift(seam + 1e-12, slopes) - correlation_drift(seam - 1e-12, slopes)) < 1e-12);
  // theta^3 / 3 (1 - theta^2 / 10) with theta^2 = 2 (1 - rho) (1 + (1 - rho) / 6).
  for (const double gap : {1e-4, 1e-7, 1e-10, 1e-13}) {
    const double exact_gap = 1 - (1 - gap), theta = std::sqrt(2 * exact_gap * (1 + exact_gap / 6));
    const double expected = theta * theta * theta / 3 * (1 - theta * theta / 10) / (2 * std::numbers::pi);
    CHECK(correlation_drift(1 - gap, slopes) == Approx(expected).scale(0).epsilon(1e-8));
  }
}

TEST_CASE("coefficients: what is no covariance is named") {
  CHECK_THROWS_WITH_AS((void)drift(attention_only, Dense{{1, 2}, {2, 1}}),
                       "drift: a covariance must be positive semidefinite, got eigenvalues from -1 to 3",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)drift(attention_only, Dense(2, 3)),
                       "drift: a covariance must be square with one row a token, got 2 x 3", ArgumentError);
  CHECK_THROWS_WITH_AS((void)diffusion(attention_only, Dense{{1, 0.5}, {0.2, 1}}),
                       "diffusion: a covariance must be symmetric, got 0.2 at (1, 0) and 0.5 at (0, 1)",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)linear_diffusion(Dense{{NAN}}),
                       "linear_diffusion: a covariance must be finite, got nan at (0, 0)", ArgumentError);
}

TEST_CASE("coefficients: sums of the softmax moments are the attention's drift, under both masks") {
  // Theorem 4.2 as printed; under a mask the means are over what a row sees.
  for (const AttentionMask mask : {AttentionMask::full, AttentionMask::causal}) {
    const Matrix<double> v = examples::c();
    const Eigen::Index m = v.rows();
    const SdeModel model = attention_model(ResidualWeights::shaped(0.6), 0.8, mask);
    const Matrix<double> first = first_softmax_moments(v, mask), second = second_softmax_moment(v, mask),
                         expected = drift(model, v);
    const auto seen = [&](Eigen::Index a) { return mask == AttentionMask::full ? m : a + 1; };
    for (Eigen::Index a = 0; a < m; ++a)
      for (Eigen::Index b = 0; b < m; ++b) {
        double sum = 0;
        for (Eigen::Index d = 0; d < m; ++d) {
          for (Eigen::Index w = 0; w < m; ++w) {
            CHECK(first(a * m + d, b * m + w) == first_softmax_moment(v, a, d, b, w, mask));
            sum += v(d, w) * first(a * m + d, b * m + w) / static_cast<double>(seen(a) * seen(b));
          }
          sum += v(b, d) * second(a, d) / (2 * static_cast<double>(seen(a))) +
                 v(a, d) * second(b, d) / (2 * static_cast<double>(seen(b)));
        }
        CHECK(model.attention_drift * sum == doctest::Approx(expected(a, b)).scale(1).epsilon(1e-14));
      }
  }
}
