#include "widelimit/gp/model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "gp/data_side/input_range.hpp"
#include "gp/inference/model_state.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "kernel/copied_inputs.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::gp {
namespace {

GramOptions with(Kernels kernels, GramOptions run) {
  run.kernels = kernels;
  run.seconds_per_line = nullptr;
  return run;
}

/// Throws ArgumentError unless new inputs can be paired with the training inputs.
template <typename Scalar, typename Own>
void require_like_training(const Inputs<Scalar>& x, const Inputs<Own>& train) {
  const auto text = [](const auto& inputs) {
    const std::string sizes = inputs.is_ragged()
                                  ? fmt::format("{} axes of any size", inputs.axes())
                                  : fmt::format("positions [{}]", widelimit::to_string(inputs.shape()));
    return fmt::format("{} and {} channels", inputs.axes() == 0 ? "no positions" : sizes, inputs.channels());
  };
  const bool same_shape = x.is_ragged() || train.is_ragged() || x.shape() == train.shape();
  if (x.axes() != train.axes() || x.channels() != train.channels() || !same_shape)
    throw ArgumentError(fmt::format("Model: expected inputs like those of the training, with {}; got {}",
                                    text(train), text(x)));
}

/// body(inputs, kernel) with the inputs in the precision of the training inputs.
template <typename Scalar, typename Body>
decltype(auto) in_precision(const ModelState& state, const Inputs<Scalar>& x, const Body& body) {
  return std::visit(
      [&]<typename Own>(const ModelKernel<Own>& kernel) {
        require_like_training(x, kernel.train());
        if constexpr (std::is_same_v<Own, Scalar>)
          return body(x, kernel);
        else
          return body(copied_inputs<Own, Scalar>({&x}), kernel);
      },
      state.kernel);
}

template <typename Scalar>
CrossKernels cross_kernels(const ModelState& state, const Inputs<Scalar>& x, Kernels kernels,
                           const GramOptions& run) {
  return in_precision(state, x, [&](const auto& own, const auto& kernel) {
    const auto result = kernel.gram_with_train(own, with(kernels, run));
    return CrossKernels{result.nngp.template cast<double>(), result.ntk.template cast<double>()};
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

Vector<double> variance_of(const Regression& regression, const CrossKernels& cross,
                           const Vector<double>& prior) {
  return regression.variance(cross.nngp, prior);
}

Vector<double> variance_of(const TrainedNetworks& trained, const CrossKernels& cross,
                           const Vector<double>& prior) {
  return trained.flow.variance(trained.time, cross.nngp, cross.ntk, prior);
}

Matrix<double> covariance_of(const Regression& regression, const CrossKernels& cross, Matrix<double> prior) {
  return regression.covariance(cross.nngp, std::move(prior));
}

Matrix<double> covariance_of(const TrainedNetworks& trained, const CrossKernels& cross,
                             Matrix<double> prior) {
  return trained.flow.covariance(trained.time, cross.nngp, cross.ntk, std::move(prior));
}

bool is_trained(const ModelState& state) { return std::holds_alternative<TrainedNetworks>(state.posterior); }

Kernels kernels_of(const ModelState& state) { return is_trained(state) ? Kernels::both : Kernels::nngp; }

void require_count(Index count, const char* where) {
  if (count < 1) throw ArgumentError(fmt::format("{}: expected a count of at least 1, got {}", where, count));
}

/// Standard normal numbers of sample k.
Matrix<double> normal_matrix(Index rows, Index columns, std::uint64_t seed, Index k) {
  numerics::RandomStream stream(seed, static_cast<std::uint64_t>(k));
  Matrix<double> normals(rows, columns);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) normals(i, j) = stream.normal();
  return normals;
}

/// R with R R^T the covariance. Eigenvalues below 0 within the rounding of the prior count as 0.
Matrix<double> root_of(Matrix<double> covariance, double largest_prior_variance, const char* where) {
  const numerics::BlasThreads guard(numerics::resolve_threads(0, where));
  const SymmetricEigen eigen = symmetric_eigen(std::move(covariance), where);
  constexpr double largest_rounding = 1e-3;  // as for variances
  if (eigen.values(0) < -largest_rounding * largest_prior_variance)
    throw NumericalError(fmt::format(
        "{}: the covariance has the eigenvalue {:.6g}, with prior variances of up to {:.6g}; fit in "
        "double or regularise more",
        where, eigen.values(0), largest_prior_variance));
  return eigen.vectors.transpose() * eigen.values.cwiseMax(0).cwiseSqrt().asDiagonal();
}

/// mean + spread(standard normals), `count` times.
template <typename Spread>
std::vector<Matrix<double>> drawn(const Matrix<double>& mean, Index count, std::uint64_t seed,
                                  const Spread& spread) {
  std::vector<Matrix<double>> samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (Index k = 0; k < count; ++k)
    samples.push_back(mean + spread(normal_matrix(mean.rows(), mean.cols(), seed, k)));
  return samples;
}

std::vector<Matrix<double>> drawn_jointly(const Matrix<double>& mean, const Matrix<double>& root, Index count,
                                          std::uint64_t seed) {
  return drawn(mean, count, seed, [&](const Matrix<double>& normals) {
    return multiply(root, Transpose::no, normals, Transpose::no);
  });
}

}  // namespace

template <typename Scalar>
Matrix<double> Model::mean(const Inputs<Scalar>& x, const GramOptions& run) const {
  const CrossKernels cross =
      cross_kernels(*state_, x, is_trained(*state_) ? Kernels::ntk : Kernels::nngp, run);
  return std::visit([&](const auto& posterior) { return mean_of(posterior, cross); }, state_->posterior);
}

template <typename Scalar>
ModelPrediction Model::predict(const Inputs<Scalar>& x, const GramOptions& run) const {
  const CrossKernels cross = cross_kernels(*state_, x, kernels_of(*state_), run);
  const Vector<double> prior = prior_variances(*state_, x, run);
  ModelPrediction prediction = std::visit(
      [&](const auto& posterior) {
        return ModelPrediction{mean_of(posterior, cross), variance_of(posterior, cross, prior), 0, {}};
      },
      state_->posterior);
  prediction.noise_variance = noise_variance();
  if (!state_->class_names.empty())
    prediction.class_probabilities =
        gp::class_probabilities(prediction.mean, prediction.variance.array() + prediction.noise_variance);
  return prediction;
}

template <typename Scalar>
JointPrediction Model::predict_jointly(const Inputs<Scalar>& x, const GramOptions& run) const {
  const CrossKernels cross = cross_kernels(*state_, x, kernels_of(*state_), run);
  Matrix<double> prior = prior_gram(*state_, x, run);
  return std::visit(
      [&](const auto& posterior) {
        return JointPrediction{mean_of(posterior, cross), covariance_of(posterior, cross, std::move(prior))};
      },
      state_->posterior);
}

template <typename Scalar>
std::vector<Matrix<double>> Model::samples(const Inputs<Scalar>& x, Index count, std::uint64_t seed,
                                           Sampling sampling, const GramOptions& run) const {
  constexpr const char* where = "Model::samples";
  require_count(count, where);
  if (sampling == Sampling::marginal) {
    const ModelPrediction prediction = predict(x, run);
    const Vector<double> deviations = prediction.standard_deviation();
    return drawn(prediction.mean, count, seed, [&](const Matrix<double>& normals) {
      return Matrix<double>(deviations.asDiagonal() * normals);
    });
  }
  const CrossKernels cross = cross_kernels(*state_, x, kernels_of(*state_), run);
  Matrix<double> prior = prior_gram(*state_, x, run);
  const double largest = amplitude() * prior.diagonal().maxCoeff();
  const auto [mean, covariance] = std::visit(
      [&](const auto& posterior) {
        return std::pair(mean_of(posterior, cross), covariance_of(posterior, cross, std::move(prior)));
      },
      state_->posterior);
  return drawn_jointly(mean, root_of(covariance, largest, where), count, seed);
}

template <typename Scalar>
std::vector<Matrix<double>> Model::prior_samples(const Inputs<Scalar>& x, Index count, std::uint64_t seed,
                                                 const GramOptions& run) const {
  constexpr const char* where = "Model::prior_samples";
  require_count(count, where);
  const Matrix<double> covariance = amplitude() * prior_gram(*state_, x, run);
  return drawn_jointly(Matrix<double>::Zero(x.size(), outputs()),
                       root_of(covariance, covariance.diagonal().maxCoeff(), where), count, seed);
}

LeaveOneOut Model::leave_one_out() const {
  if (const auto* regression = std::get_if<Regression>(&state_->posterior))
    return regression->leave_one_out();
  if (time() != infinite_time)
    throw ArgumentError(fmt::format(
        "Model::leave_one_out: networks trained for time {} have no closed form, only those trained for "
        "infinite time; hold data back and predict them, or take the model at infinite time",
        time()));
  return std::get<TrainedNetworks>(state_->posterior).flow.leave_one_out();
}

double Model::log_marginal_likelihood() const {
  if (is_trained(*state_))
    throw ArgumentError(
        "Model::log_marginal_likelihood: trained networks have no evidence, bayesian models do");
  return std::get<Regression>(state_->posterior).log_marginal_likelihood();
}

Model Model::with_amplitude(double amplitude) const {
  ModelState state = *state_;
  if (auto* regression = std::get_if<Regression>(&state.posterior))
    *regression = regression->with_amplitude(amplitude);
  else if (auto* trained = std::get_if<TrainedNetworks>(&state.posterior))
    trained->flow = trained->flow.with_amplitude(amplitude);
  return Model(std::make_shared<const ModelState>(std::move(state)));
}

ModelKind Model::kind() const { return is_trained(*state_) ? ModelKind::trained : ModelKind::bayesian; }

double Model::time() const {
  const auto* trained = std::get_if<TrainedNetworks>(&state_->posterior);
  return trained != nullptr ? trained->time : infinite_time;
}

double Model::amplitude() const {
  if (const auto* regression = std::get_if<Regression>(&state_->posterior)) return regression->amplitude();
  return std::get<TrainedNetworks>(state_->posterior).flow.amplitude();
}

double Model::noise_variance() const {
  if (const auto* regression = std::get_if<Regression>(&state_->posterior))
    return regression->noise_variance();
  return std::get<TrainedNetworks>(state_->posterior).flow.regulariser_variance();
}

Index Model::train_size() const { return state_->targets.rows(); }
Index Model::outputs() const { return state_->targets.cols(); }

const Network& Model::network() const {
  return std::visit([](const auto& kernel) -> const Network& { return kernel.network(); }, state_->kernel);
}

bool Model::flips() const {
  return std::visit([](const auto& kernel) { return kernel.flips(); }, state_->kernel);
}

const std::vector<std::string>& Model::class_names() const { return state_->class_names; }
const Preprocessing& Model::preprocessing() const { return state_->preprocessing; }
const nlohmann::json& Model::preparation() const { return state_->preparation; }
const std::optional<Selection>& Model::selection() const { return state_->selection; }

template <typename Scalar>
std::string Model::range_warning(const Inputs<Scalar>& x) const {
  return std::visit(
      [&](const auto& kernel) { return gp::range_warning(kernel.train(), x, state_->preprocessing); },
      state_->kernel);
}

template std::string Model::range_warning(const Inputs<float>&) const;
template std::string Model::range_warning(const Inputs<double>&) const;
template Matrix<double> Model::mean(const Inputs<float>&, const GramOptions&) const;
template Matrix<double> Model::mean(const Inputs<double>&, const GramOptions&) const;
template ModelPrediction Model::predict(const Inputs<float>&, const GramOptions&) const;
template ModelPrediction Model::predict(const Inputs<double>&, const GramOptions&) const;
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
