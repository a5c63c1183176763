// Does the loss after training follow the exponents? Figure 7 of arXiv:2403.02579v1: MNIST digits
// (or generated images) as 16 patches and a class token, 16 blocks of width 64, Adam, a sweep over alpha and
// sigma_w.

#include <tbb/parallel_for.h>

#include <numeric>
#include <widelimit/data/mnist.hpp>
#include <widelimit/data/synthetic_images.hpp>
#include <widelimit/numerics/random_stream.hpp>
#include <widelimit/propagation/loss_predictor.hpp>

#include "propagation_common.hpp"

using namespace propagation_examples;
using widelimit::numerics::RandomStream;

namespace {

constexpr Index width = 64, depth = 16, patch = 7, patches = 16, classes = 10, tokens = patches + 1;
constexpr double learning_rate = 1e-3;

struct Task {
  std::vector<Matrix<double>> images;  // [patches, patch^2] in [-1, 1]
  std::vector<int> labels;
};

/// Images of MNIST's test files in a folder; generated images without a folder.
Task load(const std::filesystem::path& folder, std::size_t count) {
  const auto images =
      folder.empty() ? widelimit::data::generate_synthetic_images(count, 1)
                     : widelimit::data::random_subset(
                           widelimit::data::read_mnist(widelimit::data::mnist_test_files(folder)), count, 1);
  Task task{{}, images.labels};
  for (std::size_t i = 0; i < images.size(); ++i) {
    Matrix<double> rows(patches, patch * patch);
    for (Index p = 0; p < patches; ++p)
      for (Index k = 0; k < patch * patch; ++k) {
        const auto y = static_cast<std::size_t>(p / 4 * patch + k / patch);
        const auto x = static_cast<std::size_t>(p % 4 * patch + k % patch);
        rows(p, k) = 2 * static_cast<double>(images.images(i, y, x, 0)) - 1;
      }
    task.images.push_back(std::move(rows));
  }
  return task;
}

/// Every trainable number: transformer, patch embedding, positions (the class token is the first), readout.
class Classifier {
 public:
  Classifier(const Parameters& parameters, std::uint64_t seed)
      : transformer_(parameters, width, depth, widelimit::AttentionMask::full, seed),
        gradients_(transformer_.zero_gradients()),
        embedding_(random(width, patch * patch, 1.0 / (patch * patch), seed, 1)),
        positions_(random(tokens, width, 1, seed, 2)),
        readout_(random(classes, width, 1.0 / width, seed, 3)),
        embedding_gradient_(Matrix<double>::Zero(width, patch * patch)),
        positions_gradient_(Matrix<double>::Zero(tokens, width)),
        readout_gradient_(Matrix<double>::Zero(classes, width)) {
    for (std::size_t t = 0; t < gradients_.size(); ++t) {
      BlockWeights &weights = transformer_.weights()[t], &gradient = gradients_[t];
      add(weights.query, gradient.query);
      add(weights.key, gradient.key);
      add(weights.value, gradient.value);
      for (std::size_t k = 0; k < weights.mlp.size(); ++k) add(weights.mlp[k], gradient.mlp[k]);
    }
    add(embedding_, embedding_gradient_);
    add(positions_, positions_gradient_);
    add(readout_, readout_gradient_);
  }
  Classifier(const Classifier&) = delete;
  Classifier& operator=(const Classifier&) = delete;

  /// Cross-entropy of one image; adds its gradients.
  double learn(const Matrix<double>& image, int label) {
    const ForwardTrace trace = transformer_.traced_forward(embedded(image));
    Eigen::RowVectorXd probabilities;
    const double loss = cross_entropy(trace.output, label, probabilities);
    probabilities(label) -= 1;
    const Eigen::RowVectorXd token = trace.output.row(0);
    const double scale = std::sqrt(static_cast<double>(width)) / token.norm();
    readout_gradient_ += probabilities.transpose() * (scale * token);
    const Eigen::RowVectorXd flow = scale * (probabilities * readout_);
    Matrix<double> gradient = Matrix<double>::Zero(tokens, width);
    gradient.row(0) = flow - flow.dot(token) / token.squaredNorm() * token;
    gradient = transformer_.backward(trace, gradient, gradients_);
    positions_gradient_ += gradient;
    embedding_gradient_ += gradient.bottomRows(patches).transpose() * image;
    return loss;
  }

  double loss(const Matrix<double>& image, int label) const {
    Eigen::RowVectorXd unused;
    return cross_entropy(transformer_.forward(embedded(image)), label, unused);
  }

  /// One step of Adam with the mean of the gradients added since the last.
  void step(double count) {
    ++steps_;
    const double first = 1 - std::pow(0.9, steps_), second = 1 - std::pow(0.999, steps_);
    for (Slot& slot : slots_) {
      *slot.gradient /= count;
      slot.mean = 0.9 * slot.mean + 0.1 * *slot.gradient;
      slot.square = 0.999 * slot.square + 0.001 * slot.gradient->cwiseAbs2();
      slot.value->array() -=
          learning_rate * (slot.mean.array() / first) / ((slot.square.array() / second).sqrt() + 1e-8);
      slot.gradient->setZero();
    }
  }

 private:
  struct Slot {
    Matrix<double>*value, *gradient;
    Matrix<double> mean, square;
  };

  static Matrix<double> random(Index rows, Index columns, double variance, std::uint64_t seed,
                               std::uint64_t which) {
    RandomStream stream(seed, (std::uint64_t{3} << 62) + which);
    Matrix<double> matrix(rows, columns);
    for (Index k = 0; k < matrix.size(); ++k) matrix.data()[k] = std::sqrt(variance) * stream.normal();
    return matrix;
  }
  void add(Matrix<double>& value, Matrix<double>& gradient) {
    const Matrix<double> zero = Matrix<double>::Zero(value.rows(), value.cols());
    slots_.push_back({&value, &gradient, zero, zero});
  }
  Matrix<double> embedded(const Matrix<double>& image) const {
    Matrix<double> x = positions_;
    x.bottomRows(patches) += image * embedding_.transpose();
    return x;
  }
  double cross_entropy(const Matrix<double>& output, int label, Eigen::RowVectorXd& probabilities) const {
    const Eigen::RowVectorXd token = output.row(0);
    const Eigen::RowVectorXd logits =
        std::sqrt(static_cast<double>(width)) / token.norm() * token * readout_.transpose();
    probabilities = (logits.array() - logits.maxCoeff()).exp();
    probabilities /= probabilities.sum();
    return -std::log(std::max(probabilities(label), 1e-300));
  }

  FiniteTransformer transformer_;
  std::vector<BlockWeights> gradients_;
  Matrix<double> embedding_, positions_, readout_;
  Matrix<double> embedding_gradient_, positions_gradient_, readout_gradient_;
  std::vector<Slot> slots_;
  int steps_ = 0;
};

/// Loss on the last images after training on the others.
double trained_loss(const Parameters& parameters, const Task& task, std::size_t training, std::size_t batch,
                    int steps) {
  Classifier classifier(parameters, 1);
  RandomStream stream(5);
  for (int step = 0; step < steps; ++step) {
    for (std::size_t k = 0; k < batch; ++k) {
      const auto i = static_cast<std::size_t>(stream.below(training));
      classifier.learn(task.images[i], task.labels[i]);
    }
    classifier.step(static_cast<double>(batch));
  }
  double sum = 0;
  for (std::size_t i = training; i < task.images.size(); ++i)
    sum += classifier.loss(task.images[i], task.labels[i]);
  return sum / static_cast<double>(task.images.size() - training);
}

std::vector<Parameters> networks_to_train(const Settings& settings) {
  const Axis alphas = evenly_spaced(Coordinate::alpha, 0.1, 0.95, settings.size(8, 3));
  const Axis gains = evenly_spaced(Coordinate::sigma_w, 0.5, 4, settings.size(8, 2));
  std::vector<Parameters> sweep;
  for (const double alpha : alphas.values)
    for (const double sigma_w : gains.values) {
      Parameters parameters;
      parameters.tokens = tokens;
      parameters.alpha_A = parameters.alpha_M = alpha;
      parameters.sigma_w = sigma_w;
      sweep.push_back(parameters);
    }
  return sweep;
}

std::vector<TrainingOutcome> train_all(const Settings& settings, const std::vector<Parameters>& sweep,
                                       const std::filesystem::path& folder) {
  const auto training = static_cast<std::size_t>(settings.size(4000, 20));
  const auto test = static_cast<std::size_t>(settings.size(500, 10));
  const auto batch = static_cast<std::size_t>(settings.size(32, 2));
  const int steps = static_cast<int>(settings.size(150, 2));
  const Task task = load(folder, training + test);
  std::vector<TrainingOutcome> outcomes(sweep.size());
  tbb::parallel_for(std::size_t{0}, sweep.size(), [&](std::size_t i) {
    const CollapsedPoint point = collapsed_point(sweep[i]);
    outcomes[i] = {point.lambda_a_log(), gradient_exponent(point, tokens, depth),
                   trained_loss(sweep[i], task, training, batch, steps)};
  });
  return outcomes;
}

void report(const Settings& settings, const std::vector<Parameters>& sweep,
            const std::vector<TrainingOutcome>& outcomes) {
  const PredictorFit fit = fit_loss_predictor(outcomes, std::log(classes));
  Csv table(settings, "training", "alpha,sigma_w,lambda_a,lambda_g,loss,predicted");
  std::vector<double> angle, gradient, loss;
  for (std::size_t i = 0; i < sweep.size(); ++i) {
    const TrainingOutcome& outcome = outcomes[i];
    table.row(sweep[i].alpha_A, sweep[i].sigma_w, outcome.lambda_a, outcome.lambda_g, outcome.loss,
              fit.predictor(outcome.lambda_a, outcome.lambda_g));
    std::printf("alpha %.2f sigma_w %.2f: lambda_a %7.3f lambda_g %7.3f loss %.3f\n", sweep[i].alpha_A,
                sweep[i].sigma_w, outcome.lambda_a, outcome.lambda_g, outcome.loss);
    angle.push_back(std::abs(outcome.lambda_a));
    gradient.push_back(std::abs(outcome.lambda_g));
    loss.push_back(outcome.loss);
  }
  std::printf("rank correlation of the loss with |lambda_a| %.2f, |lambda_g| %.2f, the predictor %.2f\n",
              rank_correlation(angle, loss), rank_correlation(gradient, loss), fit.rank_correlation);
  std::printf("predictor: weights %.3f (angle) %.3f (gradient), bias %.3f, error %.3f, explains %.2f\n",
              fit.predictor.weight_a, fit.predictor.weight_g, fit.predictor.bias, fit.root_mean_square_error,
              fit.explained_variance);
}

void draw(const Settings& settings) {
  std::string commands = "set multiplot layout 1,3\nset grid\nset ylabel 'loss'\nunset key\n";
  for (const auto& [label, column] :
       {std::pair{"lambda_a (log)", "3"}, {"lambda_g", "4"}, {"predicted loss", "6"}})
    commands += "set xlabel '" + std::string(label) + "'\nplot 'training.csv' skip 1 using " + column +
                ":5:1 with points pt 7 palette\n";
  plot(settings, "training", "set cblabel 'alpha'\n" + commands + "unset multiplot\n", "1500,520");
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path folder;
  const auto body = [&](const Settings& settings) {
    const std::vector<Parameters> sweep = networks_to_train(settings);
    report(settings, sweep, train_all(settings, sweep, folder));
    draw(settings);
  };
  return run_example(argc, argv, body, [&](ArgumentList& arguments) {
    arguments.existing_folder("--data", folder, "Folder of MNIST's test files; left out: generated images");
  });
}
