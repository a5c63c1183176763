// What a model says of itself, as it stands in its state.
#include <fmt/format.h>

#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "gp/checks.hpp"
#include "gp/data_side/input_identity.hpp"
#include "gp/inference/model_state.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/fit_fields.hpp"
#include "widelimit/gp/input_range.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::gp {
namespace {

template <typename Scalar>
Index equal_inputs(const Inputs<Scalar>& train, const Inputs<Scalar>& x) {
  if (x.is_masked() || train.is_masked() || !x.graphs().empty() || !train.graphs().empty()) return 0;
  std::unordered_map<std::size_t, Index> known;
  for (Index i = 0; i < train.size(); ++i) known.try_emplace(hash_of_input(train, i), i);
  Index count = 0;
  for (Index i = 0; i < x.size(); ++i) {
    const auto found = known.find(hash_of_input(x, i));
    count += found != known.end() && are_equal_inputs(train, found->second, x, i) ? 1 : 0;
  }
  return count;
}

const Posterior& first_posterior(const ModelState& state) { return state.posteriors.front().posterior; }

/// [outputs], from numbers of each part with the amplitude 1.
template <typename Unit>
Vector<double> by_output(const ModelState& state, const Unit& unit) {
  Vector<double> numbers(state.targets.cols());
  for (const OutputPosterior& part : state.posteriors)
    for (std::size_t k = 0; k < part.outputs.size(); ++k)
      numbers(part.outputs[k]) = unit(part) * variance_factor(state, part, k);
  return numbers;
}

double unit_noise(const OutputPosterior& part) {
  if (const auto* regression = std::get_if<Regression>(&part.posterior)) return regression->noise_variance();
  if (const auto* iterative = std::get_if<IterativeWeights>(&part.posterior)) return iterative->lambda;
  return std::get<TrainedNetworks>(part.posterior).flow.regulariser_variance();
}

}  // namespace

const IterativeWeights* iterative_weights(const ModelState& state) {
  return std::get_if<IterativeWeights>(&first_posterior(state));
}

bool is_trained(const ModelState& state) {
  const IterativeWeights* iterative = iterative_weights(state);
  return iterative != nullptr ? iterative->is_trained()
                              : std::holds_alternative<TrainedNetworks>(first_posterior(state));
}

double variance_factor(const ModelState& state, const OutputPosterior& part, std::size_t k) {
  const double factor = state.scale.factors()(part.outputs[k]);
  return part.amplitudes(static_cast<Index>(k)) * (factor * factor);
}

ModelLeaveOneOut row_by_row(const ModelState& state, const ModelLeaveOneOut& inputs,
                            const Vector<double>& noise) {
  const RepeatedRows& rows = state.rows;
  ModelLeaveOneOut others{rows.targets, Matrix<double>(rows.targets.rows(), rows.targets.cols())};
  for (Index row = 0; row < rows.targets.rows(); ++row) {
    const Index input = rows.inputs[static_cast<std::size_t>(row)];
    const double factor = state.row_factors.size() > 0 ? state.row_factors(input) : 1,
                 weight = rows.weights.size() > 0 ? rows.weights(row) : 1;
    others.residuals.row(row) += inputs.residuals.row(input) - state.targets.row(input);
    others.variances.row(row) =
        inputs.variances.row(input) + (1 / weight - 1 / (factor * factor)) * noise.transpose();
  }
  return others;
}

void take_joint_from_logarithms(JointPrediction& prediction, const Vector<double>& noise, double scale) {
  for (Index k = 0; k < prediction.mean.cols(); ++k) {
    Matrix<double>& covariance = prediction.covariances[static_cast<std::size_t>(k)];
    Matrix<double> mean = prediction.mean.col(k), variance = covariance.diagonal();
    take_from_logarithms(mean, variance, noise.segment(k, 1), scale);
    covariance =
        mean.asDiagonal() * (scale * scale * covariance).array().expm1().matrix() * mean.asDiagonal();
    prediction.mean.col(k) = mean;
  }
}

void take_left_out_from_logarithms(ModelLeaveOneOut& others, const ModelState& state) {
  const Matrix<double>& targets = state.rows.inputs.empty() ? state.targets : state.rows.targets;
  Matrix<double> mean = targets - others.residuals;
  take_from_logarithms(mean, others.variances, Vector<double>::Zero(mean.cols()), 1);
  others.positive_targets = targets.array().exp();
  others.residuals = others.positive_targets - mean;
}

std::vector<Matrix<double>> in_units_of_targets(std::vector<Matrix<double>> samples, const ModelState& state,
                                                const Vector<double>& noise) {
  if (state.fits_logarithms())
    for (Matrix<double>& sample : samples)
      take_from_logarithms(sample, Vector<double>(state.law.scale * state.law.scale * noise));
  return samples;
}

double sample_scale(const ModelState& state) { return state.fits_logarithms() ? state.law.scale : 1; }

void require_time(double time, const char* where) {
  if (!(time >= 0))
    throw ArgumentError(fmt::format("{}: time must be 0 or more, or infinite_time, got {}", where, time));
}

Model Model::with_amplitude(double amplitude) const {
  gp::require_amplitude(amplitude, "Model::with_amplitude");
  ModelState state = *state_;
  for (OutputPosterior& part : state.posteriors) {
    part.amplitudes.setConstant(amplitude);
    // The fitted calibration belongs to the amplitude that is replaced.
    part.class_calibration = {};
  }
  state.law = {.of_logarithms = state.fits_logarithms()};
  return Model(std::make_shared<const ModelState>(std::move(state)));
}

Model Model::at_time(double time) const {
  constexpr const char* where = "Model::at_time";
  require_time(time, where);
  FitRequest request{
      .trained = kind() == ModelKind::trained, .is_model = true, .gives_time = time != infinite_time};
  request.solver = solver();
  require_fit(request, Door::cpp, where);
  ModelState state = *state_;
  for (OutputPosterior& part : state.posteriors)
    if (const auto* trained = std::get_if<TrainedNetworks>(&part.posterior))
      part.posterior = TrainedNetworks(trained->flow, time);
  return Model(std::make_shared<const ModelState>(std::move(state)));
}

ModelKind Model::kind() const { return is_trained(*state_) ? ModelKind::trained : ModelKind::bayesian; }

Solver Model::solver() const {
  return iterative_weights(*state_) != nullptr ? Solver::conjugate_gradients : Solver::cholesky;
}

double Model::time() const {
  const auto* trained = std::get_if<TrainedNetworks>(&first_posterior(*state_));
  return trained != nullptr ? trained->time : infinite_time;
}

const std::vector<double>& Model::times() const { return state_->times; }

Vector<double> Model::amplitude() const {
  Vector<double> amplitudes(outputs());
  for (const OutputPosterior& part : state_->posteriors)
    for (std::size_t k = 0; k < part.outputs.size(); ++k)
      amplitudes(part.outputs[k]) = part.amplitudes(static_cast<Index>(k));
  return amplitudes;
}

const ClassCalibration& Model::class_calibration() const {
  return state_->posteriors.front().class_calibration;
}

Vector<double> Model::regulariser() const {
  Vector<double> regularisers(outputs());
  for (const OutputPosterior& part : state_->posteriors)
    for (const Index output : part.outputs) regularisers(output) = part.regulariser;
  return regularisers;
}

const ObservationLaw& Model::law() const { return state_->law; }

TargetTransform Model::transform() const {
  return state_->fits_logarithms() ? TargetTransform::log : TargetTransform::none;
}

Vector<double> Model::noise_variance() const { return by_output(*state_, unit_noise); }

const TargetScale& Model::target_scale() const { return state_->scale; }

Index Model::train_size() const {
  const std::vector<Index>& rows = state_->rows.inputs;
  return rows.empty() ? input_count() : static_cast<Index>(rows.size());
}
Index Model::input_count() const { return state_->targets.rows(); }
Index Model::outputs() const { return state_->targets.cols(); }

const Network& Model::network() const {
  return std::visit([](const auto& kernel) -> const Network& { return kernel.network(); }, state_->kernel);
}

bool Model::is_float() const { return std::holds_alternative<ModelKernel<float>>(state_->kernel); }

bool Model::flips() const {
  return std::visit([](const auto& kernel) { return kernel.flips(); }, state_->kernel);
}

const std::vector<std::string>& Model::class_names() const { return state_->class_names; }
const Preprocessing& Model::preprocessing() const { return state_->preprocessing; }
const std::string& Model::preparation() const { return state_->preparation; }
const std::vector<Selection>& Model::selections() const { return state_->selections; }
const FeatureMap& Model::feature_map() const { return state_->map; }
const std::optional<LearnedInputs>& Model::learned() const { return state_->learned; }

template <typename Scalar>
std::string Model::range_warning(const Inputs<Scalar>& x) const {
  return std::visit(
      [&](const auto& kernel) {
        return gp::range_warning(kernel.train(), state_->map.apply(x), state_->preprocessing);
      },
      state_->kernel);
}

template <typename Scalar>
Index Model::training_inputs_among(const Inputs<Scalar>& x) const {
  return std::visit(
      [&]<typename Own>(const ModelKernel<Own>& kernel) {
        if constexpr (std::is_same_v<Own, Scalar>) return equal_inputs(kernel.train(), state_->map.apply(x));
        return equal_inputs(kernel.train(), state_->map.apply(copied_inputs<Own, Scalar>({&x})));
      },
      state_->kernel);
}

template Index Model::training_inputs_among(const Inputs<float>&) const;
template Index Model::training_inputs_among(const Inputs<double>&) const;
template std::string Model::range_warning(const Inputs<float>&) const;
template std::string Model::range_warning(const Inputs<double>&) const;

}  // namespace widelimit::gp
