#include "widelimit/specialization/image_task.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "numerics/block_sums.hpp"
#include "specialization/log_sum_exp.hpp"
#include "specialization/vector_sgd.hpp"

namespace widelimit::specialization {

namespace {

/// Draws sequences of the task: normal noise, and `image` amplitude times a random image on token 0 of each.
class ImageDraw {
 public:
  ImageDraw(const ImageTask& task, Index tokens, std::uint64_t seed)
      : signals_{(task.amplitude() * task.images()).cast<float>()}, tokens_{tokens}, seed_{seed} {}

  void operator()(std::uint64_t stream, Matrix<float>& X) const {
    draw_sequences(seed_, stream, tokens_, X, [&](numerics::RandomStream& random, auto token) {
      token += signals_.row(static_cast<Index>(random.below(static_cast<std::uint64_t>(signals_.rows()))));
    });
  }

  const Matrix<float>& signals() const { return signals_; }

 private:
  Matrix<float> signals_;
  Index tokens_;
  std::uint64_t seed_;
};

/// The mean of the losses of `count` sequences, and its error;
/// find_losses(block, losses) writes those of a block of so many.
template <typename FindLosses>
BayesRisk mean_loss(Index count, Index block_size, const RunControl& run, const FindLosses& find_losses) {
  // Every block writes its own: filling a gigabyte with zeros before would hold up a stop for a second.
  const auto losses = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(count));
  const std::span<double> all(losses.get(), static_cast<std::size_t>(count));
  numerics::on_threads(run.threads, [&] {
    numerics::for_each_task((count + block_size - 1) / block_size, run, [&](Index block) {
      const Index first = block * block_size, size = std::min(block_size, count - first);
      find_losses(block, all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size)));
    });
  });
  numerics::MonteCarloSums sums;
  for (const double loss : all) sums.add(loss);
  return {sums.mean(), sums.standard_error()};
}

}  // namespace

ImageTask::ImageTask(const Matrix<double>& pixels, std::vector<int> labels, double amplitude)
    : labels_{std::move(labels)}, amplitude_{amplitude} {
  constexpr const char* where = "ImageTask";
  require_at_least(where, "images N", pixels.rows(), 1);
  require_at_least(where, "pixels D", pixels.cols(), 1);
  if (static_cast<Index>(labels_.size()) != pixels.rows())
    throw ArgumentError(fmt::format("{}: labels must have one entry an image ({}), got {}", where,
                                    pixels.rows(), labels_.size()));
  require_not_negative(where, "amplitude nu", amplitude);
  if (!(pixels.minCoeff() >= 0 && pixels.maxCoeff() <= 255))
    throw ArgumentError(fmt::format("{}: pixels must lie in [0, 255], got values from {} to {}", where,
                                    pixels.minCoeff(), pixels.maxCoeff()));
  images_ = pixels / 255;
  // Pixels are centred, so that the mean image carries no signal.
  images_.rowwise() -= Vector<double>(images_.colwise().mean().transpose()).transpose();

  const auto [least, greatest] = std::minmax_element(labels_.begin(), labels_.end());
  require_at_least(where, "labels", *least, 0);
  const int classes = *greatest + 1;
  class_means_ = Matrix<double>::Zero(classes, images_.cols());
  std::vector<Index> members(static_cast<std::size_t>(classes), 0);
  for (Index i = 0; i < images_.rows(); ++i) {
    const int label = labels_[static_cast<std::size_t>(i)];
    class_means_.row(label) += images_.row(i);
    ++members[static_cast<std::size_t>(label)];
  }
  for (int label = 0; label < classes; ++label) {
    const Index count = members[static_cast<std::size_t>(label)];
    if (count == 0)
      throw ArgumentError(fmt::format("{}: class {} has no image; classes must be 0, 1, ...", where, label));
    class_means_.row(label) /= static_cast<double>(count);
  }
}

Matrix<double> ImageTask::tokens(const Matrix<double>& noise, Index eps, Index image) const {
  require_shape("ImageTask::tokens", "noise", noise, noise.rows(), dimension());
  require_index("ImageTask::tokens", "eps", eps, noise.rows());
  require_index("ImageTask::tokens", "image", image, images_.rows());
  Matrix<double> tokens = noise;
  tokens.row(eps) += amplitude_ * images_.row(image);
  return tokens;
}

Vector<double> ImageTask::posterior(const Matrix<double>& tokens) const {
  require_at_least("ImageTask::posterior", "tokens L", tokens.rows(), 1);
  require_shape("ImageTask::posterior", "tokens", tokens, tokens.rows(), dimension());
  // |nu x|^2 / 2 of each image x.
  const Vector<double> half_norms = images_.rowwise().squaredNorm() * (amplitude_ * amplitude_ / 2);
  Vector<double> scores(tokens.rows());
  for (Index l = 0; l < tokens.rows(); ++l) {
    const Vector<double> overlaps = amplitude_ * (images_ * tokens.row(l).transpose()) - half_norms;
    // The odds of token l are the sum over images of e^{nu x . X_l - |nu x|^2 / 2}.
    scores[l] = log_sum_exp(overlaps);
  }
  return softmax_of(scores);
}

BayesRisk ImageTask::bayes_risk(Index tokens, Index count, std::uint64_t seed, const RunControl& run) const {
  require_at_least("ImageTask::bayes_risk", "tokens L", tokens, 1);
  require_at_least("ImageTask::bayes_risk", "count n", count, 2);
  const ImageDraw draw(*this, tokens, seed);
  const Eigen::VectorXf half_norms = draw.signals().rowwise().squaredNorm() / 2;
  return mean_loss(count, sequences_per_block, run, [&](Index block, std::span<double> losses) {
    Matrix<float> X(static_cast<Index>(losses.size()) * tokens, dimension());
    draw(static_cast<std::uint64_t>(block), X);
    // [images, tokens]: one product of matrices for all sequences of a block.
    Eigen::MatrixXf scores = draw.signals() * X.transpose();
    scores.colwise() -= half_norms;
    Vector<double> odds(scores.cols());
    for (Index l = 0; l < scores.cols(); ++l) odds[l] = log_sum_exp(scores.col(l));
    for (std::size_t mu = 0; mu < losses.size(); ++mu) {
      const Index first = static_cast<Index>(mu) * tokens;
      Vector<double> miss = softmax_of(odds.segment(first, tokens));
      miss[0] -= 1;
      const Eigen::VectorXf residual = X.middleRows(first, tokens).transpose() * miss.cast<float>();
      losses[mu] = static_cast<double>(residual.squaredNorm()) / static_cast<double>(dimension());
    }
  });
}

Matrix<double> ImageTask::class_cosines(const Matrix<double>& k) const {
  require_shape("ImageTask::class_cosines", "k", k, k.rows(), dimension());
  require_directions("ImageTask::class_cosines", k.rowwise().squaredNorm());
  return k.rowwise().normalized() * class_means_.rowwise().normalized().transpose();
}

std::vector<ImageSgdPoint> image_sgd(HeadActivation activation, const ImageTask& task,
                                     const HeadVectors& start, const SgdOptions& options) {
  const std::vector<Index> record = check_sgd_options("image_sgd", options);
  check_heads("image_sgd", activation, start, task.dimension());
  const ImageDraw draw(task, options.tokens, options.seed);
  std::vector<ImageSgdPoint> points;
  run_sgd(activation, options, record, start, draw, [&](double tau, double loss, const HeadVectors& heads) {
    points.push_back({tau, loss, heads});
  });
  return points;
}

BayesRisk image_loss(HeadActivation activation, const ImageTask& task, const HeadVectors& heads, Index tokens,
                     Index count, std::uint64_t seed, const RunControl& run) {
  check_heads("image_loss", activation, heads, task.dimension());
  require_at_least("image_loss", "tokens L", tokens, 1);
  require_at_least("image_loss", "count n", count, 2);
  const ImageDraw draw(task, tokens, seed);
  const Matrix<float> k = heads.k.cast<float>();
  // Blocks of one sequence: the loss of a sequence does not depend on those before it.
  return mean_loss(count, 1, run, [&](Index mu, std::span<double> losses) {
    Matrix<float> X(tokens, task.dimension());
    draw(static_cast<std::uint64_t>(mu), X);
    const Index eps = 0;
    const double loss = sum_sequences(activation, k, heads.b, heads.v, X, tokens, &eps).loss;
    losses[0] = loss / static_cast<double>(task.dimension());
  });
}

}  // namespace widelimit::specialization
