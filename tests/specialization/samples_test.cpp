#include "widelimit/specialization/samples.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/loss.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

TEST_CASE("samples: the first samples do not depend on n; theta is mapped; the distribution is right") {
  const Prior prior = Prior::flip2(2, 3);
  const auto few = SampleSet<float>::draw(prior, {3, 2, 700}, 4),
             many = SampleSet<float>::draw(prior, {3, 2, 5000}, 4);
  for (const Index i : {0, 63, 64, 699})
    for (Index l = 0; l < 3; ++l)
      for (Index row = 0; row < 4; ++row) CHECK(few.value(i, l, row) == many.value(i, l, row));
  SampleOptions options;
  options.theta_map = Matrix<double>::Zero(2, 2);
  const auto none = SampleSet<double>::draw(prior, {3, 2, 700}, 4, options);
  const auto plain = SampleSet<double>::draw(prior, {3, 2, 700}, 4);
  for (const Index i : {0, 699}) {
    CHECK(plain.value(i, 0, 0) - none.value(i, 0, 0) ==
          doctest::Approx(std::sqrt(2.0)).scale(0).epsilon(1e-6));
    CHECK(std::abs(plain.value(i, 0, 1) - none.value(i, 0, 1)) ==
          doctest::Approx(std::sqrt(3.0)).scale(0).epsilon(1e-6));
    CHECK(plain.value(i, 1, 0) == none.value(i, 1, 0));
  }
  const Index n = 5000 * 3;
  double mean = 0, square = 0, fourth = 0;
  for (Index i = 0; i < 5000; ++i)
    for (Index l = 0; l < 3; ++l) {
      const double z = static_cast<double>(many.value(i, l, 2));
      mean += z / static_cast<double>(n);
      square += z * z / static_cast<double>(n);
      fourth += z * z * z * z / static_cast<double>(n);
    }
  const double error = 1 / std::sqrt(static_cast<double>(n));
  CHECK(std::abs(mean) < 4 * error);
  CHECK(std::abs(square - 1) < 4 * std::sqrt(2.0) * error);
  CHECK(std::abs(fourth - 3) < 4 * std::sqrt(96.0) * error);
}

TEST_CASE("samples: on a closed set equal heads stay equal, on a plain set they do not") {
  const Prior prior = Prior::flip2(2, 2);
  HeadParameters at = with_initial_offsets(
      HeadActivation::bayes, Matrix<double>::Zero(4, 2),
      Matrix<double>(0.9 * Matrix<double>::Identity(4, 4) + Matrix<double>::Constant(4, 4, .02)));
  at.m.col(0).setConstant(0.4);
  const auto spread = [&](SampleSymmetry symmetry) {
    const auto samples = SampleSet<double>::draw(prior, {5, 4, 1001}, 3, {symmetry, {}});
    if (symmetry == SampleSymmetry::closed) CHECK(samples.count() == 1008);
    const HeadParameters g = sampled_loss(HeadActivation::bayes, at, samples).gradient;
    return std::max((g.m.rowwise() - g.m.row(0)).cwiseAbs().maxCoeff(), g.m.col(1).cwiseAbs().maxCoeff());
  };
  CHECK(spread(SampleSymmetry::closed) < 1e-16);
  CHECK(spread(SampleSymmetry::plain) > 1e-4);
}

TEST_CASE("samples: rejections name the field") {
  numerics::RandomStream random(1);
  const SampleValues values = random_values(4, 3, 2, 2, random);
  const auto pack = [&](const auto& spoil) {
    SampleValues spoiled = values;
    spoil(spoiled);
    return message_of([&] { (void)SampleSet<double>{spoiled}; });
  };
  CHECK(pack([](SampleValues&) {}).empty());
  CHECK(pack([](SampleValues& v) { v.count = 0; }) == "samples: count n must be at least 1, got 0");
  CHECK(pack([](SampleValues& v) { v.eps[2] = 3; }) == "samples: eps must lie in [0, 3), got 3");
  CHECK(pack([](SampleValues& v) {
          v.weights = {1, 1, 0, 1};
        }) == "samples: weights must be positive and finite, got 0");
  CHECK(pack([](SampleValues& v) { v.weights = {1, 1}; }) == "samples: weights must have 4 entries, got 2");
  CHECK(pack([](SampleValues& v) { v.xi.pop_back(); }) == "samples: xi must have 24 entries, got 23");
  const auto draw = [](const SampleShape& shape, const SampleOptions& options = {}) {
    return message_of([&] { (void)SampleSet<float>::draw(Prior::flip2(1, 1), shape, 1, options); });
  };
  CHECK(draw({3, 2, 0}) == "samples: count n must be at least 1, got 0");
  CHECK(draw({0, 2, 5}) == "samples: tokens L must be at least 1, got 0");
  CHECK(draw({3, 0, 5}) == "samples: heads H must be at least 1, got 0");
  CHECK(draw({3, 2, 5}, {SampleSymmetry::plain, Matrix<double>::Identity(3, 3)}) ==
        "samples: theta_map must be 2 x 2, got 3 x 3");
}
