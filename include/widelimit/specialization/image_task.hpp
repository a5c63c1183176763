#pragma once

#include <cstdint>
#include <vector>

#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/sgd.hpp"

namespace widelimit::specialization {

/// The semi-realistic task: the signal of a sequence is a random image of a set, tokens are
/// X_l ~ N(nu delta_{l, eps} image, I). Its features are the class means.
class ImageTask {
 public:
  /// `pixels` (N x D, 0 to 255) are divided by 255 and centred by their mean image; `labels` (N) are classes
  /// from 0. `amplitude` nu multiplies the image (an amplitude, not a variance).
  ///
  /// Errors  ArgumentError for N = 0, D = 0, another number of labels than images, negative labels, a class
  ///         without an image, pixels outside [0, 255] and amplitude < 0.
  ImageTask(const Matrix<double>& pixels, std::vector<int> labels, double amplitude);

  [[nodiscard]] const Matrix<double>& images() const { return images_; }  ///< N x D, centred.
  [[nodiscard]] const std::vector<int>& labels() const { return labels_; }
  [[nodiscard]] double amplitude() const { return amplitude_; }
  [[nodiscard]] Index dimension() const { return images_.cols(); }

  /// Mean of the centred images of each class (classes x D).
  [[nodiscard]] const Matrix<double>& class_means() const { return class_means_; }

  /// noise (L x D) with the signal of `image` added to token eps. ArgumentError for eps or image out of range.
  [[nodiscard]] Matrix<double> tokens(const Matrix<double>& noise, Index eps, Index image) const;

  /// Posterior probability (L) of each token to carry an image, given tokens (L x D). Cost N L D.
  [[nodiscard]] Vector<double> posterior(const Matrix<double>& tokens) const;

  /// Bayes risk E (1/D) |y - sum_l p_l X_l|^2 over n drawn sequences. Cost n N L D multiply-adds in single precision.
  [[nodiscard]] BayesRisk bayes_risk(Index tokens, Index count, std::uint64_t seed,
                                     const RunControl& run = {}) const;

  /// Cosines of the heads k (H x D) with the class means (H x classes). ArgumentError for a head of length 0.
  [[nodiscard]] Matrix<double> class_cosines(const Matrix<double>& k) const;

 private:
  Matrix<double> images_;
  std::vector<int> labels_;
  double amplitude_;
  Matrix<double> class_means_;
};

/// A recorded step of image_sgd().
struct ImageSgdPoint {
  double tau = 0;
  double loss = 0;  ///< Of the batch of this step, before it is taken.
  HeadVectors heads;
};

/// Online SGD on the image task from given heads k (H x D), b (H) and v (scale_count); errors and cost as sgd, without
/// spikes.
[[nodiscard]] std::vector<ImageSgdPoint> image_sgd(HeadActivation activation, const ImageTask& task,
                                                   const HeadVectors& start, const SgdOptions& options);

/// Mean loss of given heads over `count` fresh sequences, and its standard error. ArgumentError for L < 1, count < 2
/// and heads that do not fit the images.
[[nodiscard]] BayesRisk image_loss(HeadActivation activation, const ImageTask& task, const HeadVectors& heads,
                                   Index tokens, Index count, std::uint64_t seed, const RunControl& run = {});

}  // namespace widelimit::specialization
