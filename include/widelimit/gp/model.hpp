#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/feature_map.hpp"
#include "widelimit/gp/fit.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/learned_inputs.hpp"
#include "widelimit/gp/noise.hpp"
#include "widelimit/gp/observation_law.hpp"
#include "widelimit/gp/preprocessing.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"
#include "widelimit/gp/target_scale.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/store/gram_store.hpp"

namespace widelimit::gp {

struct ModelState;
struct Workload;

/// The distribution of functions with which a model predicts.
enum class ModelKind {
  bayesian,  ///< The exact posterior of the infinitely wide network: Regression with its NNGP.
  trained    ///< Infinitely wide networks after training, over their initialisations: GradientFlow.
};

/// Inputs with their targets [n, outputs].
template <typename Scalar>
struct LabelledInputs {
  Inputs<Scalar> x;
  Matrix<double> y;
};

struct ModelOptions {
  ModelKind kind = ModelKind::bayesian;
  double time = infinite_time;  ///< Of training, for `trained`; see GradientFlow.
  /// More times, kept with the model for those who predict with it: Model::times().
  std::vector<double> times = {};
  /// Absent: the relative regulariser of `grid` with the best score by `criterion`. That of trained networks is chosen
  /// for infinite time.
  std::optional<Noise> noise = {};
  /// `bayesian` only. Known noise variances of the observations, one for each training input, in squared units of the
  /// targets, which are numbers: of a standardised output the amplitude that makes its targets most likely is found by
  /// a search, unless `amplitude` gives it. Empty: `noise`, or what is chosen for it, is that of all.
  Vector<double> noise_variances = {};
  /// `bayesian` only. Weights of the training inputs, positive: the noise variance of an observation is that of the
  /// model over its weight. A weight of 2 says that a row is the mean of two observations. Empty: 1 for all.
  Vector<double> weights = {};
  /// A number for each training input: inputs of one group are left out together, in the choice, the calibration of
  /// classes and leave_one_out(). Rows of equal inputs always are (DistinctInputs). Empty: no other groups.
  std::vector<Index> groups = {};
  std::vector<double> grid = regulariser_grid();
  /// Absent: leave_one_out, which predicted held-out data better than evidence wherever both were measured
  /// (docs/inference.md), or mean_squared_error with conjugate gradients.
  std::optional<Criterion> criterion = {};
  /// Factor on the kernel of standardised targets. Absent: of each output the one that makes its targets most likely,
  /// in closed form (see Regression and GradientFlow::leave_one_out_amplitude()), and of classes one for all; with an
  /// AbsoluteNoise 1.
  std::optional<double> amplitude = {};
  /// Numbers are standardised by mean and standard deviation over the training inputs, each output
  /// separately, and predictions are put back: they shift and scale with the targets. With an AbsoluteNoise, which is
  /// in the units of the targets, they are only centred. true: neither is
  /// done. Scores of classes are left unchanged.
  bool targets_as_they_are = false;
  /// Of targets that are numbers. Predictions, intervals and scores are in the units of the targets; the noise variance
  /// and mean squared errors of a choice are those of logarithms. Absent: none; choose_network() sets it.
  std::optional<TargetTransform> transform = {};
  /// What inputs go through before the network, kept with the model, which applies it to new inputs as well: that of
  /// choose_network(). Factors that are learned come behind it.
  FeatureMap input_map = {};
  bool fits_tails = false;  ///< See FitOptions.
  /// Average kernels over inputs and their mirror images (FlipAverage): two to four times the work. Fit the
  /// preprocessing with mirror_images.
  bool flip = false;
  /// With validation data: fit on training and validation data together once the regulariser is chosen.
  bool refit = false;
  /// cholesky, or conjugate_gradients: these hold no second matrix, and none at all where a device multiplies without
  /// it (KernelProducts). They choose by accuracy or mean_squared_error on validation data, have no evidence, finite
  /// times, leave-one-out and calibration of classes, and solve for variances when they are asked for.
  Solver solver = Solver::cholesky;
  double residual = 1e-10;  ///< The relative residual at which conjugate gradients stop, also for variances.
  /// Called after every pass of conjugate gradients with the kernel's name, "nngp" or "ntk".
  std::function<void(const std::string& kernel, int passes, double residual)> iterations = {};
  /// Which inputs matter is learned from the training data first, for the kernel of `kind`: learn_inputs(), of whose
  /// options `how`, `groups`, `variances`, `steps`, `spread`, `rounds`, `full_matrix` and `most_inputs` are used. The
  /// model has the network and the map that were learned. With `flip` they are learned without mirror images.
  LearningOptions learning = {};
  /// Names for the outputs, if they are scores of classes: one for each output, or two for a single output, whose
  /// positive values mean the second. Empty: the targets are numbers.
  std::vector<std::string> class_names = {};
  /// The preprocessing that the inputs went through before, to be applied to new ones as well: kept with the model,
  /// which does not apply it.
  Preprocessing preprocessing = {};
  /// What was done before that, for people who prepare new inputs: the text of a JSON object, kept with the model.
  std::string preparation = "{}";
  /// A folder in which Gram matrices are kept and looked for (GramCache); absent: none are.
  std::optional<std::filesystem::path> gram_folder = {};
  /// A folder in which they are computed into stores, so that a fit that ended early is continued (docs/scale.md):
  /// train, validation-train and, with refit, validation, each read into memory once it is complete. Not with `flip`,
  /// `learning` and `gram_folder`. Absent: in memory.
  std::optional<std::filesystem::path> store_folder = {};
  store::StoreOptions store = {};  ///< Of these stores; their `gram` is ignored.
  /// Threads, memory, progress and stop of the Gram matrices and states; `kernels` is ignored.
  GramOptions gram = {};
  Door door = Door::cpp;  ///< In whose words errors name these options.
};

/// What a Fitter is told of them.
[[nodiscard]] FitOptions fit_options(const ModelOptions& options);

/// The prediction of a model for inputs, in the units of the targets. Classes share one variance; outputs that are
/// numbers have their own.
struct ModelPrediction {
  Matrix<double> mean;      ///< [n_test, outputs]
  Matrix<double> variance;  ///< [n_test, outputs], of the function at each input.
  /// [outputs], the noise of observations; with weights of weight 1, with known variances their mean. Of logarithms,
  /// where they are fitted.
  Vector<double> noise_variance;
  /// [n_test, classes], by the model's ClassCalibration, or empty. The class that is predicted is the most probable.
  Matrix<double> class_probabilities;
  /// Of numbers; Student's t where the amplitude was fitted and the noise is not known. Variances are those of the
  /// amplitude of the model.
  ObservationLaw law = {};

  /// Roots of the variances, [n_test, outputs].
  [[nodiscard]] Matrix<double> standard_deviation() const { return variance.cwiseSqrt(); }
  /// Variances of observations, [n_test, outputs].
  [[nodiscard]] Matrix<double> observation_variance() const {
    return law.observation_variances(mean, variance, noise_variance);
  }
};

/// Mean and covariance at several inputs together.
struct JointPrediction {
  Matrix<double> mean;  ///< [n_test, outputs]
  /// [n_test, n_test], of the function, exactly symmetric: one for all classes, or one for each output.
  std::vector<Matrix<double>> covariances;

  [[nodiscard]] const Matrix<double>& covariance(Index output = 0) const {
    return covariances[covariances.size() == 1 ? 0 : static_cast<std::size_t>(output)];
  }
};

/// Predictions of every training target from all others, in the units of the targets; see LeaveOneOut.
struct ModelLeaveOneOut {
  Matrix<double> residuals;  ///< [n, outputs]: target minus its prediction.
  Matrix<double> variances;  ///< [n, outputs], of the observation left out: noise included.
  /// Where logarithms were fitted, the targets [n, outputs]; else empty.
  Matrix<double> positive_targets = {};

  /// See LeaveOneOut; of logarithms by the log-normal distribution. NumericalError if a variance is 0.
  [[nodiscard]] double negative_log_predictive_density() const;
  [[nodiscard]] double mean_squared_error() const;
};

/// Whether sampled function values at different inputs depend on each other, like those of one function.
enum class Sampling { joint, marginal };

/// A network fitted to data: everything that predictions need, in one value. It keeps its kernel matrices to itself, so
/// that one cannot be mistaken for another.
///
/// Rows     of equal inputs are one input, with the mean of their targets and the sum of their weights: a function has
/// Cost     fitting: the Gram matrix (both kernels for `trained`), n^3 / 3 multiplications, 4/3 n^3 operations or more
/// Memory   n^2 numbers (`trained`: 2 n^2) and the states.
/// Threads  may share a model; copies are cheap.
class Model {
 public:
  /// Errors  ArgumentError for shapes, options that do not fit each other, a criterion that needs validation data, or
  template <typename Scalar>
  [[nodiscard]] static Model fit(const Network& network, const Inputs<Scalar>& x, const Matrix<double>& y,
                                 const ModelOptions& options = {});
  /// The same, choosing the regulariser with validation data if the criterion asks for them.
  template <typename Scalar>
  [[nodiscard]] static Model fit(const Network& network, const LabelledInputs<Scalar>& train,
                                 const LabelledInputs<Scalar>& validation, const ModelOptions& options = {});

  /// Classes are the labels that occur, any integers; their targets are class_scores(). `options.class_names` name them
  /// according to ClassLabels::named(); without names they are named by their numbers.
  template <typename Scalar>
  [[nodiscard]] static Model fit(const Network& network, const Inputs<Scalar>& x, std::span<const int> labels,
                                 ModelOptions options = {});

  /// The scores of the regularisers of the grid with this network, and the best: what fit() would choose, for all
  /// outputs or for each, without the rest of it. For searches over networks. ArgumentError with `options.noise`.
  template <typename Scalar>
  [[nodiscard]] static std::vector<Selection> select(const Network& network,
                                                     const LabelledInputs<Scalar>& train,
                                                     const std::optional<LabelledInputs<Scalar>>& validation,
                                                     const ModelOptions& options = {});

  /// Inputs may be of either precision; the kernel is computed in that of the training inputs. Of `run`, threads,
  /// progress and stop are used, here and below. Errors: ArgumentError for inputs of another shape than those of
  /// the training (sequences may differ in length) or other channels, and the errors of gram().
  template <typename Scalar>
  [[nodiscard]] ModelPrediction predict(const Inputs<Scalar>& x, const GramOptions& run = {}) const;

  /// The same at each of these times of training, which have the kernels in common: that of at_time(), to the bit, for
  /// little more than one prediction.
  template <typename Scalar>
  [[nodiscard]] std::vector<ModelPrediction> predict(const Inputs<Scalar>& x, std::span<const double> times,
                                                     const GramOptions& run = {}) const;

  /// What predict() takes for these inputs beside the model, which is in memory: for plan_resources(). Errors: those of
  /// predict() for inputs that do not fit.
  template <typename Scalar>
  [[nodiscard]] Workload workload(const Inputs<Scalar>& x, const GramOptions& run = {}) const;

  /// A warning for people about inputs whose numbers are far outside those of the training inputs, or are all far
  /// smaller, with both ranges. Empty if there is nothing to say. Cost: one pass over both.
  template <typename Scalar>
  [[nodiscard]] std::string range_warning(const Inputs<Scalar>& x) const;

  /// How many of these inputs are training inputs, number for number in the precision of the kernel: what is predicted
  /// for them says little of new ones. 0 for inputs with masks or graphs. Cost: one pass over both.
  template <typename Scalar>
  [[nodiscard]] Index training_inputs_among(const Inputs<Scalar>& x) const;

  /// The mean alone, [n_test, outputs], which costs no more than the kernel; where logarithms were fitted as much as
  /// predict(), since their variances belong to it.
  template <typename Scalar>
  [[nodiscard]] Matrix<double> mean(const Inputs<Scalar>& x, const GramOptions& run = {}) const;

  /// Needs the Gram matrix of the new inputs too.
  template <typename Scalar>
  [[nodiscard]] JointPrediction predict_jointly(const Inputs<Scalar>& x, const GramOptions& run = {}) const;

  /// `count` functions of the posterior at these inputs, each [n_test, outputs], without the noise of observations: for
  /// `trained`, networks of an ensemble. Sample k comes from stream k of the seed. NumericalError if the covariance has
  /// an eigenvalue below 0 by more than 1e-3 of the largest prior variance.
  template <typename Scalar>
  [[nodiscard]] std::vector<Matrix<double>> samples(const Inputs<Scalar>& x, Index count, std::uint64_t seed,
                                                    Sampling sampling = Sampling::joint,
                                                    const GramOptions& run = {}) const;

  /// The same for functions before any data: wide networks at initialisation, scaled by the amplitude and in the units
  /// of the targets, around their mean. Sample k comes from stream 2^62 + k of the seed: for one seed, functions of the
  /// prior and of the posterior are independent.
  template <typename Scalar>
  [[nodiscard]] std::vector<Matrix<double>> prior_samples(const Inputs<Scalar>& x, Index count,
                                                          std::uint64_t seed,
                                                          const GramOptions& run = {}) const;

  /// Predictions of each training target, row by row, from all rows but those that are left out with it: rows of equal
  /// inputs and of its group (ModelOptions::groups). See Regression and GradientFlow. ArgumentError for
  /// networks trained for a finite time, which have no closed form, and for conjugate gradients, for which each is a
  /// system.
  [[nodiscard]] ModelLeaveOneOut leave_one_out() const;

  /// `bayesian` only, and not by conjugate gradients (ArgumentError): see Regression.
  [[nodiscard]] double log_marginal_likelihood() const;

  /// The same model with another factor on the kernels of standardised targets, for all outputs: the same means, other
  /// variances, under which observations are normal. ArgumentError unless it is positive and finite.
  [[nodiscard]] Model with_amplitude(double amplitude) const;

  /// The same networks after another time of training: `trained` only, and not by conjugate gradients (ArgumentError).
  /// It shares the decomposition of this one. Regulariser, amplitude and calibration stay what they are: those of
  /// infinite time, for all times. Cost 2 n^2 outputs.
  [[nodiscard]] Model at_time(double time) const;

  [[nodiscard]] ModelKind kind() const;
  [[nodiscard]] Solver solver() const;  ///< cholesky or conjugate_gradients: by which it was fitted.
  [[nodiscard]] double time() const;    ///< Of training.
  [[nodiscard]] const std::vector<double>& times() const;  ///< ModelOptions::times
  [[nodiscard]] Vector<double> amplitude() const;          ///< [outputs], of standardised targets.
  /// [outputs], in squared units of the targets, or of their logarithms where these were fitted.
  [[nodiscard]] Vector<double> noise_variance() const;
  /// [outputs], relative to the mean diagonal of the kernel: chosen, given, or what a known noise comes to. NaN for
  /// models that were saved by version 0.2.0.
  [[nodiscard]] Vector<double> regulariser() const;
  /// How numbers lie around the means; normal for classes.
  [[nodiscard]] const ObservationLaw& law() const;
  [[nodiscard]] TargetTransform transform() const;  ///< Of the targets, before they are scaled.
  [[nodiscard]] const TargetScale& target_scale() const;
  /// How scores of classes become their probabilities: fitted to training data left out, like the amplitude; without
  /// shifts for numbers and with a given amplitude.
  [[nodiscard]] const ClassCalibration& class_calibration() const;
  [[nodiscard]] Index train_size() const;   ///< Rows.
  [[nodiscard]] Index input_count() const;  ///< Distinct inputs among them, which are solved for.
  [[nodiscard]] Index outputs() const;
  [[nodiscard]] const Network& network() const;
  [[nodiscard]] bool is_float() const;  ///< Whether its kernel is computed in float.
  [[nodiscard]] bool flips() const;     ///< ModelOptions::flip
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  [[nodiscard]] const Preprocessing& preprocessing() const;
  [[nodiscard]] const std::string& preparation() const;  ///< ModelOptions::preparation
  /// The scores of the regularisers of the grid, for all outputs (classes, or a single output) or for each; empty if
  /// the noise was given, and for a loaded model.
  [[nodiscard]] const std::vector<Selection>& selections() const;
  /// The map of channels that inputs go through, the identity unless one was learned; inputs are handed over without
  /// it.
  [[nodiscard]] const FeatureMap& feature_map() const;
  /// What ModelOptions::learning found; nothing if it was not asked for, and for a loaded model.
  [[nodiscard]] const std::optional<LearnedInputs>& learned() const;

  /// Writes the model as a folder of .npy arrays and model.json (docs/inference.md), which appears as a whole or not at
  /// all. An earlier model there is replaced. DataError if the folder holds anything else, or cannot be written.
  void save(const std::filesystem::path& folder) const;

  /// Throws now the errors that save() would throw for this folder, before a long fit.
  static void check_folder(const std::filesystem::path& folder);

  /// The model that was saved, whose predictions have the same bits. Errors: DataError naming the file for a folder
  /// without a model, one of another version, and files that are missing or changed; ArgumentError for a model that
  /// does not fit into memory, before its arrays are read. `options`: threads and memory.
  [[nodiscard]] static Model load(const std::filesystem::path& folder, const GramOptions& options = {});

 private:
  explicit Model(std::shared_ptr<const ModelState> state) : state_{std::move(state)} {}

  std::shared_ptr<const ModelState> state_;
};

}  // namespace widelimit::gp
