#include "example_support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <widelimit/data/cifar10.hpp>
#include <widelimit/data/preprocessing.hpp>
#include <widelimit/data/synthetic_images.hpp>
#include <widelimit/gp/metrics.hpp>
#include <widelimit/gp/regression.hpp>
#include <widelimit/gp/targets.hpp>
#include <widelimit/layers/pooling.hpp>

namespace examples {
namespace {

namespace data = widelimit::data;
namespace gp = widelimit::gp;

ImageSet prepared(const data::LabelledImages& images, std::size_t side) {
  return {.x = data::standardise(data::resize_anti_aliased(images.images, side, side)),
          .targets = gp::class_targets(images.labels, static_cast<int>(images.classes))};
}

/// `count` generated images from the `first` one on.
data::LabelledImages generated(std::size_t first, std::size_t count, std::uint64_t seed) {
  const auto all = data::generate_synthetic_images(first + count, seed);
  std::vector<std::size_t> indices(count);
  for (std::size_t i = 0; i < count; ++i) indices[i] = first + i;
  return data::select(all, indices);
}

}  // namespace

Sizes Settings::sizes(const Sizes& published, const Sizes& quick_sizes) const {
  const Sizes& chosen = quick ? quick_sizes : published;
  return {.side = side.value_or(chosen.side),
          .train = train.value_or(chosen.train),
          .validation = validation.value_or(chosen.validation),
          .test = test.value_or(chosen.test)};
}

GramOptions Settings::gram_options() const {
  GramOptions options;
  options.kernels = kernels;
  options.threads = threads;
  return options;
}

void add_arguments(ArgumentList& arguments, Settings& settings, const std::string& default_folder) {
  add_common_arguments(arguments, settings, default_folder);
  arguments.number("--threads", settings.threads, "Worker threads; 0: one a core", 0, 4096);
}

void add_image_arguments(ArgumentList& arguments, Settings& settings) {
  arguments.existing_folder("--data", settings.data,
                            "Folder of CIFAR-10's binary files; left out: generated images");
  arguments.number("--size", settings.side, "Height and width that images are reduced to", 1, 32);
  arguments.number("--train", settings.train, "Training images", 10, 50'000);
  arguments.number("--validation", settings.validation, "Validation images", 10, 50'000);
  arguments.number("--test", settings.test, "Test images", 10, 10'000);
  arguments.number("--seed", settings.seed, "Seed of the choice of images");
  arguments.choice("--kernel", "nngp, ntk or both", {"nngp", "ntk", "both"}, [&settings](std::size_t chosen) {
    settings.kernels = std::array{Kernels::nngp, Kernels::ntk, Kernels::both}[chosen];
  });
}

ImageTask load_images(const Settings& settings, const Sizes& sizes) {
  ImageTask task;
  if (settings.data.empty()) {
    task.train = prepared(generated(0, sizes.train, settings.seed), sizes.side);
    task.validation = prepared(generated(sizes.train, sizes.validation, settings.seed), sizes.side);
  } else {
    const std::size_t counts[] = {sizes.train, sizes.validation};
    const auto parts = data::read_cifar10(data::cifar10_training_files(settings.data), counts,
                                          data::ClassBalance::equal, settings.seed);
    task.train = prepared(parts[0], sizes.side);
    task.validation = prepared(parts[1], sizes.side);
  }
  task.description = fmt::format("{}: {} training and {} validation images of {} x {} pixels, seed {}",
                                 settings.data.empty() ? "generated images" : "CIFAR-10", sizes.train,
                                 sizes.validation, sizes.side, sizes.side, settings.seed);
  return task;
}

ImageSet load_test_images(const Settings& settings, const Sizes& sizes) {
  // Another seed, so that test images stay the same whatever the sizes of the other sets.
  if (settings.data.empty()) return prepared(generated(0, sizes.test, ~settings.seed), sizes.side);
  const std::size_t counts[] = {sizes.test};
  return prepared(data::read_cifar10(data::cifar10_test_files(settings.data), counts,
                                     data::ClassBalance::equal, settings.seed)[0],
                  sizes.side);
}

std::vector<NamedKernel> kernels_of(const Settings& settings) {
  std::vector<NamedKernel> kernels;
  if (settings.kernels != Kernels::ntk) kernels.push_back({"nngp", &GramResult<float>::nngp});
  if (settings.kernels != Kernels::nngp) kernels.push_back({"ntk", &GramResult<float>::ntk});
  return kernels;
}

ValidationScore validate(const Matrix<float>& train_gram, const Matrix<float>& validation_cross,
                         const ImageTask& task, int threads) {
  const auto selection =
      gp::select_regulariser(train_gram, task.train.targets, validation_cross, task.validation.targets,
                             gp::regulariser_grid(), gp::Criterion::accuracy, threads);
  const auto best = std::find_if(selection.scores.begin(), selection.scores.end(), [&](const auto& score) {
    return score.relative_regulariser == selection.best.value();
  });
  return {.accuracy = best->accuracy, .regulariser = best->relative_regulariser};
}

double accuracy_with(double regulariser, const Matrix<float>& train_gram, const Matrix<float>& cross,
                     const ImageTask& task, const ImageSet& images, int threads) {
  const auto regression =
      gp::Regression::fit(train_gram, task.train.targets, gp::RelativeRegulariser(regulariser), threads);
  return gp::accuracy(regression.mean(cross), images.targets);
}

double mean_variance(const Layers& layers, const ImageSet& images, const GramOptions& options) {
  // After flatten, the kernel of an image with itself is the mean of its variances.
  Layers probe = layers;
  probe.push_back(widelimit::layers::flatten());
  GramOptions probe_options = options;
  probe_options.kernels = Kernels::nngp;
  probe_options.progress = nullptr;
  return gram_diagonal(Network(probe), images.inputs(), probe_options).nngp.cast<double>().mean();
}

}  // namespace examples
