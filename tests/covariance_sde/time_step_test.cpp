#include "widelimit/covariance_sde/time_step.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <cmath>
#include <vector>

#include "covariance_sde/example_covariances.hpp"
#include "widelimit/covariance_sde/coefficients.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::covariance_sde;
using doctest::Approx;

namespace {

using Dense = Matrix<double>;

const SdeModel transformer = transformer_model(ResidualWeights::shaped(0.6), 0.8, {0.5, -0.75});

/// All 2 m^2 unit directions of the noise.
std::vector<StepNoise> unit_noises(Index m) {
  std::vector<StepNoise> noises;
  for (const bool first : {true, false})
    for (Index a = 0; a < m; ++a)
      for (Index b = 0; b < m; ++b) {
        StepNoise noise{Dense::Zero(m, m), Dense::Zero(m, m)};
        (first ? noise.g1 : noise.g2)(a, b) = 1;
        noises.push_back(noise);
      }
  return noises;
}

StepNoise random_noise(Index m, std::uint64_t seed) {
  numerics::RandomStream stream(seed);
  StepNoise noise{Dense(m, m), Dense(m, m)};
  for (double& z : noise.g1.reshaped()) z = stream.normal();
  for (double& z : noise.g2.reshaped()) z = stream.normal();
  return noise;
}

/// E f of the mean step over the noise by the 2 K points +-sqrt(K) e_k, exact for polynomials of degree
/// three.
template <typename Step>
Dense cubature_mean(Index m, const Step& step) {
  const std::vector<StepNoise> units = unit_noises(m);
  const double scale = std::sqrt(static_cast<double>(units.size()));
  Dense sum = Dense::Zero(m, m);
  for (const StepNoise& unit : units)
    for (const double sign : {1.0, -1.0}) sum += step({sign * scale * unit.g1, sign * scale * unit.g2});
  return sum / static_cast<double>(2 * units.size());
}

}  // namespace

TEST_CASE("time step: the noise has exactly the covariance Sigma") {
  // N is linear in the normals, so its covariance is the sum of the squares of its columns.
  for (const Dense& v :
       {examples::b(), examples::c(), examples::e(), examples::f(), examples::random(5, 3)}) {
    const Index size = v.rows() * (v.rows() + 1) / 2;
    Dense covariance = Dense::Zero(size, size);
    for (const StepNoise& unit : unit_noises(v.rows())) {
      const Vector<double> column = upper_triangle(noise_increment(transformer, v, unit));
      covariance += column * column.transpose();
    }
    const Dense expected = diffusion(transformer, v);
    CHECK((covariance - expected).cwiseAbs().maxCoeff() < 1e-13 * expected.cwiseAbs().maxCoeff());
  }
}

TEST_CASE("time step: Euler-Maruyama is V + h b + sqrt(h) N") {
  const Dense v = examples::e();
  const StepNoise noise = random_noise(4, 1);
  const Dense expected =
      v + 0.03 * drift(transformer, v) + std::sqrt(0.03) * noise_increment(transformer, v, noise);
  CHECK((euler_maruyama_step(transformer, v, 0.03, noise) - expected).cwiseAbs().maxCoeff() < 1e-14);
}

TEST_CASE("time step: the mean of the geometric step is V + h b, to first order") {
  for (const Dense& v : {examples::b(), examples::c(), examples::e()}) {
    const auto error = [&](double h) {
      const Dense mean = cubature_mean(
          v.rows(), [&](const StepNoise& noise) { return geometric_step(transformer, v, h, noise); });
      return ((mean - v) / h - drift(transformer, v)).cwiseAbs().maxCoeff();
    };
    // The cubature errs by O(h^2) in V as well; halving h must halve the rest.
    const double coarse = error(2e-5), fine = error(1e-5);
    CHECK(coarse < 5e-3);
    CHECK(coarse / fine == Approx(2).scale(0).epsilon(0.05));
  }
}

TEST_CASE("time step: the geometric step is the Euler step up to O(h), given the noise") {
  const Dense v = examples::e();
  const StepNoise noise = random_noise(4, 2);
  const auto gap = [&](double h) {
    return (geometric_step(transformer, v, h, noise) - euler_maruyama_step(transformer, v, h, noise))
        .cwiseAbs()
        .maxCoeff();
  };
  CHECK(gap(1e-6) / gap(2.5e-7) == Approx(4).scale(0).epsilon(0.02));
  CHECK(gap(1e-6) < 1e-4);
}

TEST_CASE("time step: one token is a geometric Brownian motion exactly") {
  const SdeModel resnet = resnet_model(ResidualWeights::shaped(0.4), {0, -1});
  const StepNoise noise{Dense{{0.7}}, Dense{{-0.3}}};
  const double s = 0.8, h = 0.3;
  const double expected = 2.5 * std::exp(-s * h + std::sqrt(2 * s * h) * 0.7);
  CHECK(geometric_step(resnet, Dense{{2.5}}, h, noise)(0, 0) == Approx(expected).scale(0).epsilon(1e-14));
}

TEST_CASE("time step: log det V moves by trace Xi where neither attention nor bend acts") {
  const SdeModel linear = resnet_model(ResidualWeights::shaped(0.4), {0.3, 0.3});
  const Dense v = examples::c();
  const StepNoise noise = random_noise(3, 4);
  const double s = linear.linear_noise, h = 0.2;
  const double change = std::sqrt(2 * s * h) * noise.g1.trace() - h / 2 * s * 4 * 3;
  const Dense next = geometric_step(linear, v, h, noise);
  CHECK(std::log(next.determinant() / v.determinant()) == Approx(change).scale(0).epsilon(1e-12));
}

TEST_CASE("time step: geometric steps stay in the cone where Euler leaves it") {
  const SdeModel resnet = resnet_model(ResidualWeights::shaped(1), {0, -1});
  int exits = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Dense v = examples::two_tokens(0.9);
    const StepNoise noise = random_noise(2, seed);
    const auto smallest = [](const Dense& next) {
      return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(next, Eigen::EigenvaluesOnly).eigenvalues()(0);
    };
    CHECK(smallest(geometric_step(resnet, v, 0.3, noise)) > -1e-15 * v.trace());
    exits += smallest(euler_maruyama_step(resnet, v, 0.3, noise)) < 0 ? 1 : 0;
  }
  CHECK(exits > 20);
}

TEST_CASE("time step: attention keeps the rank of V") {
  const SdeModel attention = attention_model(ResidualWeights::shaped(0.6), 0.8);
  const Dense next = geometric_step(attention, examples::f(), 0.1, random_noise(4, 7));
  const Eigen::VectorXd spectrum =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(next, Eigen::EigenvaluesOnly).eigenvalues();
  CHECK(std::abs(spectrum(1)) < 1e-14 * spectrum(3));
  CHECK(spectrum(2) > 1e-3 * spectrum(3));
}

TEST_CASE("time step: under a causal mask, the drift is b and the noise has covariance Sigma") {
  const SdeModel model = stack(attention_model(ResidualWeights::shaped(0.6), 0.8, AttentionMask::causal, 2),
                               resnet_model(ResidualWeights::shaped(0.3), {0.5, -0.75}));
  for (const Matrix<double>& v : {examples::c(), examples::e(), examples::two_tokens()}) {
    const Index m = v.rows();
    StepNoise noise{Matrix<double>::Zero(m, m), Matrix<double>::Zero(m, m)};
    const Matrix<double> still = euler_maruyama_step(model, v, 0.1, noise);
    CHECK((still - v - 0.1 * drift(model, v)).cwiseAbs().maxCoeff() < 1e-13);
    // N is linear in its normals: the responses to each make its covariance.
    Matrix<double> responses(m * (m + 1) / 2, 2 * m * m);
    for (Index k = 0; k < 2 * m * m; ++k) {
      StepNoise one = noise;
      (k < m * m ? one.g1 : one.g2).data()[k % (m * m)] = 1;
      responses.col(k) = upper_triangle(noise_increment(model, v, one));
    }
    CHECK((responses * responses.transpose() - diffusion(model, v)).cwiseAbs().maxCoeff() < 1e-13);
  }
}

TEST_CASE("time step: errors name the step, the noise and the mask") {
  const Dense v = examples::c();
  const StepNoise noise = random_noise(3, 1);
  CHECK_THROWS_WITH_AS((void)geometric_step(transformer, v, 0, noise),
                       "geometric_step: step must be positive and finite, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS((void)noise_increment(transformer, v, random_noise(2, 1)),
                       "noise_increment: g1 must be 3 x 3, got 2 x 2", ArgumentError);
  const SdeModel causal = attention_model(ResidualWeights::shaped(0.5), 1, AttentionMask::causal);
  CHECK_THROWS_WITH_AS(
      (void)geometric_step(causal, v, 0.1, noise),
      "geometric_step: needs full attention, got a causal mask; take the Euler-Maruyama scheme for it",
      ArgumentError);
  const SdeModel bent = mlp_model({0, -2});
  CHECK_NOTHROW((void)geometric_step(bent, v, 2, noise));
  CHECK_THROWS_WITH_AS((void)geometric_step(bent, v, 2.5, noise),
                       "geometric_step: the geometric scheme needs step * relu_drift * (c_plus - c_minus)^2 "
                       "<= 8, got 10; take "
                       "a step of at most 2",
                       ArgumentError);
}
