// Maps of channels.
#include "widelimit/gp/feature_map.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

TEST_CASE("feature map: factors, matrices, sequences and masks") {
  const Matrix<double> x = random_matrix(5, 3, 1);
  const Matrix<double> factors = random_matrix(1, 3, 2), matrix = random_matrix(3, 3, 3);
  const Inputs<double> scaled = FeatureMap(factors).apply(Inputs<double>(x)),
                       mapped = FeatureMap(matrix).apply(Inputs<double>(x));
  const Matrix<double> product = x * matrix;
  for (Index i = 0; i < 5; ++i)
    for (std::size_t c = 0; c < 3; ++c) {
      const auto column = static_cast<Index>(c);
      CHECK(scaled[i][c] == x(i, column) * factors(0, column));
      CHECK(mapped[i][c] == Approx(product(i, column)));
    }
  const std::vector<Matrix<double>> list{random_matrix(2, 3, 4), random_matrix(4, 3, 5)};
  const Inputs<double> sequences = FeatureMap(factors).apply(Inputs<double>(list));
  CHECK(sequences.is_ragged());
  CHECK(sequences[1][11] == list[1](3, 2) * factors(0, 2));
  CHECK_THROWS_WITH_AS(static_cast<void>(FeatureMap(factors).apply(Inputs<double>(random_matrix(2, 4, 6)))),
                       "FeatureMap: expected inputs of 3 channels, got 4", ArgumentError);
  CHECK_THROWS_AS(FeatureMap(random_matrix(2, 3, 7)), ArgumentError);
}

TEST_CASE("feature map: functions of channels stay within the range of the training inputs") {
  Matrix<double> x(5, 3);
  x << 1, 0, 7, 2, 1, 7, 4, 0, 7, 100, 1, 7, 1, 0, 7;
  const FeatureMap clipped = FeatureMap::clipped(x), scores = FeatureMap::normal_scores(x);
  const Inputs<double> cut = clipped.apply(Inputs<double>(x)), mapped = scores.apply(Inputs<double>(x));
  Vector<double> of_first(5);
  for (Index i = 0; i < 5; ++i) {
    for (std::size_t c = 0; c < 3; ++c) CHECK(cut[i][c] == x(i, static_cast<Index>(c)));
    of_first(i) = mapped[i][0];
    // Two values, and one, have no other scores.
    CHECK(mapped[i][1] == x(i, 1));
    CHECK(mapped[i][2] == 7);
  }
  CHECK(of_first.mean() == Approx(x.col(0).mean()).epsilon(1e-12));
  const double deviation = std::sqrt((x.col(0).array() - x.col(0).mean()).square().mean());
  CHECK(std::sqrt((of_first.array() - of_first.mean()).square().mean()) == Approx(deviation).epsilon(1e-12));
  // The ranks .2 (of both ones), .5, .7 and .9 are apart like their quantiles.
  CHECK((of_first(3) - of_first(2)) / (of_first(1) - of_first(0)) ==
        Approx((1.2815515655446004 - 0.5244005127080407) / 0.8416212335729143).epsilon(1e-12));

  Matrix<double> other(2, 3);
  other << -50, 0.5, 9, 3, 2, -9;
  const Inputs<double> beyond = clipped.apply(Inputs<double>(other)),
                       between = scores.apply(Inputs<double>(other));
  CHECK(beyond[0][0] == 1);
  CHECK(beyond[0][1] == 0.5);
  CHECK(beyond[0][2] == 7);
  CHECK(beyond[1][1] == 1);
  CHECK(beyond[1][2] == 7);
  CHECK(between[0][0] == Approx(of_first(0)));
  CHECK(between[1][0] == Approx((of_first(1) + of_first(2)) / 2).epsilon(1e-12));

  const FeatureMap both = clipped.then(FeatureMap(Matrix<double>::Constant(1, 3, 2)));
  CHECK(both.apply(Inputs<double>(other))[0][0] == 2);
  CHECK_THROWS_AS(static_cast<void>(clipped.then(scores)), ArgumentError);
  Matrix<double> descending(4, 1);
  descending << 1, 0, 1, 0;
  CHECK_THROWS_WITH_AS(static_cast<void>(FeatureMap::through(descending)),
                       "FeatureMap: expected ascending places, got 0 behind 1 of channel 0", ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(FeatureMap::through(Matrix<double>::Ones(3, 1))), ArgumentError);
  // More values than knots: the ends stay, and no number is far from its own score.
  Matrix<double> many(5000, 1);
  for (Index i = 0; i < 5000; ++i) many(i, 0) = std::pow(static_cast<double>(i) / 5000, 3);
  const FeatureMap fewer = FeatureMap::normal_scores(many);
  CHECK(fewer.knots().rows() == 2048);
}

TEST_CASE("channels that are left out leave the others as they are, before functions and factors of these") {
  const Matrix<double> x = random_matrix(5, 4, 8);
  const std::vector<Index> left_out = {1}, all = {0, 1, 2, 3}, none = {4}, stay = {0, 2, 3};
  const FeatureMap fewer = FeatureMap::without(left_out, 4);
  const Inputs<double> kept(Matrix<double>(x(Eigen::all, stay)));
  const auto agree = [](const Inputs<double>& a, const Inputs<double>& b) {
    REQUIRE(a.channels() == b.channels());
    for (Index i = 0; i < a.size(); ++i)
      for (std::size_t c = 0; c < a[i].size(); ++c) CHECK(a[i][c] == b[i][c]);
  };
  agree(fewer.apply(Inputs<double>(x)), kept);
  CHECK(fewer.channels() == 4);
  CHECK(FeatureMap().channels() == 0);

  const FeatureMap scores = FeatureMap::normal_scores(kept), factors(Matrix<double>::Constant(1, 3, 0.5)),
                   matrix(random_matrix(3, 3, 9));
  const FeatureMap together = fewer.then(scores).then(factors);
  agree(together.apply(Inputs<double>(x)), factors.apply(scores.apply(kept)));
  agree(fewer.then(matrix).apply(Inputs<double>(x)), matrix.apply(kept));

  CHECK(FeatureMap::without({}, 4).is_identity());
  CHECK_THROWS_AS(static_cast<void>(FeatureMap::without(all, 4)), ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(FeatureMap::without(none, 4)), ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(fewer.then(FeatureMap(Matrix<double>::Ones(1, 4)))),
                       "FeatureMap::then: expected a map of 3 channels, got one of 4", ArgumentError);
}
