#include "propagation.hpp"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "estimates.hpp"
#include "interruptible.hpp"
#include "named_results.hpp"
#include "run_control.hpp"
#include "widelimit/error.hpp"
#include "widelimit/propagation/fields.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using propagation::BlockMap;
using propagation::Parameters;
using propagation::TokenState;

AttentionMask mask_of(bool causal) { return causal ? AttentionMask::causal : AttentionMask::full; }

/// What the arguments of a function say, by the table of its computation.
template <typename Read>
auto read_as(const char* function, const char* computation, const nb::dict& told, const Read& read) {
  return read_arguments(function, told, propagation::computation(computation).all(), read);
}
template <typename Read>
auto read_as(const char* function, const nb::dict& told, const Read& read) {
  return read_as(function, function, told, read);
}

propagation::Transformer transformer_of(const nb::dict& parameters) {
  return read_as("Parameters", parameters, propagation::read_transformer);
}

Network block_of(const nb::dict& parameters, bool causal) {
  propagation::Transformer transformer = transformer_of(parameters);
  transformer.mask = mask_of(causal);
  return transformer.block();
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

/// The results of widelimit/propagation/results.hpp.
nb::object exponents_of(const nb::dict& told) {
  return object_of(run_or_leave([task = read_as("exponents", told, propagation::read_exponents)](
                                    std::stop_token) { return propagation::exponent_results(task); }));
}

nb::object width_spread_of(const nb::dict& told) {
  const auto task = read_as("width_spread", "exponents", told, [](ConfigReader& fields) {
    static_cast<void>(fields.integer("width"));  // Which exponents() can do without.
    return propagation::read_exponents(fields);
  });
  return object_of(run_or_leave([task](std::stop_token) {
    return propagation::width_results(task.transformer.parameters, task.width.value(),
                                      task.transformer.blocks());
  }));
}

/// Parameters, and which of their exponents are meant.
struct Exponents {
  Parameters parameters;
  propagation::ExponentOptions options;
};
Exponents which_exponents(ConfigReader& fields) {
  const propagation::Transformer transformer = propagation::read_transformer(fields);
  return {transformer.parameters, propagation::read_exponent_options(fields, transformer)};
}

using AxisTuple = std::pair<std::string, std::vector<double>>;

propagation::Axis axis_of(const AxisTuple& axis) {
  return {propagation::coordinate_of(axis.first), axis.second};
}

/// (lambda_a, lambda_g), [y, x].
nb::tuple diagram_of(const nb::dict& told, const AxisTuple& x, const AxisTuple& y, int threads,
                     const ProgressFunction& progress) {
  const Exponents which = read_as("phase_diagram", told, which_exponents);
  auto diagram = run_interruptibly([&](std::stop_token stop) {
    return propagation::phase_diagram(which.parameters, axis_of(x), axis_of(y), which.options,
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
nb::tuple lines_of(const nb::dict& told, const RangeTuple& x, const RangeTuple& y) {
  struct Found {
    std::vector<propagation::BoundaryCurve> angle, gradient;
    std::vector<propagation::BoundaryPoint> crossings;
  };
  const propagation::ParameterRectangle rectangle{
      propagation::coordinate_of(std::get<0>(x)), std::get<1>(x), std::get<2>(x),
      propagation::coordinate_of(std::get<0>(y)), std::get<1>(y), std::get<2>(y)};
  const Exponents which = read_as("critical_lines", "phase_diagram", told, which_exponents);
  const Found found = run_or_leave([which, rectangle](std::stop_token) {
    using propagation::Exponent;
    const auto& [parameters, options] = which;
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

DoubleArrayObject zeros_of(const std::string& which, const std::string& free, const nb::dict& told) {
  return array_of_values(run_or_leave(
      [which = exponent_named(which), free = propagation::coordinate_of(free),
       transformer = read_as("critical_values", told, propagation::read_transformer)](std::stop_token) {
        return propagation::critical_values(which, free, transformer.parameters,
                                            transformer.exponent_options());
      }));
}

/// The parameters found by their names, and (lambda_a, lambda_g, log_gradient_growth).
nb::tuple critical_of(const nb::dict& told) {
  const auto found = run_or_leave([task = read_as("critical", told, propagation::read_critical)](
                                      std::stop_token) { return task.found(); });
  return nb::make_tuple(object_of(propagation::described(found.parameters)),
                        nb::make_tuple(found.lambda_a, found.lambda_g, found.log_gradient_growth));
}

/// (q, gap) of each state.
nb::tuple trajectory_of(const nb::dict& told, const ProgressFunction& progress) {
  const auto read = read_as("trajectory", told, [](ConfigReader& fields) {
    const propagation::Transformer read = propagation::read_transformer(fields);
    return std::pair{read, propagation::read_start(fields)};
  });
  // Names of a structured binding cannot be captured.
  const auto& transformer = read.first;
  const auto& start = read.second;
  return arrays_of_states(run_interruptibly([&](std::stop_token stop) {
    return propagation::mean_trajectory(
        BlockMap(transformer.parameters), TokenState::from_cosine(start.q0.value(), start.c0),
        transformer.blocks(), transformer.mask, run_control_of(1, progress, std::move(stop)));
  }));
}

/// What widelimit.propagation says of a run besides what is drawn.
struct Drawing {
  int threads;
  ProgressFunction progress;

  /// compute(sampling), interrupted by Ctrl-C.
  template <typename Compute>
  auto run(propagation::SampleOptions sampling, const Compute& compute) const {
    return run_interruptibly([&](std::stop_token stop) {
      sampling.threads = threads;
      sampling.progress = locked(progress);
      sampling.stop = std::move(stop);
      return compute(sampling);
    });
  }
};

/// {"q", "q_error", "cosine", "cosine_error"} after each block.
nb::dict simulated_trajectory(const nb::dict& told, const Drawing& drawing) {
  const auto drawn = read_as("simulate_trajectory", told, propagation::read_simulation);
  return dict_of(propagation::measured_columns(drawing.run(drawn.sampling, [&](const auto& options) {
    const Parameters& parameters = drawn.transformer.parameters;
    return measured_trajectory(parameters, drawn.start.distribution(parameters), drawn.transformer.blocks(),
                               options);
  })));
}

/// (depth, squared norms, cosines) of each depth.
nb::list simulated_samples(const nb::dict& told, const std::vector<Index>& depths, const Drawing& drawing) {
  const auto drawn = read_as("simulate_samples", told, propagation::read_simulation);
  nb::list result;
  for (const auto& samples : drawing.run(drawn.sampling, [&](const auto& options) {
         const Parameters& parameters = drawn.transformer.parameters;
         return token_samples(parameters, drawn.start.distribution(parameters), depths, options);
       }))
    result.append(nb::make_tuple(samples.depth, array_of_values(samples.squared_norms),
                                 array_of_values(samples.cosines)));
  return result;
}

nb::tuple simulated_angle(const nb::dict& told, const Drawing& drawing) {
  const auto drawn = read_as("simulate_angle", told, propagation::read_simulation);
  return pair_of(drawing.run(drawn.sampling, [&](const auto& options) {
    return measured_angle_exponent(drawn.transformer.parameters,
                                   drawn.start.norm(drawn.transformer.parameters), drawn.start.c0, options);
  }));
}

/// (log of mean, mean of log).
nb::tuple simulated_gradient(const nb::dict& told, const Drawing& drawing) {
  const auto drawn = read_as("simulate_gradient", told, propagation::read_simulation);
  const auto measured = drawing.run(drawn.sampling, [&](const auto& options) {
    const Parameters& parameters = drawn.transformer.parameters;
    return measured_gradient_exponent(parameters, drawn.start.distribution(parameters),
                                      drawn.transformer.blocks(), options);
  });
  return nb::make_tuple(pair_of(measured.log_of_mean), pair_of(measured.mean_of_log));
}

nb::tuple simulated_groups(const nb::dict& told, const Drawing& drawing) {
  const auto drawn = read_as("simulate_groups", told, propagation::read_group_simulation);
  const auto ratios = drawing.run(drawn.sampling, [&](const auto& options) {
    return measured_group_ratio(drawn.transformer.parameters, drawn.start.distribution(),
                                drawn.transformer.blocks(), options);
  });
  return arrays_of_estimates(ratios, [](const numerics::Estimate& ratio) { return ratio; });
}

/// (numbers by their names, predicted losses).
nb::tuple fitted_losses(const ArrayLikeObject& lambda_a, const ArrayLikeObject& lambda_g,
                        const ArrayLikeObject& losses, const nb::dict& told) {
  const Vector<double> angles = vector_of(lambda_a, "lambda_a"), gradients = vector_of(lambda_g, "lambda_g"),
                       loss = vector_of(losses, "loss");
  if (angles.size() != loss.size() || gradients.size() != loss.size())
    throw ArgumentError(
        fmt::format("fit_losses: expected as many lambda_a and lambda_g as losses, got {}, {} and {}",
                    angles.size(), gradients.size(), loss.size()));
  std::vector<propagation::TrainingOutcome> outcomes;
  for (Index k = 0; k < loss.size(); ++k) outcomes.push_back({angles[k], gradients[k], loss[k]});
  const auto task = read_as("fit_losses", told, propagation::read_fit);
  const auto [fit, errors] = run_or_leave([outcomes, task](std::stop_token) {
    const auto found = propagation::fit_loss_predictor(outcomes, task.ceiling);
    return std::pair{found, propagation::bootstrap_errors(outcomes, found, task.bootstrap, task.seed)};
  });
  return nb::make_tuple(object_of(propagation::fit_results(fit, errors)),
                        array_of_each(outcomes, [&predictor = fit.predictor](const auto& outcome) {
                          return predictor(outcome.lambda_a, outcome.lambda_g);
                        }));
}

/// The table of a computation: see rows_of_table().
std::string table_of(const std::string& computation) {
  return rows_of_table(propagation::computation(computation).all());
}

void bind_closed_forms(nb::module_& module) {
  nb::class_<BlockMap>(module, "PropagationMap")
      .def(
          "__init__",
          [](BlockMap* self, const nb::dict& parameters) {
            new (self) BlockMap(transformer_of(parameters).parameters);
          },
          "parameters"_a)
      .def("state", &mapped_state, "part"_a, "state"_a)
      .def("gram", &mapped_gram, "part"_a, "gram"_a, "causal"_a)
      .def("jacobian", &jacobian_of, "part"_a, "state"_a)
      .def("state_trajectory", &state_trajectory, "start"_a, "depth"_a, "causal"_a)
      .def("gram_trajectory", &gram_trajectory, "start"_a, "depth"_a, "causal"_a)
      .def("fixed_points", &fixed_points_of);
  module.def("propagation_table", &table_of, "computation"_a);
  module.def(
      "check_parameters", [](const nb::dict& parameters) { static_cast<void>(transformer_of(parameters)); },
      "parameters"_a);
  module.def("block_of_parameters", &block_of, "parameters"_a, "causal"_a);
  module.def("propagation_trajectory", &trajectory_of, "told"_a, "progress"_a.none());
  module.def("propagation_exponents", &exponents_of, "told"_a);
  module.def("phase_name", &propagation::phase_name, "lambda_a"_a, "lambda_g"_a);
  module.def("width_spread", &width_spread_of, "told"_a);
  module.def("phase_diagram", &diagram_of, "told"_a, "x"_a, "y"_a, "threads"_a, "progress"_a.none());
  module.def("critical_lines", &lines_of, "told"_a, "x"_a, "y"_a);
  module.def("critical_values", &zeros_of, "which"_a, "free"_a, "told"_a);
  module.def("critical_initialisation", &critical_of, "told"_a);
  module.def("fit_losses", &fitted_losses, "lambda_a"_a, "lambda_g"_a, "loss"_a, "told"_a);
}

void bind_simulations(nb::module_& module) {
  nb::class_<Drawing>(module, "Drawing")
      .def(
          "__init__",
          [](Drawing* self, int threads, ProgressFunction progress) {
            new (self) Drawing{threads, std::move(progress)};
          },
          "threads"_a, "progress"_a.none());
  module.def("simulate_trajectory", &simulated_trajectory, "told"_a, "drawing"_a);
  module.def("simulate_samples", &simulated_samples, "told"_a, "depths"_a, "drawing"_a);
  module.def("simulate_angle", &simulated_angle, "told"_a, "drawing"_a);
  module.def("simulate_gradient", &simulated_gradient, "told"_a, "drawing"_a);
  module.def("simulate_groups", &simulated_groups, "told"_a, "drawing"_a);
}

}  // namespace

void bind_propagation(nb::module_& module) {
  bind_closed_forms(module);
  bind_simulations(module);
}

}  // namespace widelimit::python
