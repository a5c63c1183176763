#include "propagation.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "run_control.hpp"
#include "widelimit/error.hpp"
#include "widelimit/propagation/critical.hpp"
#include "widelimit/propagation/estimators.hpp"
#include "widelimit/propagation/loss_predictor.hpp"
#include "widelimit/propagation/phase_diagram.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using propagation::BlockMap;
using propagation::Parameters;
using propagation::TokenState;

AttentionMask mask_of(bool causal) { return causal ? AttentionMask::causal : AttentionMask::full; }

/// 'unit', 'shared' or a number.
propagation::OutputGain gain_of(const std::variant<double, std::string>& sigma_out) {
  using propagation::OutputGain;
  if (const double* gain = std::get_if<double>(&sigma_out)) return OutputGain::fixed(*gain);
  const std::string& name = std::get<std::string>(sigma_out);
  if (name == "unit") return OutputGain::unit();
  if (name == "shared") return OutputGain::shared();
  throw ArgumentError(fmt::format("sigma_out: expected 'unit', 'shared' or a number, got '{}'", name));
}

void make_parameters(Parameters* self, Index tokens, double sigma_A, double alpha_A, double alpha_M,
                     double sigma_w, const std::variant<double, std::string>& sigma_out, int mlp_depth,
                     const std::string& activation, std::optional<double> skip_A,
                     std::optional<double> skip_M) {
  Parameters made{.tokens = tokens,
                  .sigma_A = sigma_A,
                  .alpha_A = alpha_A,
                  .alpha_M = alpha_M,
                  .sigma_w = sigma_w,
                  .sigma_out = gain_of(sigma_out),
                  .mlp_depth = mlp_depth,
                  .activation = propagation::activation_named(activation),
                  .skip_A = skip_A,
                  .skip_M = skip_M};
  propagation::require_parameters("Parameters", made);
  new (self) Parameters(std::move(made));
}

using StatePair = std::pair<double, double>;  ///< q, gap.

TokenState state_of(const StatePair& state) { return {state.first, state.second}; }
StatePair tuple_of(const TokenState& state) { return {state.q, state.gap}; }

/// (q, gap) of each, [states].
nb::tuple arrays_of_states(const std::vector<TokenState>& states) {
  return nb::make_tuple(array_of_each(states, [](const TokenState& state) { return state.q; }),
                        array_of_each(states, [](const TokenState& state) { return state.gap; }));
}

/// What the map of this name gives for a state.
StatePair mapped_state(const BlockMap& map, const std::string& part, const StatePair& state) {
  const TokenState given = state_of(state);
  return tuple_of(part == "attention" ? map.attention(given)
                  : part == "mlp"     ? map.mlp(given)
                                      : map.block(given));
}

DoubleArrayObject mapped_gram(const BlockMap& map, const std::string& part, const ArrayLikeObject& gram,
                              bool causal) {
  return array_of(run_or_leave(
      [&map, part, given = matrix_of(gram, "tokens"), mask = mask_of(causal)](std::stop_token) {
        return part == "attention" ? map.attention(given, mask)
               : part == "mlp"     ? map.mlp(given)
                                   : map.block(given, mask);
      },
      {nb::find(map)}));
}

DoubleArrayObject jacobian_of(const BlockMap& map, const std::string& part, const StatePair& state) {
  const TokenState given = state_of(state);
  return array_of(Matrix<double>(part == "attention" ? map.attention_jacobian(given)
                                 : part == "mlp"     ? map.mlp_jacobian(given)
                                                     : map.block_jacobian(given)));
}

nb::tuple state_trajectory(const BlockMap& map, const StatePair& start, Index depth, bool causal) {
  return arrays_of_states(run_or_leave(
      [&map, given = state_of(start), depth, mask = mask_of(causal)](std::stop_token) {
        return propagation::mean_trajectory(map, given, depth, mask);
      },
      {nb::find(map)}));
}

DoubleArrayObject gram_trajectory(const BlockMap& map, const ArrayLikeObject& start, Index depth,
                                  bool causal) {
  return array_of_stacked(
      run_or_leave([&map, given = matrix_of(start, "start"), depth,
                    mask = mask_of(causal)](std::stop_token) { return map.trajectory(given, depth, mask); },
                   {nb::find(map)}));
}

/// (q, gap, largest eigenvalue, stability) of each.
nb::list fixed_points_of(const BlockMap& map) {
  constexpr const char* names[] = {"stable", "marginal", "unstable"};
  nb::list points;
  for (const auto& point :
       run_or_leave([&map](std::stop_token) { return propagation::fixed_points(map); }, {nb::find(map)}))
    points.append(nb::make_tuple(point.state.q, point.state.gap, point.largest_eigenvalue,
                                 names[static_cast<std::size_t>(point.stability)]));
  return points;
}

/// Which exponents are meant: depth, causal, one_block, published.
using WhichExponents = std::tuple<double, bool, bool, bool>;

propagation::ExponentOptions exponent_options(const WhichExponents& which) {
  const auto [depth, causal, one_block, published] = which;
  return {.depth = depth,
          .mask = mask_of(causal),
          .angle = one_block ? propagation::AngleMeasure::one_block : propagation::AngleMeasure::collapsed,
          .formula = published ? propagation::Formula::published : propagation::Formula::corrected};
}

/// Of norms with a fixed point, or without one: then there is no point, but a growth.
struct FoundExponents {
  std::optional<propagation::CollapsedPoint> point;
  double lambda_a = 0, lambda_g = 0, one_block = 0, angle_at_infinite_depth = 0, norm_growth = 0;
};

FoundExponents find_exponents(const Parameters& parameters, const propagation::ExponentOptions& options) {
  using propagation::Exponent;
  FoundExponents found{.point = {},
                       .lambda_a = exponent(Exponent::angle, parameters, options),
                       .lambda_g = exponent(Exponent::gradient, parameters, options),
                       .one_block = one_block_exponent_limit(parameters, 1, options.mask)};
  if (!has_fixed_norm(parameters)) {
    found.norm_growth =
        equal_token_growth(parameters, 1, static_cast<Index>(std::llround(options.depth)), options.mask).norm;
    return found;
  }
  found.point = collapsed_point(parameters);
  found.angle_at_infinite_depth =
      options.mask == AttentionMask::causal ? causal_angle_exponent(parameters) : found.lambda_a;
  return found;
}

nb::object float_or_none(bool known, double value) {
  return known ? nb::object(nb::float_(value)) : nb::none();
}

/// The fields of widelimit.propagation.Exponents by their names.
nb::dict exponents_of(const Parameters& parameters, const WhichExponents& which) {
  const propagation::ExponentOptions options = exponent_options(which);
  const FoundExponents found =
      run_or_leave([parameters, options](std::stop_token) { return find_exponents(parameters, options); });
  const bool known = found.point.has_value(), alike = known && options.mask == AttentionMask::full;
  const propagation::CollapsedPoint point = found.point.value_or(propagation::CollapsedPoint{});
  nb::dict result;
  result["lambda_a"] = found.lambda_a;
  result["lambda_a_log"] = std::log1p(found.lambda_a);
  result["lambda_g"] = found.lambda_g;
  result["lambda_a_infinite_depth"] = float_or_none(known, found.angle_at_infinite_depth);
  result["lambda_g_infinite_depth"] =
      known ? nb::object(nb::float_(infinite_gradient_exponent(point))) : nb::none();
  result["one_block_from_1"] = found.one_block;
  result["q_star"] = float_or_none(known, point.q_star);
  result["q_M"] = float_or_none(known, point.q_M);
  result["k_out"] = float_or_none(known, point.k_out);
  result["f"] = float_or_none(known, point.f);
  // Both are derivatives of the map of tokens that are alike.
  result["mu_delta"] = float_or_none(alike, point.mu_delta);
  result["mu_q"] = float_or_none(known, point.mu_q);
  result["jacobian_q_p"] =
      alike ? nb::object(array_of(Matrix<double>(collapsed_jacobian(parameters)))) : nb::none();
  result["largest_annealed_gap"] =
      propagation::largest_annealed_gap(static_cast<double>(parameters.tokens), parameters.sigma_A);
  result["norm_growth"] = found.norm_growth;
  return result;
}

using AxisTuple = std::pair<std::string, std::vector<double>>;

propagation::Axis axis_of(const AxisTuple& axis) {
  return {propagation::coordinate_of(axis.first), axis.second};
}

/// (lambda_a, lambda_g), [y, x].
nb::tuple diagram_of(const Parameters& parameters, const AxisTuple& x, const AxisTuple& y,
                     const WhichExponents& which, int threads, const ProgressFunction& progress) {
  auto diagram = run_interruptibly([&](std::stop_token stop) {
    return propagation::phase_diagram(parameters, axis_of(x), axis_of(y), exponent_options(which),
                                      run_control_of(threads, progress, std::move(stop)));
  });
  return nb::make_tuple(array_of(std::move(diagram.lambda_a)), array_of(std::move(diagram.lambda_g)));
}

DoubleArrayObject array_of_points(const std::vector<propagation::BoundaryPoint>& points) {
  Matrix<double> result(static_cast<Index>(points.size()), 2);
  for (std::size_t k = 0; k < points.size(); ++k)
    result.row(static_cast<Index>(k)) << points[k].x, points[k].y;
  return array_of(std::move(result));
}

nb::list arrays_of_curves(const std::vector<propagation::BoundaryCurve>& curves) {
  nb::list result;
  for (const auto& curve : curves) result.append(nb::make_tuple(array_of_points(curve.points), curve.closed));
  return result;
}

using RangeTuple = std::tuple<std::string, double, double>;

/// (curves of lambda_a = 0, of lambda_g = 0, crossings).
nb::tuple lines_of(const Parameters& parameters, const RangeTuple& x, const RangeTuple& y,
                   const WhichExponents& which) {
  struct Found {
    std::vector<propagation::BoundaryCurve> angle, gradient;
    std::vector<propagation::BoundaryPoint> crossings;
  };
  const propagation::ParameterRectangle rectangle{
      propagation::coordinate_of(std::get<0>(x)), std::get<1>(x), std::get<2>(x),
      propagation::coordinate_of(std::get<0>(y)), std::get<1>(y), std::get<2>(y)};
  const Found found =
      run_or_leave([parameters, rectangle, options = exponent_options(which)](std::stop_token) {
        using propagation::Exponent;
        return Found{trace_boundary(Exponent::angle, parameters, rectangle, options),
                     trace_boundary(Exponent::gradient, parameters, rectangle, options),
                     boundary_intersections(parameters, rectangle, options)};
      });
  return nb::make_tuple(arrays_of_curves(found.angle), arrays_of_curves(found.gradient),
                        array_of_points(found.crossings));
}

propagation::Exponent exponent_named(const std::string& name) {
  return name == "angle" ? propagation::Exponent::angle : propagation::Exponent::gradient;
}

DoubleArrayObject zeros_of(const std::string& which, const std::string& free, const Parameters& parameters,
                           double depth, bool causal) {
  return array_of_values(
      run_or_leave([which = exponent_named(which), free = propagation::coordinate_of(free), parameters,
                    options = exponent_options({depth, causal, false, false})](std::stop_token) {
        return propagation::critical_values(which, free, parameters, options);
      }));
}

propagation::FreeParameters free_named(const std::string& name) {
  using propagation::FreeParameters;
  return name == "sigma_w"   ? FreeParameters::gain
         : name == "alpha_M" ? FreeParameters::mlp_strength
         : name == "alpha_A" ? FreeParameters::attention_strength
                             : FreeParameters::strengths_and_gain;
}

/// (alpha_A, alpha_M, sigma_w, lambda_a, lambda_g, log_gradient_growth).
nb::tuple critical_of(const Parameters& parameters, Index depth, const std::string& free, double tolerance,
                      bool causal) {
  const auto found = run_or_leave([parameters, depth, free, tolerance, causal](std::stop_token) {
    return free == "balanced"
               ? balanced_initialisation(parameters, depth, 1, 1, mask_of(causal))
               : critical_initialisation(parameters, depth, free_named(free), tolerance, mask_of(causal));
  });
  return nb::make_tuple(found.parameters.alpha_A, found.parameters.alpha_M, found.parameters.sigma_w,
                        found.lambda_a, found.lambda_g, found.log_gradient_growth);
}

/// Which networks are drawn, as widelimit.propagation says it.
struct DrawnNetworks {
  Index width, networks;
  bool causal;
  std::uint64_t seed;
  int threads;
  ProgressFunction progress;

  /// compute(options), interrupted by Ctrl-C.
  template <typename Compute>
  auto run(const Compute& compute) const {
    return run_interruptibly([&](std::stop_token stop) {
      return compute(propagation::SampleOptions{.width = width,
                                                .networks = networks,
                                                .mask = mask_of(causal),
                                                .seed = seed,
                                                .threads = threads,
                                                .progress = locked(progress),
                                                .stop = std::move(stop)});
    });
  }
};

/// ((q, errors), (cosine, errors)) after each block.
nb::tuple simulated_trajectory(const Parameters& parameters, Index depth, double q0, double c0,
                               const DrawnNetworks& drawn) {
  using propagation::MeasuredState;
  const auto states = drawn.run([&](const auto& options) {
    return measured_trajectory(parameters, propagation::TokenDistribution::gaussian(q0, c0), depth, options);
  });
  return nb::make_tuple(arrays_of_estimates(states, [](const MeasuredState& state) { return state.q; }),
                        arrays_of_estimates(states, [](const MeasuredState& state) { return state.cosine; }));
}

/// (depth, squared norms, cosines) of each depth.
nb::list simulated_samples(const Parameters& parameters, const std::vector<Index>& depths, double q0,
                           double c0, const DrawnNetworks& drawn) {
  nb::list result;
  for (const auto& samples : drawn.run([&](const auto& options) {
         return token_samples(parameters, propagation::TokenDistribution::gaussian(q0, c0), depths, options);
       }))
    result.append(nb::make_tuple(samples.depth, array_of_values(samples.squared_norms),
                                 array_of_values(samples.cosines)));
  return result;
}

nb::tuple simulated_angle(const Parameters& parameters, std::optional<double> q0, double c0,
                          const DrawnNetworks& drawn) {
  return pair_of(drawn.run([&](const auto& options) {
    return measured_angle_exponent(parameters, q0 ? *q0 : equal_tokens_norm(parameters), c0, options);
  }));
}

/// (log of mean, mean of log), from equal tokens at the fixed point where there is no q0.
nb::tuple simulated_gradient(const Parameters& parameters, Index depth, std::optional<double> q0, double c0,
                             const DrawnNetworks& drawn) {
  using propagation::TokenDistribution;
  const auto measured = drawn.run([&](const auto& options) {
    const auto start =
        q0 ? TokenDistribution::gaussian(*q0, c0) : TokenDistribution::equal(equal_tokens_norm(parameters));
    return measured_gradient_exponent(parameters, start, depth, options);
  });
  return nb::make_tuple(pair_of(measured.log_of_mean), pair_of(measured.mean_of_log));
}

nb::tuple simulated_groups(const Parameters& parameters, Index depth, double q0, double p_inside,
                           double p_across, const DrawnNetworks& drawn) {
  const auto ratios = drawn.run([&](const auto& options) {
    return measured_group_ratio(
        parameters, propagation::TokenDistribution::two_groups(q0, p_inside, p_across), depth, options);
  });
  return arrays_of_estimates(ratios, [](const numerics::Estimate& ratio) { return ratio; });
}

/// The fields of widelimit.propagation.LossFit, but for the parameters that were fitted to, by their names.
nb::dict fitted_losses(const ArrayLikeObject& lambda_a, const ArrayLikeObject& lambda_g,
                       const ArrayLikeObject& losses, double ceiling, Index bootstrap, std::uint64_t seed) {
  const Vector<double> angles = vector_of(lambda_a, "lambda_a"), gradients = vector_of(lambda_g, "lambda_g"),
                       loss = vector_of(losses, "loss");
  if (angles.size() != loss.size() || gradients.size() != loss.size())
    throw ArgumentError(
        fmt::format("fit_losses: expected as many lambda_a and lambda_g as losses, got {}, {} and {}",
                    angles.size(), gradients.size(), loss.size()));
  std::vector<propagation::TrainingOutcome> outcomes;
  for (Index k = 0; k < loss.size(); ++k) outcomes.push_back({angles[k], gradients[k], loss[k]});
  struct Found {
    propagation::PredictorFit fit;
    propagation::LossPredictor errors;
  };
  const Found found = run_or_leave([outcomes, ceiling, bootstrap, seed](std::stop_token) {
    const auto fit = propagation::fit_loss_predictor(outcomes, ceiling);
    return Found{fit, propagation::bootstrap_errors(outcomes, fit, bootstrap, seed)};
  });
  nb::dict result;
  result["weight_a"] = found.fit.predictor.weight_a;
  result["weight_g"] = found.fit.predictor.weight_g;
  result["bias"] = found.fit.predictor.bias;
  result["weight_a_error"] = found.errors.weight_a;
  result["weight_g_error"] = found.errors.weight_g;
  result["bias_error"] = found.errors.bias;
  result["root_mean_square_error"] = found.fit.root_mean_square_error;
  result["explained_variance"] = found.fit.explained_variance;
  result["rank_correlation"] = found.fit.rank_correlation;
  result["predicted"] = array_of_each(outcomes, [&](const propagation::TrainingOutcome& outcome) {
    return found.fit.predictor(outcome.lambda_a, outcome.lambda_g);
  });
  return result;
}

void bind_closed_forms(nb::module_& module) {
  nb::class_<Parameters>(module, "PropagationParameters")
      .def("__init__", &make_parameters, "tokens"_a, "sigma_A"_a, "alpha_A"_a, "alpha_M"_a, "sigma_w"_a,
           "sigma_out"_a, "mlp_depth"_a, "activation"_a, "skip_A"_a.none(), "skip_M"_a.none());
  nb::class_<BlockMap>(module, "PropagationMap")
      .def(
          "__init__", [](BlockMap* self, const Parameters& parameters) { new (self) BlockMap(parameters); },
          "parameters"_a)
      .def("state", &mapped_state, "part"_a, "state"_a)
      .def("gram", &mapped_gram, "part"_a, "gram"_a, "causal"_a)
      .def("jacobian", &jacobian_of, "part"_a, "state"_a)
      .def("state_trajectory", &state_trajectory, "start"_a, "depth"_a, "causal"_a)
      .def("gram_trajectory", &gram_trajectory, "start"_a, "depth"_a, "causal"_a)
      .def("fixed_points", &fixed_points_of);
  module.def("propagation_exponents", &exponents_of, "parameters"_a, "which"_a);
  module.def("phase_diagram", &diagram_of, "parameters"_a, "x"_a, "y"_a, "which"_a, "threads"_a,
             "progress"_a.none());
  module.def("critical_lines", &lines_of, "parameters"_a, "x"_a, "y"_a, "which"_a);
  module.def("critical_values", &zeros_of, "which"_a, "free"_a, "parameters"_a, "depth"_a, "causal"_a);
  module.def("critical_initialisation", &critical_of, "parameters"_a, "depth"_a, "free"_a, "tolerance"_a,
             "causal"_a);
  module.def("fit_losses", &fitted_losses, "lambda_a"_a, "lambda_g"_a, "loss"_a, "ceiling"_a, "bootstrap"_a,
             "seed"_a);
}

void bind_simulations(nb::module_& module) {
  nb::class_<DrawnNetworks>(module, "DrawnNetworks")
      .def(
          "__init__",
          [](DrawnNetworks* self, Index width, Index networks, bool causal, std::uint64_t seed, int threads,
             ProgressFunction progress) {
            new (self) DrawnNetworks{width, networks, causal, seed, threads, std::move(progress)};
          },
          "width"_a, "networks"_a, "causal"_a, "seed"_a, "threads"_a, "progress"_a.none());
  module.def("simulate_trajectory", &simulated_trajectory, "parameters"_a, "depth"_a, "q0"_a, "c0"_a,
             "drawn"_a);
  module.def("simulate_samples", &simulated_samples, "parameters"_a, "depths"_a, "q0"_a, "c0"_a, "drawn"_a);
  module.def("simulate_angle", &simulated_angle, "parameters"_a, "q0"_a.none(), "c0"_a, "drawn"_a);
  module.def("simulate_gradient", &simulated_gradient, "parameters"_a, "depth"_a, "q0"_a.none(), "c0"_a,
             "drawn"_a);
  module.def("simulate_groups", &simulated_groups, "parameters"_a, "depth"_a, "q0"_a, "p_inside"_a,
             "p_across"_a, "drawn"_a);
}

}  // namespace

void bind_propagation(nb::module_& module) {
  bind_closed_forms(module);
  bind_simulations(module);
}

}  // namespace widelimit::python
