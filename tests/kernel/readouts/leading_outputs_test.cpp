// Leading outputs of attention against dense eigendecompositions and exact products.
#include "kernel/readouts/leading_outputs.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "widelimit/numerics/random_stream.hpp"

namespace widelimit {
namespace {

using Dense = Matrix<double>;

/// A pair of inputs whose covariances come from features of positions, so that all of them are semidefinite together.
struct Own {
  std::string name;
  Dense weights, nngp, ntk;
  Dense features, ntk_features;  ///< V = features features^T, and likewise the NTK after attention.
};

constexpr Index d = 256;

Dense attention_weights(const Dense& nngp, double sharpness) {
  Dense weights = (sharpness * nngp).array().exp();
  for (Index a = 0; a < weights.rows(); ++a) {
    weights.row(a) = (sharpness * (nngp.row(a).array() - nngp.row(a).maxCoeff())).exp();
    weights.row(a) /= weights.row(a).sum();
  }
  const Eigen::VectorXd variances = (weights * nngp * weights.transpose()).diagonal();
  return variances.cwiseSqrt().cwiseInverse().asDiagonal() * weights;
}

Own from_features(std::string name, const Dense& features, const Dense& more, double sharpness) {
  Own own{std::move(name), {}, features * features.transpose(), {}, features, Dense(features.rows(), 0)};
  own.weights = attention_weights(own.nngp, sharpness);
  own.ntk_features.resize(features.rows(), features.cols() + more.cols());
  own.ntk_features << std::sqrt(3.0) * features, more;
  own.ntk = own.ntk_features * own.ntk_features.transpose();
  return own;
}

Dense normals(Index rows, Index columns, std::uint64_t seed) {
  numerics::RandomStream random(seed);
  return Dense::NullaryExpr(rows, columns, [&] { return random.normal(); });
}

/// Positions in a plane whose features fall off with their frequency as those of images do.
Own smooth(std::uint64_t seed, double sharpness) {
  constexpr Index channels = 96;
  Dense features(d, channels), more(d, channels);
  const Dense phases = normals(channels, 4, seed);
  for (Index a = 0; a < d; ++a) {
    const double x = static_cast<double>(a / 16) / 16, y = static_cast<double>(a % 16) / 16;
    for (Index k = 0; k < channels; ++k) {
      const double frequency = 0.3 * static_cast<double>(k);
      const double wave = std::cos(frequency * (phases(k, 0) * x + phases(k, 1) * y) + 3 * phases(k, 2));
      features(a, k) = wave / std::pow(1 + 0.5 * static_cast<double>(k), 2.0);
      more(a, k) =
          std::sin(frequency * phases(k, 3) * (x - y)) / std::pow(1 + 0.5 * static_cast<double>(k), 1.5);
    }
  }
  return from_features("smooth, sharpness " + std::to_string(sharpness), features, more, sharpness);
}

Own noise() { return from_features("noise", normals(d, 64, 5) / 8, normals(d, 64, 6) / 8, 8); }

Own constant() {
  return from_features("constant", Dense::Constant(d, 96, 0.1), Dense::Constant(d, 96, 0.05), 2);
}

/// Every position attends to itself.
Own sharp() {
  Own own = smooth(3, 2);
  own.name = "sharp";
  own.weights = own.nngp.diagonal().cwiseSqrt().cwiseInverse().asDiagonal();
  return own;
}

template <typename Scalar>
struct Written {
  Matrix<Scalar> weights, nngp, ntk;
  std::vector<Scalar> numbers;
  LeadingOutputs<Scalar> leading;

  explicit Written(const Own& own)
      : weights{own.weights.cast<Scalar>()},
        nngp{own.nngp.cast<Scalar>()},
        ntk{own.ntk.cast<Scalar>()},
        numbers(static_cast<std::size_t>(leading_size(d))) {
    write_leading_outputs<Scalar>({weights.data(), nngp.data(), ntk.data(), d}, numbers.data());
    leading = leading_outputs<Scalar>(numbers.data(), d);
  }
};

/// Share of the trace of Z M Z^T that projecting away `directions` leaves.
double dense_tail(const Dense& directions, const Dense& weights, const Dense& covariance) {
  const Dense all = weights * covariance * weights.transpose();
  const Dense rest = Dense::Identity(d, d) - directions * directions.transpose();
  return (rest * all * rest.transpose()).trace() / all.trace();
}

/// Share of the trace beyond the `rank` largest eigenvalues.
double best_tail(Index rank, const Dense& weights, const Dense& covariance) {
  const Dense all = weights * covariance * weights.transpose();
  const Eigen::VectorXd values =
      Eigen::SelfAdjointEigenSolver<Dense>(all, Eigen::EigenvaluesOnly).eigenvalues();
  return values.head(d - rank).sum() / values.sum();
}

TEST_CASE_TEMPLATE("leading directions are orthonormal, few, and leave out what they say", Scalar, float,
                   double) {
  for (const Own& own : {smooth(1, 1), smooth(2, 2), constant()}) {
    CAPTURE(own.name);
    const Written<Scalar> written(own);
    const LeadingOutputs<Scalar>& leading = written.leading;
    REQUIRE(leading.rank > 0);
    REQUIRE(leading.rank <= most_directions(d));
    const Dense directions =
        Eigen::Map<const Matrix<Scalar>>(leading.directions, d, leading.rank).template cast<double>();
    const Dense outputs =
        Eigen::Map<const Matrix<Scalar>>(leading.outputs, d, leading.rank).template cast<double>();
    const double rounding = sizeof(Scalar) == 4 ? 4e-6 : 1e-13;
    CHECK((directions.transpose() * directions - Dense::Identity(leading.rank, leading.rank)).norm() <
          rounding);
    CHECK((own.weights.transpose() * directions - outputs).norm() < rounding * outputs.norm());
    const double nngp = dense_tail(directions, own.weights, own.nngp),
                 ntk = dense_tail(directions, own.weights, own.ntk);
    CHECK(leading.nngp_tail <= largest_tail<Scalar>);
    CHECK(leading.ntk_tail <= largest_tail<Scalar>);
    // They are what is left out, no estimates that random signs may leave below it.
    const double noise = 1e-4 * largest_tail<Scalar> + 1e-15;
    CHECK(std::abs(nngp - leading.nngp_tail) < 0.01 * nngp + noise);
    CHECK(std::abs(ntk - leading.ntk_tail) < 0.01 * ntk + noise);
    // Nearly as few as the leading eigenvectors would be: these leave out more than allowed if there is a quarter less.
    if (leading.rank > 8) CHECK(best_tail(leading.rank * 3 / 4, own.weights, own.ntk) > largest_tail<Scalar>);
  }
}

TEST_CASE_TEMPLATE("inputs whose outputs take many directions have none", Scalar, float, double) {
  for (const Own& own : {noise(), sharp()}) {
    CAPTURE(own.name);
    CHECK(best_tail(most_directions(d), own.weights, own.ntk) > largest_tail<Scalar>);
    CHECK(Written<Scalar>(own).leading.rank == 0);
  }
}

TEST_CASE_TEMPLATE("a pair's weights are off by less than both tails", Scalar, float, double) {
  const std::vector<Own> inputs{smooth(1, 1), smooth(2, 2), smooth(1, 1), constant()};
  std::vector<Written<Scalar>> written;
  for (const Own& own : inputs) written.emplace_back(own);
  std::vector<Scalar> scratch(static_cast<std::size_t>(leading_scratch(d)));
  Matrix<Scalar> weights(d, d);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      CAPTURE(i);
      CAPTURE(j);
      const Own &left = inputs[i], &right = inputs[j];
      leading_weights<Scalar>(
          {written[i].leading, written[j].leading, written[i].weights.data(), written[j].weights.data(), d},
          scratch.data(), weights.data());
      const Dense error = weights.template cast<double>() - left.weights.transpose() * right.weights;
      // Sums of equal terms are rounded to one side.
      const bool equal_terms = left.name == "constant" || right.name == "constant";
      const double digits = static_cast<double>(std::numeric_limits<Scalar>::epsilon()),
                   rounding = digits * (equal_terms ? static_cast<double>(d) / 4 : 2);
      const auto check = [&](const Dense& cross, const Dense& own_left, const Dense& own_right,
                             double tails) {
        const double scale = std::sqrt((left.weights * own_left * left.weights.transpose()).trace() *
                                       (right.weights * own_right * right.weights.transpose()).trace());
        CHECK(std::abs(error.cwiseProduct(cross).sum()) < (1.05 * tails + rounding) * scale);
      };
      check(left.features * right.features.transpose(), left.nngp, right.nngp,
            std::sqrt(written[i].leading.nngp_tail * written[j].leading.nngp_tail));
      check(left.ntk_features * right.ntk_features.transpose(), left.ntk, right.ntk,
            std::sqrt(written[i].leading.ntk_tail * written[j].leading.ntk_tail));
    }
}

TEST_CASE("small inputs keep the exact product") {
  CHECK(most_directions(255) == 0);
  CHECK(leading_size(64) == 0);
  CHECK(leading_scratch(64) == 0);
}

TEST_CASE("directions are the same bits every time") {
  const Own own = smooth(4, 1.5);
  CHECK(Written<float>(own).numbers == Written<float>(own).numbers);
}

}  // namespace
}  // namespace widelimit
