#include "widelimit/gp/model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "gp/checks.hpp"
#include "gp/gram_sources/weighted_gram.hpp"
#include "gp/inference/function_samples.hpp"
#include "gp/inference/model_state.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/input_range.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/resources.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::gp {
namespace {

GramOptions with(Kernels kernels, GramOptions run) {
  run.kernels = kernels;
  run.seconds_per_line = nullptr;
  return run;
}

/// Throws ArgumentError unless new inputs, once they are mapped, can be paired with the training inputs.
template <typename Scalar, typename Own>
void require_like_training(const Inputs<Scalar>& x, const Inputs<Own>& train, const FeatureMap& map) {
  const Index channels = map.is_identity() ? train.channels() : map.channels();
  const auto text = [](const auto& inputs, Index count) {
    const std::string sizes = inputs.is_ragged()
                                  ? fmt::format("{} axes of any size", inputs.axes())
                                  : fmt::format("positions [{}]", widelimit::to_string(inputs.shape()));
    return fmt::format("{} and {} channels", inputs.axes() == 0 ? "no positions" : sizes, count);
  };
  const bool same_shape = x.is_ragged() || train.is_ragged() || x.shape() == train.shape();
  if (x.axes() != train.axes() || x.channels() != channels || !same_shape)
    throw ArgumentError(fmt::format("Model: expected inputs like those of the training, with {}; got {}",
                                    text(train, channels), text(x, x.channels())));
}

/// Throws ArgumentError for inputs of which nothing would be left in the precision of a float model.
void require_range_of_float(const Inputs<double>& x) {
  const auto lost = lost_in_float(x, false);
  if (!lost) return;
  const std::string of = lost->input ? fmt::format(" of input {} (from 0)", *lost->input) : "";
  throw ArgumentError(
      fmt::format("Model: the numbers{} are rounded to float, as those of the training: {}", of, lost->text));
}
void require_range_of_float(const Inputs<float>&) {}

/// body(inputs, kernel) with the inputs in the precision of the training inputs.
template <typename Scalar, typename Body>
decltype(auto) in_precision(const ModelState& state, const Inputs<Scalar>& x, const Body& body) {
  return std::visit(
      [&]<typename Own>(const ModelKernel<Own>& kernel) {
        require_like_training(x, kernel.train(), state.map);
        if constexpr (std::is_same_v<Own, Scalar>) return body(state.map.apply(x), kernel);
        if constexpr (std::is_same_v<Own, float>) require_range_of_float(x);
        return body(state.map.apply(copied_inputs<Own, Scalar>({&x})), kernel);
      },
      state.kernel);
}

Kernels kernels_of(const ModelState& state) { return is_trained(state) ? Kernels::both : Kernels::nngp; }

template <typename Scalar>
CrossKernels cross_kernels(const ModelState& state, const Inputs<Scalar>& x, Kernels kernels,
                           const GramOptions& run) {
  return in_precision(state, x, [&]<typename Own>(const Inputs<Own>& own, const ModelKernel<Own>& kernel) {
    if (iterative_weights(state) != nullptr) {
      const auto& iterative = std::get<std::shared_ptr<IterativeKernels<Own>>>(state.iterative);
      const Vector<double>& factors = state.row_factors;
      auto source = iterative->with_train(own, with(kernels, run));
      if (factors.size() > 0) source = weighted_gram(std::move(source), factors, false);
      return CrossKernels{
          .nngp = {},
          .ntk = {},
          .source = std::move(source),
          .equations = [iterative, factors, run = with(kernels_of(state), run)](const auto& weights) {
            return iterative->equations(weights, factors, run);
          }};
    }
    const auto result = kernel.gram_with_train(own, with(kernels, run));
    CrossKernels cross{result.nngp.template cast<double>(), result.ntk.template cast<double>()};
    if (state.row_factors.size() > 0) {
      // Either may be there alone.
      for (Matrix<double>* kernel : {&cross.nngp, &cross.ntk})
        if (kernel->size() > 0) *kernel *= state.row_factors.asDiagonal();
    }
    return cross;
  });
}

template <typename Scalar>
Vector<double> prior_variances(const ModelState& state, const Inputs<Scalar>& x, const GramOptions& run) {
  return in_precision(state, x, [&](const auto& own, const auto& kernel) {
    return kernel.variances(own, with(Kernels::nngp, run));
  });
}

template <typename Scalar>
Matrix<double> prior_gram(const ModelState& state, const Inputs<Scalar>& x, const GramOptions& run) {
  return in_precision(state, x, [&](const auto& own, const auto& kernel) {
    return Matrix<double>(kernel.gram(own, with(Kernels::nngp, run)).nngp.template cast<double>());
  });
}

Matrix<double> mean_of(const Regression& regression, const CrossKernels& cross) {
  return regression.mean(cross.nngp);
}

Matrix<double> mean_of(const TrainedNetworks& trained, const CrossKernels& cross) {
  return multiply(cross.ntk, Transpose::no, trained.weights, Transpose::no);
}

Matrix<double> mean_of(const IterativeWeights& iterative, const CrossKernels& cross) {
  return cross.source->as_cross(iterative.kernel).multiply(iterative.weights);
}

Vector<double> variance_of(const Regression& regression, const CrossKernels& cross,
                           const Vector<double>& prior) {
  return regression.variance(cross.nngp, prior);
}

Vector<double> variance_of(const TrainedNetworks& trained, const CrossKernels& cross,
                           const Vector<double>& prior) {
  return trained.flow.variance(trained.time, cross.nngp, cross.ntk, prior);
}

Vector<double> variance_of(const IterativeWeights& iterative, const CrossKernels& cross,
                           const Vector<double>& prior) {
  const KernelEquations equations = cross.equations(iterative);
  const CrossGram nngp = cross.source->as_cross("nngp");
  if (!iterative.is_trained()) return equations.regression.variance(nngp, prior);
  return equations.regression.flow_variance(*equations.nngp, nngp, cross.source->as_cross("ntk"), prior);
}

Matrix<double> covariance_of(const Regression& regression, const CrossKernels& cross, Matrix<double> prior) {
  return regression.covariance(cross.nngp, std::move(prior));
}

Matrix<double> covariance_of(const TrainedNetworks& trained, const CrossKernels& cross,
                             Matrix<double> prior) {
  return trained.flow.covariance(trained.time, cross.nngp, cross.ntk, std::move(prior));
}

Matrix<double> covariance_of(const IterativeWeights& iterative, const CrossKernels& cross,
                             Matrix<double> prior) {
  const KernelEquations equations = cross.equations(iterative);
  const CrossGram nngp = cross.source->as_cross("nngp");
  if (!iterative.is_trained()) return equations.regression.covariance(nngp, std::move(prior));
  return equations.regression.flow_covariance(*equations.nngp, nngp, cross.source->as_cross("ntk"),
                                              std::move(prior));
}

/// Means of all outputs, of the targets or of their logarithms, as they are fitted.
Matrix<double> mean_of(const ModelState& state, const CrossKernels& cross) {
  Matrix<double> means;
  for (const OutputPosterior& part : state.posteriors) {
    const Matrix<double> mean =
        std::visit([&](const auto& posterior) { return mean_of(posterior, cross); }, part.posterior);
    if (means.size() == 0) means = Matrix<double>(mean.rows(), state.targets.cols());
    for (std::size_t k = 0; k < part.outputs.size(); ++k)
      means.col(part.outputs[k]) = mean.col(static_cast<Index>(k));
  }
  return state.scale.restored(means);
}

/// Means and variances of the targets or of their logarithms, as they are fitted.
ModelPrediction fitted_prediction(const ModelState& state, const CrossKernels& cross,
                                  const Vector<double>& prior, Vector<double> noise) {
  ModelPrediction prediction{
      mean_of(state, cross), Matrix<double>(prior.size(), noise.size()), std::move(noise), {}, state.law};
  for (const OutputPosterior& part : state.posteriors) {
    const Vector<double> unit = std::visit(
        [&](const auto& posterior) { return variance_of(posterior, cross, prior); }, part.posterior);
    for (std::size_t k = 0; k < part.outputs.size(); ++k)
      prediction.variance.col(part.outputs[k]) = variance_factor(state, part, k) * unit;
  }
  return prediction;
}

ModelPrediction prediction_of(const ModelState& state, const CrossKernels& cross, const Vector<double>& prior,
                              Vector<double> noise) {
  ModelPrediction prediction = fitted_prediction(state, cross, prior, std::move(noise));
  if (state.fits_logarithms())
    take_from_logarithms(prediction.mean, prediction.variance, prediction.noise_variance, state.law.scale);
  if (!state.class_names.empty())
    // Classes share one variance.
    prediction.class_probabilities = state.posteriors.front().class_calibration.probabilities(
        prediction.mean, prediction.observation_variance().col(0));
  return prediction;
}

/// Throws the error of Regression for an amplitude of 0, under which nothing has a density.
void require_amplitudes(const ModelState& state, const char* where) {
  for (const OutputPosterior& part : state.posteriors)
    for (const double amplitude : part.amplitudes) require_fitted_amplitude(amplitude, where);
}

/// Throws ArgumentError for models of conjugate gradients.
void require_factorized(const ModelState& state, const char* where, const char* reason) {
  if (iterative_weights(state) != nullptr)
    throw ArgumentError(
        fmt::format("{}: the model was fitted by conjugate gradients (solver cg), {}; fit it with "
                    "the solver cholesky, or score it on data that were held back",
                    where, reason));
}

void require_count(Index count, const char* where) {
  if (count < 1) throw ArgumentError(fmt::format("{}: expected a count of at least 1, got {}", where, count));
}

/// mean + spread(standard normals), `count` times, from streams of the seed from `first` on.
template <typename Spread>
std::vector<Matrix<double>> drawn(const Matrix<double>& mean, Index count, std::uint64_t seed, Index first,
                                  const Spread& spread) {
  std::vector<Matrix<double>> samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (Index k = 0; k < count; ++k)
    samples.push_back(mean + spread(normal_matrix(mean.rows(), mean.cols(), seed, first + k)));
  return samples;
}

}  // namespace

template <typename Scalar>
Matrix<double> Model::mean(const Inputs<Scalar>& x, const GramOptions& run) const {
  if (state_->fits_logarithms()) return predict(x, run).mean;
  // Means of trained networks take the NTK only; their variances take both kernels.
  const Kernels kernels = is_trained(*state_) ? Kernels::ntk : Kernels::nngp;
  return mean_of(*state_, cross_kernels(*state_, x, kernels, run));
}

template <typename Scalar>
ModelPrediction Model::predict(const Inputs<Scalar>& x, const GramOptions& run) const {
  const double own = time();
  return std::move(predict(x, {&own, 1}, run).front());
}

template <typename Scalar>
std::vector<ModelPrediction> Model::predict(const Inputs<Scalar>& x, std::span<const double> times,
                                            const GramOptions& run) const {
  require_amplitudes(*state_, "Model::predict");
  const CrossKernels cross = cross_kernels(*state_, x, kernels_of(*state_), run);
  const Vector<double> prior = prior_variances(*state_, x, run);
  std::vector<ModelPrediction> predictions;
  for (const double time : times) {
    const Model there = time == this->time() ? *this : at_time(time);
    predictions.push_back(prediction_of(*there.state_, cross, prior, noise_variance()));
  }
  return predictions;
}

template <typename Scalar>
Workload Model::workload(const Inputs<Scalar>& x, const GramOptions& run) const {
  return in_precision(*state_, x, [&]<typename Own>(const Inputs<Own>& own, const ModelKernel<Own>& kernel) {
    double numbers = 0;
    for (Index i = 0; i < own.size(); ++i) numbers += static_cast<double>(own[i].size());
    // Beside the inputs themselves there are copies: in the precision of the training inputs, and mirror images.
    const double copies = (std::is_same_v<Own, Scalar> ? 0 : 1) + (kernel.flips() ? 1 : 0);
    const Plan plan = explain<Own>(network(), own, with(kernels_of(*state_), run), 0);
    return Workload{.work = Work::new_inputs,
                    .needs = {.inputs = input_count(),
                              .entry_bytes = sizeof(Own),
                              .kernels = kernels_of(*state_),
                              .finite_times = false,
                              .test = own.size(),
                              .outputs = outputs(),
                              .chooses = false,
                              .flip = kernel.flips()},
                    .plan = plan,
                    .input_bytes = copies * numbers * sizeof(Own),
                    .posteriors = static_cast<Index>(state_->posteriors.size())};
  });
}

template <typename Scalar>
JointPrediction Model::predict_jointly(const Inputs<Scalar>& x, const GramOptions& run) const {
  require_amplitudes(*state_, "Model::predict_jointly");
  const CrossKernels cross = cross_kernels(*state_, x, kernels_of(*state_), run);
  const Matrix<double> prior = prior_gram(*state_, x, run);
  JointPrediction prediction{mean_of(*state_, cross), {}};
  // Classes share one covariance; outputs of numbers have one each.
  const bool is_shared = !state_->class_names.empty();
  prediction.covariances.resize(is_shared ? 1 : static_cast<std::size_t>(outputs()));
  for (const OutputPosterior& part : state_->posteriors) {
    const Matrix<double> unit = std::visit(
        [&](const auto& posterior) { return covariance_of(posterior, cross, prior); }, part.posterior);
    for (std::size_t k = 0; k < part.outputs.size() && !(is_shared && k > 0); ++k)
      prediction.covariances[static_cast<std::size_t>(part.outputs[k])] =
          variance_factor(*state_, part, k) * unit;
  }
  if (state_->fits_logarithms()) take_joint_from_logarithms(prediction, noise_variance(), state_->law.scale);
  return prediction;
}

namespace {

/// Normal numbers of one sample through the roots of the covariances of each part, in the units of what is fitted.
Matrix<double> spread(const ModelState& state, const std::vector<Matrix<double>>& roots,
                      const Matrix<double>& normals) {
  Matrix<double> sample(normals.rows(), normals.cols());
  for (std::size_t p = 0; p < roots.size(); ++p) {
    const OutputPosterior& part = state.posteriors[p];
    // An output reads its own column of the normals, whatever part it is in: samples do not depend
    // on how outputs are grouped.
    const Matrix<double> correlated = multiply(roots[p], Transpose::no, normals, Transpose::no);
    for (std::size_t k = 0; k < part.outputs.size(); ++k)
      sample.col(part.outputs[k]) =
          sample_scale(state) * std::sqrt(variance_factor(state, part, k)) * correlated.col(part.outputs[k]);
  }
  return sample;
}

}  // namespace

template <typename Scalar>
std::vector<Matrix<double>> Model::samples(const Inputs<Scalar>& x, Index count, std::uint64_t seed,
                                           Sampling sampling, const GramOptions& run) const {
  constexpr const char* where = "Model::samples";
  require_count(count, where);
  require_amplitudes(*state_, where);
  const CrossKernels cross = cross_kernels(*state_, x, kernels_of(*state_), run);
  const auto told = [&](const Matrix<double>& mean, const auto& spread) {
    return in_units_of_targets(drawn(mean, count, seed, 0, spread), *state_, noise_variance());
  };
  if (sampling == Sampling::marginal) {
    const ModelPrediction prediction =
        fitted_prediction(*state_, cross, prior_variances(*state_, x, run), noise_variance());
    const Matrix<double> deviations = sample_scale(*state_) * prediction.standard_deviation();
    return told(prediction.mean, [&](const Matrix<double>& normals) {
      return Matrix<double>(deviations.cwiseProduct(normals));
    });
  }
  const Matrix<double> prior = prior_gram(*state_, x, run);
  std::vector<Matrix<double>> roots;
  for (const OutputPosterior& part : state_->posteriors)
    roots.push_back(
        root_of(std::visit([&](const auto& posterior) { return covariance_of(posterior, cross, prior); },
                           part.posterior),
                prior, where));
  return told(mean_of(*state_, cross),
              [&](const Matrix<double>& normals) { return spread(*state_, roots, normals); });
}

template <typename Scalar>
std::vector<Matrix<double>> Model::prior_samples(const Inputs<Scalar>& x, Index count, std::uint64_t seed,
                                                 const GramOptions& run) const {
  constexpr const char* where = "Model::prior_samples";
  require_count(count, where);
  const Matrix<double> covariance = prior_gram(*state_, x, run);
  // All parts have the prior of the network in common; their amplitudes come in with spread().
  const std::vector<Matrix<double>> roots(state_->posteriors.size(), root_of(covariance, covariance, where));
  return in_units_of_targets(
      drawn(state_->scale.restored(Matrix<double>::Zero(x.size(), outputs())), count, seed,
            first_prior_stream,
            [&](const Matrix<double>& normals) { return spread(*state_, roots, normals); }),
      *state_, noise_variance());
}

ModelLeaveOneOut Model::leave_one_out() const {
  if (is_trained(*state_) && time() != infinite_time)
    throw ArgumentError(fmt::format(
        "Model::leave_one_out: networks trained for time {} have no closed form, only those trained for "
        "infinite time; hold data back and predict them, or take the model at infinite time",
        time()));
  require_factorized(*state_, "Model::leave_one_out", "which would solve for every training input");
  require_amplitudes(*state_, "Model::leave_one_out");
  const LeftOutSets sets = all_sets(input_count(), state_->groups);
  ModelLeaveOneOut others{Matrix<double>(input_count(), outputs()), Matrix<double>(input_count(), outputs())};
  for (const OutputPosterior& part : state_->posteriors) {
    const auto* trained = std::get_if<TrainedNetworks>(&part.posterior);
    const LeaveOneOut unit = trained != nullptr ? trained->flow.leave_one_out(sets)
                                                : std::get<Regression>(part.posterior).leave_one_out(sets);
    for (std::size_t k = 0; k < part.outputs.size(); ++k) {
      const Index output = part.outputs[k];
      others.residuals(sets.inputs, output) =
          state_->scale.factors()(output) * unit.residuals.col(static_cast<Index>(k));
      others.variances(sets.inputs, output) = variance_factor(*state_, part, k) * unit.variances;
    }
  }
  if (state_->row_factors.size() > 0) {
    const Vector<double> inverse = state_->row_factors.cwiseInverse();
    others.residuals = inverse.asDiagonal() * others.residuals;
    others.variances = inverse.cwiseAbs2().asDiagonal() * others.variances;
  }
  if (!state_->rows.inputs.empty()) others = row_by_row(*state_, others, noise_variance());
  if (state_->fits_logarithms()) take_left_out_from_logarithms(others, *state_);
  return others;
}

double Model::log_marginal_likelihood() const {
  if (is_trained(*state_))
    throw ArgumentError(
        "Model::log_marginal_likelihood: trained networks have no evidence, bayesian models do");
  require_factorized(*state_, "Model::log_marginal_likelihood", "which know no determinant");
  require_amplitudes(*state_, "Model::log_marginal_likelihood");
  double sum = 0;
  Matrix<double> standardised = state_->scale.standardised(state_->targets);
  if (state_->row_factors.size() > 0) {
    standardised = state_->row_factors.asDiagonal() * standardised;
    sum += static_cast<double>(outputs()) * state_->row_factors.array().log().sum();
  }
  for (const OutputPosterior& part : state_->posteriors) {
    const auto& regression = std::get<Regression>(part.posterior);
    // Outputs with one amplitude are evaluated together, as they share the factorization and its determinant.
    if ((part.amplitudes.array() == part.amplitudes(0)).all()) {
      sum += regression.with_amplitude(part.amplitudes(0)).log_marginal_likelihood();
      continue;
    }
    Matrix<double> targets(standardised.rows(), static_cast<Index>(part.outputs.size()));
    for (std::size_t k = 0; k < part.outputs.size(); ++k)
      targets.col(static_cast<Index>(k)) = standardised.col(part.outputs[k]);
    for (Index c = 0; c < targets.cols(); ++c)
      sum += regression.output(c, targets).with_amplitude(part.amplitudes(c)).log_marginal_likelihood();
  }
  // Densities of the targets in their own units: a logarithm divided each by its target.
  if (state_->fits_logarithms()) sum -= state_->targets.sum();
  // Standardising divided each target by its output's factor.
  return sum - static_cast<double>(input_count()) * state_->scale.factors().array().log().sum();
}

template Workload Model::workload(const Inputs<float>&, const GramOptions&) const;
template Workload Model::workload(const Inputs<double>&, const GramOptions&) const;
template Matrix<double> Model::mean(const Inputs<float>&, const GramOptions&) const;
template Matrix<double> Model::mean(const Inputs<double>&, const GramOptions&) const;
template ModelPrediction Model::predict(const Inputs<float>&, const GramOptions&) const;
template ModelPrediction Model::predict(const Inputs<double>&, const GramOptions&) const;
template std::vector<ModelPrediction> Model::predict(const Inputs<float>&, std::span<const double>,
                                                     const GramOptions&) const;
template std::vector<ModelPrediction> Model::predict(const Inputs<double>&, std::span<const double>,
                                                     const GramOptions&) const;
template JointPrediction Model::predict_jointly(const Inputs<float>&, const GramOptions&) const;
template JointPrediction Model::predict_jointly(const Inputs<double>&, const GramOptions&) const;
template std::vector<Matrix<double>> Model::samples(const Inputs<float>&, Index, std::uint64_t, Sampling,
                                                    const GramOptions&) const;
template std::vector<Matrix<double>> Model::samples(const Inputs<double>&, Index, std::uint64_t, Sampling,
                                                    const GramOptions&) const;
template std::vector<Matrix<double>> Model::prior_samples(const Inputs<float>&, Index, std::uint64_t,
                                                          const GramOptions&) const;
template std::vector<Matrix<double>> Model::prior_samples(const Inputs<double>&, Index, std::uint64_t,
                                                          const GramOptions&) const;

}  // namespace widelimit::gp
