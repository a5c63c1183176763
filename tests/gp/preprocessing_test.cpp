#include "widelimit/gp/preprocessing.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include "widelimit/data/preprocessing.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/flip_average.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit;
using gp::Preprocessing;
using gp::PreprocessingKind;

namespace {

constexpr std::array all_preprocessing_kinds{PreprocessingKind::none, PreprocessingKind::pixel,
                                             PreprocessingKind::image, PreprocessingKind::channel,
                                             PreprocessingKind::zca};

/// Images with correlated neighbours, so that whitening has something to do.
template <typename Scalar>
xt::xarray<Scalar> preprocessing_images(std::size_t count, std::uint64_t seed) {
  numerics::RandomStream random(seed);
  xt::xarray<Scalar> x = xt::xarray<Scalar>::from_shape({count, 4, 3, 2});
  double previous = 0;
  for (Scalar& value : x) {
    previous = 0.8 * previous + random.normal();
    value = static_cast<Scalar>(3 + previous);
  }
  return x;
}

Eigen::Map<const Matrix<double>> rows_of(const xt::xarray<double>& x) {
  const auto n = static_cast<Eigen::Index>(x.shape(0));
  return {x.data(), n, static_cast<Eigen::Index>(x.size()) / n};
}

}  // namespace

TEST_CASE("preprocessing: pixel and image are data::standardise, bit for bit") {
  const auto x = preprocessing_images<float>(5, 1);
  const xt::xtensor<float, 4> tensor = x;
  const xt::xarray<float> by_pixel = data::standardise(tensor, data::StandardisationScope::pixel),
                          by_image = data::standardise(tensor, data::StandardisationScope::image);
  CHECK(Preprocessing::fit(PreprocessingKind::pixel, x).apply(x) == by_pixel);
  CHECK(Preprocessing::fit(PreprocessingKind::image, x).apply(x) == by_image);
  CHECK(Preprocessing::fit(PreprocessingKind::none, x).apply(x) == x);
  CHECK(Preprocessing().apply(x) == x);
}

TEST_CASE("preprocessing: channels keep what they say at any offset and size that double holds") {
  numerics::RandomStream random(5);
  xt::xarray<double> plain = xt::xarray<double>::from_shape({200, 4});
  for (double& value : plain) value = random.normal();
  xt::xarray<double> far = plain;
  const std::array<double, 4> offsets{0, 1e9, 101325, 0}, sizes{1, 1, 0.01, 1e250};
  for (std::size_t i = 0; i < far.size(); ++i) far.flat(i) = offsets[i % 4] + sizes[i % 4] * plain.flat(i);
  const auto expected = Preprocessing::fit(PreprocessingKind::channel, plain).apply(plain);
  const auto found = Preprocessing::fit(PreprocessingKind::channel, far).apply(far);
  for (std::size_t i = 0; i < far.size(); ++i)
    CHECK(found.flat(i) == doctest::Approx(expected.flat(i)).epsilon(1e-6).scale(1));
  xt::xarray<double> wide = xt::xarray<double>::from_shape({2, 1});
  wide(0, 0) = -1.7e308;
  wide(1, 0) = 1.7e308;
  CHECK_THROWS_WITH_AS((void)Preprocessing::fit(PreprocessingKind::channel, wide),
                       doctest::Contains("differences lie within the range of double"), ArgumentError);
}

TEST_CASE("preprocessing: channels by hand, with the numbers of the training inputs") {
  // Channel 0 has mean 2 and variance 1, channel 1 is constant.
  const xt::xarray<double> train{{1, 7}, {3, 7}}, test{{5, 8}};
  const auto fitted = Preprocessing::fit(PreprocessingKind::channel, train);
  const auto result = fitted.apply(test);
  CHECK(result(0, 0) == doctest::Approx(3).epsilon(1e-15));
  CHECK(result(0, 1) == 1);  // it has no scale of its own
  CHECK(fitted.apply(train)(1, 1) == 0);
  // Nor has one that varies by the rounding of its mean alone.
  const xt::xarray<double> rounded{{0.1, 1}, {0.1, 2}, {0.1, 3}};
  CHECK(Preprocessing::fit(PreprocessingKind::channel, rounded).factors()(0, 0) == 1);
  const xt::xarray<double> tiny{{1, 1e-9}, {2, 3e-9}};
  CHECK(Preprocessing::fit(PreprocessingKind::channel, tiny).factors()(0, 1) ==
        doctest::Approx(1e9).epsilon(1e-9));

  const auto images = preprocessing_images<double>(40, 2);
  const auto prepared = Preprocessing::fit(PreprocessingKind::channel, images).apply(images);
  const Eigen::Map<const Matrix<double>> values(prepared.data(), 40 * 12, 2);
  for (Eigen::Index c = 0; c < 2; ++c) {
    CHECK(std::abs(values.col(c).mean()) < 1e-13);
    CHECK(values.col(c).squaredNorm() / 480 == doctest::Approx(1).epsilon(1e-4));
  }
}

TEST_CASE(
    "preprocessing: zca against Eigen's inverse root, beyond one block and with fewer inputs than numbers") {
  for (const std::size_t count : {std::size_t{600}, std::size_t{10}}) {
    CAPTURE(count);
    const auto train = preprocessing_images<double>(count, 3), test = preprocessing_images<double>(7, 4);
    const Vector<double> means = rows_of(train).colwise().mean();
    const Matrix<double> z = rows_of(train).rowwise() - means.transpose();
    Matrix<double> c = z.transpose() * z / static_cast<double>(count);
    const Matrix<double> covariance = c;
    c.diagonal().array() += 0.3 * c.diagonal().mean();
    const Matrix<double> root = Eigen::SelfAdjointEigenSolver<Matrix<double>>(c).operatorInverseSqrt();
    const auto fitted = Preprocessing::fit(PreprocessingKind::zca, train, 0.3);
    CHECK((fitted.factors() - root).cwiseAbs().maxCoeff() < 1e-12 * root.cwiseAbs().maxCoeff());
    const Matrix<double> expected = (rows_of(test).rowwise() - means.transpose()) * root;
    CHECK((rows_of(fitted.apply(test)) - expected).cwiseAbs().maxCoeff() < 1e-12);
    // What varies much comes out with variance 1, what hardly varies with less.
    const Matrix<double> whitened = rows_of(fitted.apply(train));
    const Matrix<double> after = whitened.transpose() * whitened / static_cast<double>(count);
    const Matrix<double> shrunk = c.ldlt().solve(covariance);
    CHECK((after - shrunk).cwiseAbs().maxCoeff() < 1e-11);
  }
}

TEST_CASE("preprocessing: float differs from double by rounding, and inputs do not depend on their batch") {
  const auto train = preprocessing_images<double>(30, 5), test = preprocessing_images<double>(6, 6);
  const xt::xarray<float> train_float = train, test_float = test;
  for (const PreprocessingKind kind : all_preprocessing_kinds) {
    CAPTURE(gp::to_string(kind));
    const auto fitted = Preprocessing::fit(kind, train);
    const auto in_double = fitted.apply(test);
    const auto in_float = Preprocessing::fit(kind, train_float).apply(test_float);
    for (std::size_t i = 0; i < in_float.size(); ++i)
      CHECK(in_float.data()[i] == doctest::Approx(in_double.data()[i]).epsilon(1e-5));
    const xt::xarray<double> first = xt::view(test, xt::range(0, 1));
    const auto alone = fitted.apply(first);
    for (std::size_t i = 0; i < alone.size(); ++i)
      CHECK(alone.data()[i] == doctest::Approx(in_double.data()[i]).epsilon(1e-13));
  }
}

TEST_CASE("preprocessing: with mirror images, mirror images stay mirror images") {
  const auto train = preprocessing_images<double>(30, 10), test = preprocessing_images<double>(6, 11);
  const auto near = [](const xt::xarray<double>& a, const xt::xarray<double>& b) {
    return xt::amax(xt::abs(a - b))() <= 1e-12 * xt::amax(xt::abs(a))();
  };
  for (const PreprocessingKind kind : all_preprocessing_kinds) {
    CAPTURE(gp::to_string(kind));
    const auto fitted = Preprocessing::fit(kind, train, 0.3, /*mirror_images=*/true);
    CHECK(fitted.keeps_mirror_images());
    CHECK(near(fitted.apply(flipped(test)), flipped(fitted.apply(test))));
    const xt::xarray<double> both = xt::concatenate(xt::xtuple(train, flipped(train)));
    CHECK(near(fitted.apply(test), Preprocessing::fit(kind, both, 0.3).apply(test)));
    const auto again = Preprocessing::from_json(nlohmann::json::parse(fitted.to_json().dump()),
                                                fitted.offsets(), fitted.factors(), "p.json");
    CHECK(again.keeps_mirror_images());
    CHECK(Preprocessing::fit(kind, train, 0.3).keeps_mirror_images() == (kind != PreprocessingKind::zca));
  }
  CHECK_THROWS_WITH_AS(
      Preprocessing::fit(PreprocessingKind::zca, xt::xarray<double>(xt::ones<double>({5, 3})), 1, true),
      "preprocessing: mirror images need inputs [n, spatial..., channels] with a spatial axis",
      ArgumentError);
}

TEST_CASE("preprocessing: saved and read again") {
  const auto train = preprocessing_images<double>(30, 7), test = preprocessing_images<double>(6, 8);
  for (const PreprocessingKind kind : all_preprocessing_kinds) {
    CAPTURE(gp::to_string(kind));
    const auto fitted = Preprocessing::fit(kind, train, 0.2);
    const auto json = nlohmann::json::parse(fitted.to_json().dump());
    CHECK(json["kind"] == gp::to_string(kind));
    const auto again = Preprocessing::from_json(json, fitted.offsets(), fitted.factors(), "p.json");
    CHECK(again.apply(test) == fitted.apply(test));
    CHECK(again.to_json() == fitted.to_json());
    CHECK(gp::preprocessing_kind(gp::to_string(kind)) == kind);
  }
}

TEST_CASE("preprocessing: errors of inputs") {
  const auto train = preprocessing_images<double>(4, 9);
  CHECK_THROWS_WITH_AS(static_cast<void>(gp::preprocessing_kind("pca")),
                       "preprocessing: expected none, pixel, image, channel or zca, got 'pca'",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(
      Preprocessing::fit(PreprocessingKind::pixel, xt::xarray<double>(xt::ones<double>({2, 3, 1}))),
      "preprocessing: pixel needs two or more channels, got 1; use image, channel or zca", ArgumentError);
  CHECK_THROWS_WITH_AS(
      Preprocessing::fit(PreprocessingKind::image, xt::xarray<double>(xt::ones<double>({3}))),
      "preprocessing: expected inputs [n, spatial..., channels], got 1 axes", ArgumentError);
  CHECK_THROWS_WITH_AS(
      Preprocessing::fit(PreprocessingKind::zca, xt::xarray<double>(xt::ones<double>({0, 3}))),
      "preprocessing: there are no training inputs, or they are empty", ArgumentError);
  CHECK_THROWS_WITH_AS(
      Preprocessing::fit(PreprocessingKind::zca, xt::xarray<double>(xt::ones<double>({5, 3}))),
      "preprocessing: zca needs training inputs that differ", ArgumentError);
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK_THROWS_AS(Preprocessing::fit(PreprocessingKind::zca, train, bad), ArgumentError);
  auto broken = train;
  broken.data()[5] = std::nan("");
  CHECK_THROWS_WITH_AS(Preprocessing::fit(PreprocessingKind::channel, broken),
                       "preprocessing: inputs must be finite, got nan at entry 5", ArgumentError);
  const auto fitted = Preprocessing::fit(PreprocessingKind::zca, train);
  CHECK_THROWS_WITH_AS(fitted.apply(broken), "preprocessing: inputs must be finite, got nan at entry 5",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(fitted.apply(xt::xarray<double>(xt::ones<double>({2, 4, 2, 3}))),
                       "preprocessing: expected inputs of shape [4, 3, 2] as in training, got [4, 2, 3]",
                       ArgumentError);
}

TEST_CASE("preprocessing: errors of what was saved") {
  const auto fitted = Preprocessing::fit(PreprocessingKind::zca, preprocessing_images<double>(4, 9));
  const auto check = [&](const char* key, const nlohmann::json& value, const char* message) {
    auto json = fitted.to_json();
    json[key] = value;
    CHECK_THROWS_WITH_AS(Preprocessing::from_json(json, fitted.offsets(), fitted.factors(), "p.json"),
                         message, DataError);
  };
  check("kind", "pca", "p.json.kind: preprocessing: expected none, pixel, image, channel or zca, got 'pca'");
  check("kind", 3, "p.json.kind: expected a string, got 3");
  check("kind", "image", "p.json.input_shape: expected []");
  check("input_shape", nlohmann::json::array(), "p.json.input_shape: expected the shape of an input");
  check("input_shape", {4, 0}, "p.json.input_shape: expected positive sizes whose product is below 2^31");
  check("input_shape", {4, 4}, "p.json: expected offsets [16] and factors [16, 16], got [24] and [24, 24]");
  check("zca_regulariser", 0, "p.json.zca_regulariser: expected a positive number for zca, and 0 for others");
  Matrix<double> factors = fitted.factors();
  factors(2, 3) = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS(Preprocessing::from_json(fitted.to_json(), fitted.offsets(), factors, "p.json"),
                       "p.json: offsets and factors must be finite", DataError);
  auto json = fitted.to_json();
  json.erase("kind");
  CHECK_THROWS_AS(Preprocessing::from_json(json, fitted.offsets(), fitted.factors(), "p.json"), DataError);
}
