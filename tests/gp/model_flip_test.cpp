// Models whose kernels are averaged over mirror images.
#include <doctest/doctest.h>

#include "data/temporary_folder.hpp"
#include "gp/problem.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/kernel/flip_average.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using gp_test::random_matrix;

/// One that treats left and right alike, or, with a stride of 2 over 4 columns, does not.
Network mirrored_network(Index stride) {
  using namespace layers;
  return Network({conv({{3, 3}, {1, stride}, Padding::same, 1.5, 0.1}), relu(), flatten(), dense()});
}

void check_near(const Matrix<double>& result, const Matrix<double>& expected) {
  REQUIRE(result.rows() == expected.rows());
  REQUIRE(result.cols() == expected.cols());
  CHECK((result - expected).cwiseAbs().maxCoeff() <= 1e-10 * expected.cwiseAbs().maxCoeff());
}

}  // namespace

TEST_CASE(
    "model with flips: a posterior with averaged kernels, that does not tell an image from its mirror "
    "image") {
  const auto x = random_inputs(1, {14, 3, 4, 2}), test = random_inputs(2, {5, 3, 4, 2});
  const Matrix<double> y = random_matrix(14, 2, 3);
  for (const Index stride : {Index{1}, Index{2}}) {
    CAPTURE(stride);
    const Network network = mirrored_network(stride);
    const gp::Model model =
        gp::Model::fit(network, Inputs<double>(x), y,
                       {.noise = gp::RelativeRegulariser(0.02), .targets_as_they_are = true, .flip = true});
    CHECK(model.flips());
    const FlipAverage<double> average(network, x);
    const auto regression = gp::Regression::fit(average.gram(x).nngp, y, gp::RelativeRegulariser(0.02));
    const auto cross = average.gram(test, x), own = average.gram(test);
    const auto prediction = model.predict(Inputs<double>(test));
    check_near(prediction.mean, regression.mean(cross.nngp));
    const gp::Regression second = regression.output(1, y);
    check_near(prediction.variance.col(1), second.variance(cross.nngp, own.nngp.diagonal()));
    check_near(model.predict_jointly(Inputs<double>(test)).covariance(1),
               second.covariance(cross.nngp, own.nngp));
    check_near(model.mean(Inputs<double>(flipped(test))), prediction.mean);
    const gp::Model plain = gp::Model::fit(
        network, Inputs<double>(x), y, {.noise = gp::RelativeRegulariser(0.02), .targets_as_they_are = true});
    CHECK((plain.mean(Inputs<double>(test)) - prediction.mean).cwiseAbs().maxCoeff() > 1e-2);
  }
}

TEST_CASE("model with flips: trained networks, validation, kept Gram matrices, folders") {
  const TemporaryFolder folder;
  const auto x = random_inputs(1, {14, 3, 4, 2}), more = random_inputs(2, {6, 3, 4, 2}),
             test = random_inputs(3, {5, 3, 4, 2});
  const gp::LabelledInputs<double> train{Inputs<double>(x), random_matrix(14, 1, 3)},
      validation{Inputs<double>(more), random_matrix(6, 1, 4)};
  const Network network = mirrored_network(2);
  gp::ModelOptions options{.kind = gp::ModelKind::trained,
                           .criterion = gp::Criterion::mean_squared_error,
                           .flip = true,
                           .refit = true};
  const gp::Model model = gp::Model::fit(network, train, validation, options);
  CHECK(model.train_size() == 20);
  const auto prediction = model.predict(Inputs<double>(test));
  check_near(model.predict(Inputs<double>(flipped(test))).variance, prediction.variance);
  model.save(folder.path() / "model");
  const gp::Model loaded = gp::Model::load(folder.path() / "model");
  CHECK(loaded.flips());
  CHECK(loaded.predict(Inputs<double>(test)).mean == prediction.mean);
  CHECK(loaded.predict(Inputs<double>(test)).variance == prediction.variance);

  // Kept matrices of the same inputs without flips are not taken.
  options.gram_folder = folder.path() / "grams";
  options.flip = false;
  const Matrix<double> plain = gp::Model::fit(network, train, validation, options).mean(Inputs<double>(test));
  options.flip = true;
  for (int i = 0; i < 2; ++i)
    CHECK(gp::Model::fit(network, train, validation, options).mean(Inputs<double>(test)) == prediction.mean);
  CHECK((plain - prediction.mean).cwiseAbs().maxCoeff() > 1e-3);
}

TEST_CASE("model with flips: mirror images are predicted alike after every preprocessing") {
  using gp::PreprocessingKind;
  const auto x = random_inputs(1, {14, 3, 4, 2}), test = random_inputs(2, {5, 3, 4, 2});
  const Matrix<double> y = random_matrix(14, 1, 3);
  gp::ModelOptions options{.noise = gp::RelativeRegulariser(0.02), .targets_as_they_are = true, .flip = true};
  for (const auto kind : {PreprocessingKind::none, PreprocessingKind::pixel, PreprocessingKind::image,
                          PreprocessingKind::channel, PreprocessingKind::zca}) {
    CAPTURE(gp::to_string(kind));
    options.preprocessing = gp::Preprocessing::fit(kind, x, 0.1, /*mirror_images=*/true);
    const auto prepared = options.preprocessing.apply(x);
    const gp::Model model = gp::Model::fit(mirrored_network(2), Inputs<double>(prepared), y, options);
    const auto mean_of = [&](const xt::xarray<double>& images) {
      return model.mean(Inputs<double>(options.preprocessing.apply(images)));
    };
    check_near(mean_of(flipped(test)), mean_of(test));
  }
  options.preprocessing = gp::Preprocessing::fit(PreprocessingKind::zca, x, 0.1);
  CHECK_THROWS_WITH_AS(
      (void)gp::Model::fit(mirrored_network(2), Inputs<double>(x), y, options),
      doctest::Contains("the preprocessing (zca) makes something else; fit it with mirror_images"),
      ArgumentError);
}

TEST_CASE("model with flips: vectors and graphs have no mirror images") {
  gp::ModelOptions options{.flip = true};
  const Network dense({layers::dense()});
  const Matrix<double> x = random_matrix(5, 3, 1);
  CHECK_THROWS_WITH_AS((void)gp::Model::fit(dense, Inputs<double>(x), x, options),
                       doctest::Contains("flip: expected inputs [n, spatial..., channels]"), ArgumentError);
  const Network pooled({layers::global_sum_pool(), layers::dense()});
  const Inputs<double> graphs(Inputs<double>(random_inputs(1, {5, 3, 2})),
                              std::vector<InputGraph>(5, InputGraph(3, {})));
  CHECK_THROWS_WITH_AS((void)gp::Model::fit(pooled, graphs, x, options),
                       doctest::Contains("flip: expected inputs without graphs"), ArgumentError);
}

}  // namespace widelimit::testing
