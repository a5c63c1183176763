#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>
#include <widelimit/gp/selection.hpp>
#include <widelimit/kernel/gram.hpp>
#include <xtensor/xtensor.hpp>

#include "figure.hpp"

/// What the attention examples share: arguments, image classification tasks.
namespace examples {

using widelimit::GramOptions;
using widelimit::GramResult;
using widelimit::Index;
using widelimit::Inputs;
using widelimit::Kernels;
using widelimit::Layers;
using widelimit::Matrix;
using widelimit::Network;

/// Height and width that images are reduced to, and numbers of images.
struct Sizes {
  std::size_t side;
  std::size_t train;
  std::size_t validation;
  std::size_t test;
};

/// Arguments of the attention examples; see add_arguments().
struct Settings : CommonSettings {
  Settings() {
    // Rows of other curves, which come out as NaN, must not break a line.
    picture_settings += "set datafile missing NaN\nset offsets 0, 0, graph 0.05, graph 0.05\n";
  }

  std::filesystem::path data;  ///< Folder of CIFAR-10; empty: generated images.
  int threads = 0;
  std::uint64_t seed = 0;
  std::optional<std::size_t> side, train, validation, test;
  Kernels kernels = Kernels::both;

  /// The number for the published size, or for --quick, of images; sizes that were given as arguments win.
  Sizes sizes(const Sizes& published, const Sizes& quick_sizes) const;
  GramOptions gram_options() const;
};

/// The common arguments and --threads.
void add_arguments(ArgumentList& arguments, Settings& settings, const std::string& default_folder);

/// --data, --size, --train, --validation, --test, --seed, --kernel.
void add_image_arguments(ArgumentList& arguments, Settings& settings);

struct ImageSet {
  xt::xtensor<float, 4> x;  ///< [n, side, side, 3]; every pixel standardised over its channels.
  Matrix<double> targets;   ///< [n, 10]

  Inputs<float> inputs() const { return x; }
  Index size() const { return static_cast<Index>(x.shape(0)); }
};

/// Training and validation images: disjoint random choices from the training files, equally many of every
/// class.
struct ImageTask {
  std::string description;
  ImageSet train;
  ImageSet validation;
};

ImageTask load_images(const Settings& settings, const Sizes& sizes);

/// Test images, kept apart so that they are read only once everything has been chosen.
ImageSet load_test_images(const Settings& settings, const Sizes& sizes);

/// A kernel's part of a GramResult.
struct NamedKernel {
  std::string name;  ///< nngp or ntk
  Matrix<float> GramResult<float>::*matrix;
};

/// The kernels that were asked for.
std::vector<NamedKernel> kernels_of(const Settings& settings);

/// Accuracy on validation images with the regulariser, of a log grid 1e-7 .. 1e2, that is best on the same
/// images.
struct ValidationScore {
  double accuracy;
  double regulariser;  ///< Relative to the mean diagonal of the training Gram matrix.
};
ValidationScore validate(const Matrix<float>& train_gram, const Matrix<float>& validation_cross,
                         const ImageTask& task, int threads);

/// Accuracy on other images with a regulariser that is chosen already.
double accuracy_with(double regulariser, const Matrix<float>& train_gram, const Matrix<float>& cross,
                     const ImageTask& task, const ImageSet& images, int threads);

/// Mean variance of a position over all positions and images after `layers`: what rho of an image task
/// refers to.
double mean_variance(const Layers& layers, const ImageSet& images, const GramOptions& options);

}  // namespace examples
