#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>
#include <xtensor/xarray.hpp>

#include "widelimit/data/labelled_images.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::cli {

/// Inputs with what is known about them.
template <typename Scalar>
struct GpSet {
  xt::xarray<Scalar> x;                   ///< [n, spatial..., channels]
  std::optional<Matrix<double>> targets;  ///< [n, outputs]
};

/// Whether the largest output (or the sign of a single one) names a class.
enum class TargetKind { classes, numbers };

/// Data of a regression or classification.
template <typename Scalar>
struct GpTask {
  std::string description;  ///< For people: what, how many, of which shape.
  TargetKind kind = TargetKind::classes;
  GpSet<Scalar> train;                      ///< With targets.
  std::optional<GpSet<Scalar>> validation;  ///< With targets.
  GpSet<Scalar> test;
};

/// How images are chosen and prepared.
struct ImageChoice {
  std::size_t train = 0;
  std::size_t validation = 0;  ///< May be 0.
  std::size_t test = 0;
  std::size_t size = 32;  ///< Height and width after anti-aliased downsampling.
  std::uint64_t seed = 0;
};

/// Images of the generated sample, downsampled and standardised pixel by pixel.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> sample_task(const ImageChoice& choice);

/// CIFAR-10 from the binary files in `folder`: training and validation images from data_batch_*.bin, test
/// images from test_batch.bin, all balanced over the classes; prepared in the same way.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> cifar10_task(const std::filesystem::path& folder, const ImageChoice& choice);

/// x_train.npy, y_train.npy, x_test.npy and, where they exist, y_test.npy, x_validation.npy,
/// y_validation.npy, as they are. Integer y are labels [n], which become one-hot targets with as many classes
/// as the training labels have; others are targets [n, M] or [n]. Real targets count as classes where they
/// take two values and each row has one larger one (two signs, for a single output). Throws DataError that
/// names the file.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> npy_task(const std::filesystem::path& folder);

}  // namespace widelimit::cli
