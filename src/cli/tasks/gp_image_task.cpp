#include <fmt/format.h>

#include <algorithm>

#include "cli/tasks/gp_task.hpp"
#include "widelimit/data/cifar10.hpp"
#include "widelimit/data/mnist.hpp"
#include "widelimit/data/preprocessing.hpp"
#include "widelimit/data/synthetic_images.hpp"
#include "widelimit/gp/targets.hpp"

namespace widelimit::cli {
namespace {

template <typename Scalar>
GpSet<Scalar> prepared(const data::LabelledImages& images, std::size_t size) {
  const auto values = data::resize_anti_aliased(images.images, size, size);
  xt::xarray<Scalar> x = xt::xarray<Scalar>::from_shape({values.shape().begin(), values.shape().end()});
  std::transform(values.begin(), values.end(), x.begin(),
                 [](float value) { return static_cast<Scalar>(value); });
  return {.x = std::move(x),
          .sequences = {},
          .targets = gp::class_scores(images.labels, static_cast<int>(images.classes)),
          .names = images.names};
}

/// The preprocessing of images unless the user says otherwise, as it was measured (docs/data.md). A covariance of p
/// numbers takes several p images; with fewer, whitening follows chance.
template <typename Scalar>
void choose_preprocessing(GpTask<Scalar>& task, std::size_t images, std::size_t size, std::size_t channels) {
  constexpr std::size_t images_for_each_number = 2;
  const std::size_t enough = images_for_each_number * size * size * channels;
  const bool whitens = channels > 1 && images >= enough;
  task.default_preprocessing = whitens ? gp::PreprocessingKind::zca : gp::PreprocessingKind::image;
  if (channels > 1 && !whitens) task.default_reason = fmt::format("zca takes {} images", enough);
}

template <typename Scalar>
GpTask<Scalar> image_task(const std::string& name, const ImageChoice& choice,
                          const data::LabelledImages& train, const data::LabelledImages& validation,
                          const data::LabelledImages& test) {
  GpTask<Scalar> task;
  choose_preprocessing(task, train.size(), choice.size, train.images.shape(3));
  task.class_names = train.class_names;
  task.test_faces.pictures = test.images;
  task.description =
      fmt::format("{}: {} training, {} validation, {} test images of {}x{}x{}, {} classes, seed {}", name,
                  train.size(), validation.size(), test.size(), choice.size, choice.size,
                  train.images.shape(3), train.classes, choice.seed);
  task.train = prepared<Scalar>(train, choice.size);
  if (validation.size() > 0) task.validation = prepared<Scalar>(validation, choice.size);
  task.test = prepared<Scalar>(test, choice.size);
  task.preparation = {{"resize", choice.size}};
  return task;
}

/// Images first .. first + count - 1 of a set.
data::LabelledImages piece(const data::LabelledImages& images, std::size_t first, std::size_t count) {
  std::vector<std::size_t> indices(count);
  for (std::size_t i = 0; i < count; ++i) indices[i] = first + i;
  return data::select(images, indices);
}

}  // namespace

template <typename Scalar>
GpTask<Scalar> sample_task(const ImageChoice& choice) {
  // Test images come first, so that they stay the same whatever the sizes of the other sets.
  const auto all =
      data::generate_synthetic_images(choice.test + choice.train + choice.validation, choice.seed);
  return image_task<Scalar>("sample", choice, piece(all, choice.test, choice.train),
                            piece(all, choice.test + choice.train, choice.validation),
                            piece(all, 0, choice.test));
}

template <typename Scalar>
GpTask<Scalar> cifar10_task(const std::filesystem::path& folder, const ImageChoice& choice) {
  const std::size_t known_counts[] = {choice.train, choice.validation};
  const std::size_t test_counts[] = {choice.test};
  const auto known = data::read_cifar10(data::cifar10_training_files(folder), known_counts,
                                        data::ClassBalance::equal, choice.seed);
  const auto test = data::read_cifar10(data::cifar10_test_files(folder), test_counts,
                                       data::ClassBalance::equal, choice.seed);
  return image_task<Scalar>("cifar10", choice, known[0], known[1], test[0]);
}

template <typename Scalar>
GpTask<Scalar> mnist_task(const std::filesystem::path& folder, const ImageChoice& choice) {
  const auto read = [&](const data::MnistFiles& files, const std::vector<std::size_t>& counts) {
    return data::read_mnist(files, counts, data::ClassBalance::equal, choice.seed);
  };
  const data::MnistFiles test_files = data::mnist_test_files(folder);
  if (data::holds_mnist_training_files(folder)) {
    const auto known = read(data::mnist_training_files(folder), {choice.train, choice.validation});
    return image_task<Scalar>("mnist", choice, known[0], known[1], read(test_files, {choice.test})[0]);
  }
  // Test images come first, as in the sample.
  const auto parts = read(test_files, {choice.test, choice.train, choice.validation});
  auto task = image_task<Scalar>("mnist", choice, parts[1], parts[2], parts[0]);
  task.notes.push_back(
      fmt::format("{}: no train-images-idx3-ubyte; training and validation images are other ones of "
                  "t10k-images-idx3-ubyte",
                  folder.string()));
  return task;
}

template GpTask<float> sample_task(const ImageChoice&);
template GpTask<double> sample_task(const ImageChoice&);
template GpTask<float> cifar10_task(const std::filesystem::path&, const ImageChoice&);
template GpTask<double> cifar10_task(const std::filesystem::path&, const ImageChoice&);
template GpTask<float> mnist_task(const std::filesystem::path&, const ImageChoice&);
template GpTask<double> mnist_task(const std::filesystem::path&, const ImageChoice&);

}  // namespace widelimit::cli
