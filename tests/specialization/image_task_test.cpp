#include "widelimit/specialization/image_task.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "support.hpp"
#include "widelimit/data/mnist.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

namespace {

/// Three classes of images: a bright third each, with noise.
ImageTask small_task(double amplitude, Index count = 60, Index dimension = 24) {
  numerics::RandomStream random(1);
  Matrix<double> pixels(count, dimension);
  std::vector<int> labels;
  for (Index i = 0; i < count; ++i) {
    labels.push_back(static_cast<int>(i % 3));
    for (Index d = 0; d < dimension; ++d) pixels(i, d) = (d % 3 == i % 3 ? 180 : 20) + 50 * random.uniform();
  }
  return ImageTask(pixels, labels, amplitude);
}

HeadVectors start_heads(HeadActivation activation, Index heads, Index dimension) {
  return random_start(activation, heads, 1, dimension, 1, 3).heads;
}

}  // namespace

TEST_CASE("image task: centred images, class means, tokens") {
  const ImageTask task = small_task(0.5);
  CHECK(task.images().colwise().sum().cwiseAbs().maxCoeff() < 1e-12);
  Vector<double> mean = Vector<double>::Zero(24);
  for (Index i = 1; i < 60; i += 3) mean += task.images().row(i).transpose() / 20;
  CHECK(distance(task.class_means().row(1).transpose(), mean) < 1e-14);
  const Matrix<double> noise = Matrix<double>::Ones(4, 24);
  const Matrix<double> tokens = task.tokens(noise, 2, 7);
  CHECK(distance(tokens.row(2) - noise.row(2), 0.5 * task.images().row(7)) < 1e-15);
  CHECK(tokens.row(0) == noise.row(0));
}

TEST_CASE("image task: the posterior agrees with a discrete prior whose spikes are the images") {
  const ImageTask task = small_task(0.8, 6, 9);
  numerics::RandomStream random(2);
  const Matrix<double> X = random_matrix(4, 9, random);
  const Prior prior = Prior::discrete(0.8 * task.images(), Vector<double>::Constant(6, 1.0 / 6));
  CHECK(distance(task.posterior(X), bayes_posterior(prior, X)) < 1e-14);
}

TEST_CASE("image task: Bayes risk against single posteriors, and training approaches it from above") {
  const ImageTask task = small_task(1.2);
  const BayesRisk risk = task.bayes_risk(4, 4000, 5);
  CHECK(risk.risk > 0);
  CHECK(risk.risk < 0.75);
  SgdOptions options;
  options.tokens = 4;
  options.batch = 48;
  options.gamma = 0.5;
  options.steps = 400;
  for (const HeadActivation activation : all_activations) {
    const HeadVectors start = start_heads(activation, 4, 24);
    const auto run = image_sgd(activation, task, start, options);
    const BayesRisk before = image_loss(activation, task, start, 4, 2000, 6);
    const BayesRisk after = image_loss(activation, task, run.back().heads, 4, 2000, 6);
    CHECK(after.risk < before.risk - 4 * std::hypot(before.standard_error, after.standard_error));
    CHECK(after.risk > risk.risk - 4 * std::hypot(risk.standard_error, after.standard_error));
    CHECK(run.front().tau == 0);
    CHECK(run.back().tau == 200);
  }
}

TEST_CASE("image task: image_loss agrees with batch_loss on the same kind of sequences") {
  const ImageTask task = small_task(0);
  const HeadVectors heads = start_heads(HeadActivation::softmax, 3, 24);
  numerics::RandomStream random(4);
  const TokenBatch batch{4, random_matrix(4 * 4000, 24, random), std::vector<Index>(4000, 0)};
  const BayesRisk sampled = image_loss(HeadActivation::softmax, task, heads, 4, 4000, 7);
  CHECK(std::abs(sampled.risk - batch_loss(HeadActivation::softmax, heads, batch).loss) <
        4 * std::sqrt(2.0) * sampled.standard_error);
}

TEST_CASE("image task: rejections name the field") {
  const auto make = [](Index images, std::vector<int> labels, double amplitude, double pixel = 10) {
    return message_of(
        [&] { (void)ImageTask(Matrix<double>::Constant(images, 4, pixel), labels, amplitude); });
  };
  CHECK(make(2, {0, 1}, 1).empty());
  CHECK(make(0, {}, 1) == "ImageTask: images N must be at least 1, got 0");
  CHECK(make(2, {0}, 1) == "ImageTask: labels must have one entry an image (2), got 1");
  CHECK(make(2, {0, 2}, 1) == "ImageTask: class 1 has no image; classes must be 0, 1, ...");
  CHECK(make(2, {0, -1}, 1) == "ImageTask: labels must be at least 0, got -1");
  CHECK(make(2, {0, 1}, -0.3) == "ImageTask: amplitude nu must be at least 0 and finite, got -0.3");
  CHECK(make(2, {0, 1}, 1, 256) == "ImageTask: pixels must lie in [0, 255], got values from 256 to 256");
  const ImageTask task = small_task(1);
  const Matrix<double> noise = Matrix<double>::Zero(3, 24);
  CHECK(message_of([&] { (void)(void)task.tokens(noise, 3, 0); }) ==
        "ImageTask::tokens: eps must lie in [0, 3), got 3");
  CHECK(message_of([&] { (void)(void)task.tokens(noise, 0, 60); }) ==
        "ImageTask::tokens: image must lie in [0, 60), got 60");
  CHECK(message_of([&] {
          (void)(void)task.class_cosines(Matrix<double>::Zero(1, 24));
        }).find("head 0 has length 0") != std::string::npos);
}

TEST_CASE("image task: MNIST digits are detected better than chance by their posterior") {
  const std::filesystem::path folder = WIDELIMIT_SOURCE_DIR "/../shared/data/mnist";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: the shared MNIST files are missing");
    return;
  }
  const data::LabelledImages digits = data::read_mnist(data::mnist_test_files(folder));
  Matrix<double> pixels(1000, 784);
  for (Index i = 0; i < pixels.size(); ++i)
    pixels.data()[i] = 255.0 * static_cast<double>(digits.images.data()[i]);
  const ImageTask task(pixels.cwiseMin(255.0), {digits.labels.begin(), digits.labels.begin() + 1000}, 0.3);
  const BayesRisk risk = task.bayes_risk(5, 1000, 1);
  CHECK(risk.risk < 0.8 - 4 * risk.standard_error);
  CHECK(risk.risk > 0.6);
}
