#include "widelimit/finite/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "finite/passes.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::finite {
namespace {

template <typename Scalar>
struct LossGradient {
  double loss;
  Matrix<Scalar> gradient;
};

template <typename Scalar>
LossGradient<Scalar> squared_loss(const Matrix<Scalar>& outputs, const Matrix<Scalar>& targets) {
  Matrix<Scalar> difference = outputs - targets;
  const double loss = difference.template cast<double>().squaredNorm() / 2;
  return {loss, std::move(difference)};
}

/// With s the softmax of a row and t its targets (sum 1): loss -t . log s, gradient s - t.
template <typename Scalar>
LossGradient<Scalar> cross_entropy(const Matrix<Scalar>& outputs, const Matrix<Scalar>& targets) {
  LossGradient<Scalar> result{0, Matrix<Scalar>(outputs.rows(), outputs.cols())};
  for (Index i = 0; i < outputs.rows(); ++i) {
    const auto shifted = (outputs.row(i).array() - outputs.row(i).maxCoeff()).eval();
    const Scalar log_sum = std::log(shifted.exp().sum());
    result.loss += static_cast<double>((targets.row(i).array() * (log_sum - shifted)).sum());
    // Targets whose sum misses 1 by rounding have this gradient, too.
    result.gradient.row(i) =
        ((shifted - log_sum).exp() * targets.row(i).sum() - targets.row(i).array()).matrix();
  }
  return result;
}

template <typename Scalar>
LossGradient<Scalar> loss_gradient(Loss loss, const Matrix<Scalar>& outputs, const Matrix<Scalar>& targets) {
  return loss == Loss::squared ? squared_loss(outputs, targets) : cross_entropy(outputs, targets);
}

template <typename Scalar>
class Optimiser {
 public:
  Optimiser(const TrainingOptions& options, Index parameters)
      : options_{options}, first_(Vector<Scalar>::Zero(parameters)) {
    if (std::holds_alternative<Adam>(options.optimiser)) second_ = first_;
  }

  void step(const Vector<Scalar>& gradient, Vector<Scalar>& parameters) {
    ++steps_;
    const auto rate = static_cast<Scalar>(options_.learning_rate);
    if (const auto* momentum = std::get_if<Momentum>(&options_.optimiser)) {
      // Velocities add up whole gradients, without a factor 1 - decay.
      first_ = static_cast<Scalar>(momentum->decay) * first_ + gradient;
      parameters -= rate * first_;
    } else if (const auto* adam = std::get_if<Adam>(&options_.optimiser)) {
      adam_step(*adam, gradient, parameters);
    } else {
      parameters -= rate * gradient;
    }
  }

 private:
  void adam_step(const Adam& adam, const Vector<Scalar>& gradient, Vector<Scalar>& parameters) {
    const auto a = static_cast<Scalar>(adam.first_decay), b = static_cast<Scalar>(adam.second_decay);
    first_ = a * first_ + (1 - a) * gradient;
    second_ = b * second_ + (1 - b) * gradient.cwiseAbs2();
    // The corrections take out the zeros with which the averages begin (Kingma and Ba 2015, algorithm 1).
    const auto steps = static_cast<double>(steps_);
    const auto rate = static_cast<Scalar>(options_.learning_rate / (1 - std::pow(adam.first_decay, steps)));
    const auto correction = static_cast<Scalar>(1 / (1 - std::pow(adam.second_decay, steps)));
    parameters.array() -=
        rate * first_.array() / ((second_.array() * correction).sqrt() + static_cast<Scalar>(adam.epsilon));
  }

  const TrainingOptions& options_;
  Index steps_ = 0;
  Vector<Scalar> first_;
  Vector<Scalar> second_;
};

/// The inputs of every step: epoch by epoch in random order, or all of them.
class BatchOrder {
 public:
  BatchOrder(Index n, const TrainingOptions& options)
      : size_{options.batch == 0 ? n : options.batch},
        seed_{options.seed},
        order_(static_cast<std::size_t>(n)) {
    std::iota(order_.begin(), order_.end(), Index{0});
  }

  std::vector<Index> next() {
    const auto n = static_cast<Index>(order_.size());
    if (size_ == n) return order_;
    // Inputs that do not fill a batch are left out of this epoch.
    if (used_ + size_ > n) used_ = 0;
    if (used_ == 0) shuffle();
    std::vector<Index> batch(order_.begin() + used_, order_.begin() + used_ + size_);
    used_ += size_;
    return batch;
  }

 private:
  void shuffle() {
    numerics::RandomStream stream(seed_, epoch_++);
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[stream.below(i)]);
  }

  Index size_;
  std::uint64_t seed_;
  std::vector<Index> order_;
  Index used_ = 0;
  std::uint64_t epoch_ = 0;
};

template <typename Scalar>
void check(const FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x, const Matrix<Scalar>& targets,
           const TrainingOptions& options) {
  require_form(x, network.input(), "train");
  const Index n = x.size();
  const auto fail = [](const std::string& message) { throw ArgumentError("train: " + message); };
  if (targets.rows() != n || targets.cols() != network.outputs())
    fail(fmt::format("expected targets [{}, {}], got [{}, {}]", n, network.outputs(), targets.rows(),
                     targets.cols()));
  if (n == 0) fail("expected at least one input, got none");
  if (!targets.allFinite()) fail("targets must be finite");
  if (!(std::isfinite(options.learning_rate) && options.learning_rate > 0))
    fail(fmt::format("learning_rate must be positive, got {}", options.learning_rate));
  if (options.steps < 0) fail(fmt::format("steps must not be negative, got {}", options.steps));
  if (options.batch < 0 || options.batch > n)
    fail(fmt::format("batch must be in [0, {}], got {}", n, options.batch));
  if (const auto* momentum = std::get_if<Momentum>(&options.optimiser))
    if (!(momentum->decay >= 0 && momentum->decay < 1))
      fail(fmt::format("the momentum's decay must be in [0, 1), got {}", momentum->decay));
  if (const auto* adam = std::get_if<Adam>(&options.optimiser))
    for (const double decay : {adam->first_decay, adam->second_decay})
      if (!(decay >= 0 && decay < 1)) fail(fmt::format("Adam's decays must be in [0, 1), got {}", decay));
  if (options.loss != Loss::cross_entropy) return;
  for (Index i = 0; i < n; ++i)
    if (targets.row(i).minCoeff() < 0 || std::abs(targets.row(i).sum() - 1) > Scalar(1e-4))
      fail(fmt::format("cross entropy needs probabilities that sum to 1, got a sum of {} for input {}",
                       targets.row(i).sum(), i));
}

/// The chosen inputs in one piece of memory.
template <typename Scalar>
std::vector<Scalar> gathered(const Inputs<Scalar>& x, const std::vector<Index>& indices) {
  std::vector<Scalar> numbers;
  for (const Index i : indices) numbers.insert(numbers.end(), x[i].begin(), x[i].end());
  return numbers;
}

template <typename Scalar>
Inputs<Scalar> with_graphs_of(const Inputs<Scalar>& x, const std::vector<Index>& indices,
                              Inputs<Scalar> batch) {
  if (x.graphs().empty()) return batch;
  std::vector<InputGraph> graphs;
  for (const Index i : indices) graphs.push_back(*x.graph(i));
  return {batch, std::move(graphs)};
}

/// The gradient of a batch's loss, scaled to all inputs, and that loss.
template <typename Scalar>
std::pair<double, Vector<Scalar>> batch_gradient(const FiniteNetwork<Scalar>& network,
                                                 const Inputs<Scalar>& x, const Matrix<Scalar>& targets,
                                                 const std::vector<Index>& batch,
                                                 const std::pair<Loss, std::uint64_t>& loss_and_pass) {
  const auto numbers = gathered(x, batch);
  std::vector<Index> dimensions{static_cast<Index>(batch.size())};
  dimensions.insert(dimensions.end(), x.shape(0).begin(), x.shape(0).end());
  dimensions.push_back(x.channels());
  // The batch stands for all inputs, so that the loss is a sum over these and times are those of
  // docs/theory/inference.md, section 3.
  const double scale = static_cast<double>(x.size()) / static_cast<double>(batch.size());
  Vector<double> losses = Vector<double>::Zero(static_cast<Index>(batch.size()));
  auto gradient = network.gradient(
      with_graphs_of(x, batch, Inputs<Scalar>(numbers.data(), dimensions)), loss_and_pass.second,
      [&](Index first, const Matrix<Scalar>& outputs) {
        Matrix<Scalar> wanted(outputs.rows(), outputs.cols());
        for (Index i = 0; i < outputs.rows(); ++i)
          wanted.row(i) = targets.row(batch[static_cast<std::size_t>(first + i)]);
        auto part = loss_gradient(loss_and_pass.first, outputs, wanted);
        losses[first] = part.loss;  // One place for every piece of the batch: no two write to the same.
        return Matrix<Scalar>(static_cast<Scalar>(scale) * part.gradient);
      });
  return {scale * losses.sum(), std::move(gradient)};
}

}  // namespace

template <typename Scalar>
double loss_of(Loss loss, const Matrix<Scalar>& outputs, const Matrix<Scalar>& targets) {
  if (outputs.rows() != targets.rows() || outputs.cols() != targets.cols())
    throw ArgumentError(fmt::format("loss_of: expected targets [{}, {}], got [{}, {}]", outputs.rows(),
                                    outputs.cols(), targets.rows(), targets.cols()));
  return loss_gradient(loss, outputs, targets).loss;
}

template <typename Scalar>
TrainingResult train(FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x, const Matrix<Scalar>& targets,
                     const TrainingOptions& options) {
  check(network, x, targets, options);
  Optimiser<Scalar> optimiser(options, network.parameter_count());
  BatchOrder batches(x.size(), options);
  Vector<Scalar> parameters = network.parameters();
  TrainingResult result;
  for (Index step = 1; step <= options.steps; ++step) {
    // Pass 0 is what forward() shows; every step sees dropout of its own.
    const auto [loss, gradient] =
        batch_gradient(network, x, targets, batches.next(), {options.loss, static_cast<std::uint64_t>(step)});
    if (!std::isfinite(loss))
      throw NumericalError(
          fmt::format("train: the loss at step {} is {}; choose a smaller learning_rate than {}", step, loss,
                      options.learning_rate));
    optimiser.step(gradient, parameters);
    network.set_parameters(parameters);
    result.losses.push_back(loss);
    if (options.progress) options.progress(step, loss);
  }
  return result;
}

template double loss_of(Loss, const Matrix<float>&, const Matrix<float>&);
template double loss_of(Loss, const Matrix<double>&, const Matrix<double>&);
template TrainingResult train(FiniteNetwork<float>&, const Inputs<float>&, const Matrix<float>&,
                              const TrainingOptions&);
template TrainingResult train(FiniteNetwork<double>&, const Inputs<double>&, const Matrix<double>&,
                              const TrainingOptions&);

}  // namespace widelimit::finite
