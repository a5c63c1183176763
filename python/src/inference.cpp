#include "inference.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "arrays.hpp"
#include "batches.hpp"
#include "interruptible.hpp"
#include "left_out.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/automatic.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/median_distance.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/observation_law.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/gp/selection.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

/// At most one of the two: eps times the mean diagonal, or a variance in squared units of the targets.
std::optional<gp::Noise> noise_of(std::optional<double> regulariser, std::optional<double> noise) {
  if (regulariser && noise)
    throw ArgumentError("expected regulariser (relative) or noise_variance (absolute), got both");
  if (regulariser) return gp::RelativeRegulariser(*regulariser);
  if (noise) return gp::AbsoluteNoise(*noise);
  return std::nullopt;
}

gp::Regression fit_regression(const ArrayLikeObject& gram, const ArrayLikeObject& targets,
                              std::optional<double> regulariser, std::optional<double> noise_variance,
                              int threads) {
  const auto noise = noise_of(regulariser, noise_variance);
  if (!noise) throw ArgumentError("Regression: expected regulariser or noise_variance, got neither");
  return run_or_leave(
      [gram = matrix_of(gram, "gram"), targets = matrix_of(targets, "targets"), noise,
       threads](std::stop_token) { return gp::Regression::fit(gram, targets, *noise, threads); });
}

gp::GradientFlow fit_flow(const ArrayLikeObject& nngp, const ArrayLikeObject& ntk,
                          const ArrayLikeObject& targets, std::optional<double> regulariser,
                          std::optional<double> noise_variance, double learning_rate, int threads) {
  const auto noise = noise_of(regulariser, noise_variance);
  return run_or_leave([nngp = matrix_of(nngp, "nngp"), ntk = matrix_of(ntk, "ntk"),
                       targets = matrix_of(targets, "targets"), noise, learning_rate,
                       threads](std::stop_token) {
    return gp::GradientFlow::fit(nngp, ntk, targets, noise, learning_rate, threads);
  });
}

/// compute(self) as an array; what it uses beside `self` it owns.
template <typename Self, typename Compute>
DoubleArrayObject computed(const Self& self, Compute compute) {
  return array_of(
      run_or_leave([model = &self, compute = std::move(compute)](std::stop_token) { return compute(*model); },
                   {nb::find(self)}));
}

/// Of the training inputs, at a time.
template <auto member>
DoubleArrayObject at_time(const gp::GradientFlow& self, double time) {
  return computed(self, [time](const gp::GradientFlow& flow) { return (flow.*member)(time); });
}

void bind_regression(nb::module_& module) {
  using gp::Regression;
  nb::class_<Regression>(
      module, "Regression",
      "Gaussian-process posterior of a Gram matrix [n, n] and targets [n, outputs].\n\n"
      "regulariser: eps, the variance eps * mean(diagonal) is added to the diagonal, and the kernel is "
      "scaled to the amplitude that makes the targets most likely; or noise_variance: in squared units of "
      "the targets, amplitude 1. threads=0: all cores of the machine. Raises ArgumentError for shapes, NaN "
      "and "
      "asymmetric matrices, NumericalError if the factorization breaks down.\n"
      "Source: Rasmussen & Williams 2006, algorithm 2.1 and equation 5.8.")
      .def_static("fit", &fit_regression, "gram"_a, "targets"_a, "regulariser"_a = nb::none(),
                  "noise_variance"_a = nb::none(), "threads"_a = 0,
                  "The posterior of targets [n, outputs] under a Gram matrix [n, n], with regulariser or "
                  "noise_variance > 0, as the class says. Cost: n^3 / 3 operations.")
      .def("with_amplitude", &Regression::with_amplitude, "amplitude"_a,
           "The posterior for this amplitude: the same mean, other variances. ArgumentError unless it is "
           "positive and finite.")
      .def(
          "output",
          [](const Regression& self, Index output, const ArrayLikeObject& targets) {
            return self.output(output, matrix_of(targets, "targets"));
          },
          "output"_a, "targets"_a,
          "The posterior of one output alone, with the amplitude that makes its targets most likely if "
          "fit() "
          "chose one; targets are those of fit(), [n, outputs]. ArgumentError for an output that does not "
          "exist.")
      .def(
          "mean",
          [](const Regression& self, const ArrayLikeObject& cross) {
            return computed(self, [gram = matrix_of(cross, "cross_gram")](const Regression& fit) {
              return fit.mean(gram);
            });
          },
          "cross_gram"_a,
          "Posterior mean [n_test, outputs]; cross_gram [n_test, n] is the kernel of test with training "
          "inputs. ArgumentError for another number of columns.")
      .def(
          "variance",
          [](const Regression& self, const ArrayLikeObject& cross, const ArrayLikeObject& test_variances) {
            return computed(self, [gram = matrix_of(cross, "cross_gram"),
                                   variances = vector_of(test_variances, "test_variances")](
                                      const Regression& fit) { return fit.variance(gram, variances); });
          },
          "cross_gram"_a, "test_variances"_a,
          "Posterior variance of the latent function [n_test], in squared units of the targets and without "
          "the noise of observations, the same for every output; cross_gram is [n_test, n], test_variances "
          "[n_test] the diagonal of the test inputs' Gram matrix. ArgumentError for other shapes. Cost: "
          "n_test n^2 operations.\nSource: Rasmussen & Williams 2006, equation 2.26.")
      .def(
          "covariance",
          [](const Regression& self, const ArrayLikeObject& cross, const ArrayLikeObject& test_gram) {
            return computed(self,
                            [gram = matrix_of(cross, "cross_gram"), test = matrix_of(test_gram, "test_gram")](
                                const Regression& fit) { return fit.covariance(gram, test); });
          },
          "cross_gram"_a, "test_gram"_a,
          "Joint posterior covariance of the latent function [n_test, n_test]; cross_gram is [n_test, n], "
          "test_gram [n_test, n_test] the test inputs' own. Errors, units and source: see variance().")
      .def("leave_one_out", &left_out_of<Regression>,
           "A LeaveOneOut: predictions of each target from all others, with this amplitude and "
           "noise, without refits, in n^3 operations.\nSource: Rasmussen & Williams 2006, equations 5.10 to "
           "5.12.")
      .def(
          "score_derivatives",
          [](const Regression& self, const std::vector<ArrayLikeObject>& gram_derivatives) {
            std::vector<Matrix<double>> matrices;
            for (const ArrayLikeObject& derivative : gram_derivatives)
              matrices.push_back(matrix_of(derivative, "gram_derivatives"));
            return computed(self, [matrices = std::move(matrices)](const Regression& fit) {
              Matrix<double> rows(static_cast<Eigen::Index>(matrices.size()), 2);
              Eigen::Index row = 0;
              for (const auto& of_number : fit.score_derivatives(matrices)) {
                rows(row, 0) = of_number.log_marginal_likelihood;
                rows(row++, 1) = of_number.leave_one_out_density;
              }
              return rows;
            });
          },
          "gram_derivatives"_a,
          "Derivatives [numbers, 2] of the log marginal likelihood and of leave-one-out's negative log "
          "predictive density by hyperparameters of the Gram matrix; gram_derivatives are its "
          "derivatives [n, n] by each (gram_gradient()). Noise of a regulariser, and an amplitude that was "
          "chosen, depend on the matrix.\n"
          "Source: Rasmussen & Williams 2006, equations 5.9 and 5.13.")
      .def(
          "score_cotangents",
          [](const Regression& self) {
            auto scores = run_or_leave([fit = &self](std::stop_token) { return fit->score_cotangents(); },
                                       {nb::find(self)});
            return nb::make_tuple(array_of(std::move(scores.log_marginal_likelihood)),
                                  array_of(std::move(scores.leave_one_out_density)));
          },
          "The same derivatives by every entry of the Gram matrix, two symmetric matrices [n, n]: of the log "
          "marginal likelihood, and of leave-one-out's negative log predictive density. gram_vjp() turns "
          "them into derivatives by inputs, gram_number_vjp() into those by hyperparameters. 8/3 n^3 "
          "operations.\n"
          "Source: Rasmussen & Williams 2006, equations 5.9 and 5.13.")
      .def_prop_ro("log_marginal_likelihood", &Regression::log_marginal_likelihood,
                   "The log density of the targets, summed over the outputs.")
      .def_prop_ro("amplitude", &Regression::amplitude, "The factor on the kernel.")
      .def_prop_ro("noise_variance", &Regression::noise_variance,
                   "The noise variance of observations, in squared units of the targets.")
      .def_prop_ro(
          "weights", [](const Regression& self) { return array_of(Matrix<double>(self.weights())); },
          "[n, outputs]: mean(cross_gram) is cross_gram @ weights.");
}

void bind_flow(nb::module_& module) {
  using gp::GradientFlow;
  nb::class_<GradientFlow>(
      module, "GradientFlow",
      "Outputs of infinitely wide networks that follow the gradient flow of half the sum of squared errors "
      "for a time.\n\n"
      "nngp, ntk: Gram matrices [n, n]; targets [n, outputs]; regulariser or noise_variance as in "
      "Regression, or neither. Times lie in 0 .. inf, in units of 1 / (learning_rate * eigenvalue of the "
      "NTK).\nSource: Lee et al. 2019, equations 14 to 16.")
      .def_static("fit", &fit_flow, "nngp"_a, "ntk"_a, "targets"_a, "regulariser"_a = nb::none(),
                  "noise_variance"_a = nb::none(), "learning_rate"_a = 1.0, "threads"_a = 0,
                  "The flow of networks of these kernels [n, n] towards targets [n, outputs]. ArgumentError "
                  "for shapes, NaN and asymmetric matrices, NumericalError if an eigenvalue of the NTK is "
                  "below 0 by more than rounding.")
      .def("with_amplitude", &GradientFlow::with_amplitude, "amplitude"_a,
           "Networks with outputs sqrt(amplitude) times as large: the same means, other covariances. "
           "ArgumentError unless it is positive and finite.")
      .def("leave_one_out_amplitude", &GradientFlow::leave_one_out_amplitude,
           "The amplitude that makes every target most likely under networks trained on all others to the "
           "end.\n"
           "Source: Rasmussen & Williams 2006, section 5.4.2, for weights that are not those of the NNGP.")
      .def("leave_one_out", &left_out_of<GradientFlow>,
           "A LeaveOneOut: predictions of each target by converged networks trained on all other inputs. "
           "NumericalError for a singular NTK without a regulariser.")
      .def("weights", &at_time<&GradientFlow::weights>, "time"_a,
           "[n, outputs]: mean(time, ntk_cross) is ntk_cross @ weights(time).")
      .def(
          "mean",
          [](const GradientFlow& self, double time, const ArrayLikeObject& ntk_cross) {
            return computed(self, [time, gram = matrix_of(ntk_cross, "ntk_cross")](const GradientFlow& flow) {
              return flow.mean(time, gram);
            });
          },
          "time"_a, "ntk_cross"_a,
          "Mean at the test inputs [n_test, outputs] after a time in 0 .. inf; ntk_cross [n_test, n] is the "
          "NTK of test with training inputs. ArgumentError for other times and shapes, NumericalError at "
          "time inf if the NTK is singular.")
      .def(
          "covariance",
          [](const GradientFlow& self, double time, const ArrayLikeObject& nngp_cross,
             const ArrayLikeObject& ntk_cross, const ArrayLikeObject& nngp_test) {
            return computed(self, [time, nngp = matrix_of(nngp_cross, "nngp_cross"),
                                   ntk = matrix_of(ntk_cross, "ntk_cross"),
                                   test = matrix_of(nngp_test, "nngp_test")](const GradientFlow& flow) {
              return flow.covariance(time, nngp, ntk, test);
            });
          },
          "time"_a, "nngp_cross"_a, "ntk_cross"_a, "nngp_test"_a,
          "Covariance at the test inputs [n_test, n_test], over networks trained from independent "
          "initialisations, the same for every output; nngp_cross and ntk_cross are [n_test, n], nngp_test "
          "[n_test, n_test]. Errors: see mean().\nSource: Lee et al. 2019, equation 16.")
      .def(
          "variance",
          [](const GradientFlow& self, double time, const ArrayLikeObject& nngp_cross,
             const ArrayLikeObject& ntk_cross, const ArrayLikeObject& nngp_test_variances) {
            return computed(
                self,
                [time, nngp = matrix_of(nngp_cross, "nngp_cross"), ntk = matrix_of(ntk_cross, "ntk_cross"),
                 variances = vector_of(nngp_test_variances, "nngp_test_variances")](
                    const GradientFlow& flow) { return flow.variance(time, nngp, ntk, variances); });
          },
          "time"_a, "nngp_cross"_a, "ntk_cross"_a, "nngp_test_variances"_a,
          "The diagonal of covariance(), [n_test]; nngp_cross and ntk_cross are [n_test, n], "
          "nngp_test_variances [n_test] is the diagonal of the test inputs' NNGP. Errors: see mean(). "
          "Only needs memory for blocks of test inputs.")
      .def("train_mean", &at_time<&GradientFlow::train_mean>, "time"_a,
           "Mean at the training inputs [n, outputs]. Errors: see mean().")
      .def("train_covariance", &at_time<&GradientFlow::train_covariance>, "time"_a,
           "Covariance at the training inputs [n, n], like covariance(). Errors: see mean().")
      .def("train_variance", &at_time<&GradientFlow::train_variance>, "time"_a,
           "The diagonal of train_covariance(), [n], in blocks. Errors: see mean().")
      .def_prop_ro("amplitude", &GradientFlow::amplitude, "The factor on both kernels.")
      .def_prop_ro("regulariser_variance", &GradientFlow::regulariser_variance,
                   "The variance added to the NTK's diagonal, amplitude included; 0 without a regulariser.");
}

template <typename Scalar>
std::optional<double> median_distance(const Batch<Scalar>& x) {
  return gp::median_distance(x.inputs);
}

/// Ends of the central intervals of observations, both [n, outputs] as their means and variances.
nb::tuple central_intervals(double degrees_of_freedom, double scale, bool of_logarithms, double probability,
                            const Array<double>& mean, const Array<double>& variance) {
  const gp::ObservationLaw law{degrees_of_freedom, scale, of_logarithms};
  const Matrix<double> means = matrix_of(mean), variances = matrix_of(variance);
  Matrix<double> lower(means.rows(), means.cols()), upper = lower;
  for (Index i = 0; i < means.rows(); ++i)
    for (Index k = 0; k < means.cols(); ++k)
      std::tie(lower(i, k), upper(i, k)) = law.interval(probability, means(i, k), variances(i, k));
  return nb::make_tuple(array_of(std::move(lower)), array_of(std::move(upper)));
}

/// Chooses a network and sets the options that go with it: the network, its place among the trials, the rows that chose
/// it, and the trials.
template <typename Scalar>
nb::tuple choose_network(const Batch<Scalar>& x, const Array<double>& y,
                         const std::optional<Array<double>>& validation_y, gp::ModelOptions& options) {
  const Inputs<Scalar> mapped = options.input_map.apply(x.inputs);
  gp::Problem problem{.kind = options.class_names.empty() ? gp::TargetKind::numbers : gp::TargetKind::classes,
                      .targets = matrix_of(y),
                      .noise_variances = options.noise_variances,
                      .weights = options.weights,
                      .inputs = gp::distinct_inputs(mapped, options.groups)};
  if (validation_y) problem.validation = matrix_of(*validation_y);
  gp::AutomaticOptions choice = gp::automatic_options(options);
  gp::AutomaticNetwork found = run_or_leave(
      [inputs = mapped, problem = std::move(problem), choice = std::move(choice),
       threads = options.gram.threads](std::stop_token stop) {
        return gp::choose_network(inputs, problem, choice, {.threads = threads, .stop = std::move(stop)});
      },
      {nb::find(x)});
  options.input_map = options.input_map.then(found.map);
  options.fits_tails = true;
  options.transform = found.transform;
  nb::list trials;
  for (const gp::AutomaticTrial& trial : found.trials)
    trials.append(nb::make_tuple(trial.network, trial.inputs,
                                 trial.targets == gp::TargetTransform::log ? "logarithms" : "as they are",
                                 trial.score, trial.unsolved));
  return nb::make_tuple(std::move(found.network), found.chosen, found.rows, trials);
}

}  // namespace

void bind_inference(nb::module_& module) {
  module.def(
      "central_half_width",
      [](double degrees_of_freedom, double scale, double probability) {
        return gp::ObservationLaw{degrees_of_freedom, scale}.half_width(probability);
      },
      "degrees_of_freedom"_a, "scale"_a, "probability"_a);
  module.def("central_intervals", &central_intervals, "degrees_of_freedom"_a, "scale"_a, "of_logarithms"_a,
             "probability"_a, "mean"_a, "variance"_a);
  module.def(
      "log_densities",
      [](double degrees_of_freedom, double scale, bool of_logarithms, const Array<double>& observations,
         const Array<double>& mean, const Array<double>& variance) {
        const gp::ObservationLaw law{degrees_of_freedom, scale, of_logarithms};
        const Matrix<double> y = matrix_of(observations), means = matrix_of(mean),
                             variances = matrix_of(variance);
        Matrix<double> logarithms(means.rows(), means.cols());
        for (Index i = 0; i < means.rows(); ++i)
          for (Index k = 0; k < means.cols(); ++k)
            logarithms(i, k) = law.log_density(y(i, k), means(i, k), variances(i, k));
        return array_of(std::move(logarithms));
      },
      "degrees_of_freedom"_a, "scale"_a, "of_logarithms"_a, "observations"_a, "mean"_a, "variance"_a);
  module.def(
      "observation_variances",
      [](double degrees_of_freedom, double scale, bool of_logarithms, const Array<double>& mean,
         const Array<double>& variance, const Array<double>& noise) {
        const gp::ObservationLaw law{degrees_of_freedom, scale, of_logarithms};
        return array_of(law.observation_variances(matrix_of(mean), matrix_of(variance),
                                                  Vector<double>(matrix_of(noise).reshaped())));
      },
      "degrees_of_freedom"_a, "scale"_a, "of_logarithms"_a, "mean"_a, "variance"_a, "noise"_a);
  module.def("median_distance", &median_distance<float>, "x"_a);
  module.def("median_distance", &median_distance<double>, "x"_a);
  module.def("choose_network", &choose_network<float>, "x"_a, "y"_a, "validation_y"_a.none(), "options"_a);
  module.def("choose_network", &choose_network<double>, "x"_a, "y"_a, "validation_y"_a.none(), "options"_a);
  bind_regression(module);
  bind_flow(module);
}

}  // namespace widelimit::python
