#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/propagation/propagation_axes.hpp"
#include "cli/propagation/propagation_command.hpp"
#include "cli/propagation/propagation_pictures.hpp"
#include "widelimit/propagation/estimators.hpp"
#include "widelimit/propagation/exponent_at.hpp"

/// Both exponents over two parameters, theory and networks of finite width side by side.
namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;
using numerics::Estimate;

namespace {

constexpr Index points_a_side = 8;

struct SimulatePhaseArguments {
  PropagationModel model;
  PropagationOutput output;
  std::string x = "alpha:0.05:0.95", y = "sigma_w:0.2:4";
  SampledNetworks sampled{.networks = 8};
  double c0 = 0.99;
  bool one_block = false;
  std::stop_token stop;
};

/// Networks of each point are its own.
std::uint64_t seed_of_point(std::uint64_t seed, Index point) {
  return seed ^ (0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(point) + 1));
}

struct Compared {
  double theory;
  Estimate networks;
  /// Nothing where the networks do not scatter.
  [[nodiscard]] double z() const { return (networks.value - theory) / networks.standard_error; }
};

struct ComparedPoint {
  Compared angle, gradient;
};

ComparedPoint compare_at(const SimulatePhaseArguments& arguments, const ParameterPoint& point,
                         const propagation::SampleOptions& options) {
  const Parameters& parameters = point.parameters;
  const double start = equal_tokens_norm(parameters), q0 = arguments.one_block ? 1 : start;
  const double angle = options.mask == AttentionMask::causal
                           ? one_block_exponent_limit(parameters, q0, options.mask)
                           : one_block_exponent(BlockMap(parameters), q0, 1 - arguments.c0);
  const Estimate measured_angle = measured_angle_exponent(parameters, q0, arguments.c0, options);
  const MeasuredGradient gradient = measured_gradient_exponent(parameters, TokenDistribution::equal(start),
                                                               whole_depth(point.options.depth), options);
  return {{angle, measured_angle}, {exponent_at(Exponent::gradient, point), gradient.log_of_mean}};
}

/// Both exponents at every point, rows of y from below.
std::vector<ComparedPoint> compare(const SimulatePhaseArguments& arguments, const ParameterPoint& base,
                                   const Axis& x, const Axis& y) {
  ProgressBar bar("networks", Counted::steps, arguments.sampled.threads);
  const auto points = static_cast<Index>(x.values.size() * y.values.size());
  propagation::SampleOptions options;
  options.width = arguments.sampled.width;
  options.networks = arguments.sampled.networks;
  options.mask = arguments.model.mask();
  options.threads = arguments.sampled.threads;
  options.stop = arguments.stop;
  std::vector<ComparedPoint> compared;
  for (const double vertical : y.values)
    for (const double horizontal : x.values) {
      ParameterPoint point = base;
      set_coordinate(point, x.coordinate, horizontal);
      set_coordinate(point, y.coordinate, vertical);
      const auto done = static_cast<Index>(compared.size());
      options.seed = seed_of_point(arguments.sampled.seed, done);
      compared.push_back(compare_at(arguments, point, options));
      bar.show((done + 1) * arguments.sampled.networks, points * arguments.sampled.networks);
    }
  return compared;
}

/// Means over all points.
json agreement(const std::vector<ComparedPoint>& points, Compared ComparedPoint::*which) {
  double difference = 0, z = 0, squares = 0;
  for (const ComparedPoint& point : points) {
    const Compared& one = point.*which;
    difference += one.networks.value - one.theory;
    z += one.z();
    squares += one.z() * one.z();
  }
  const auto count = static_cast<double>(points.size());
  return {{"mean_difference", difference / count},
          {"mean_z", z / count},
          {"root_mean_square_z", std::sqrt(squares / count)}};
}

SimulatedPhase::Compared grid_of(const std::vector<ComparedPoint>& points, Compared ComparedPoint::*which,
                                 const Axis& x, const Axis& y, std::vector<BoundaryCurve> zeros) {
  const auto rows = static_cast<Index>(y.values.size()), columns = static_cast<Index>(x.values.size());
  SimulatedPhase::Compared grid{Matrix<double>(rows, columns), Matrix<double>(rows, columns),
                                Matrix<double>(rows, columns), std::move(zeros)};
  for (Index i = 0; i < rows * columns; ++i) {
    const Compared& one = points[static_cast<std::size_t>(i)].*which;
    grid.theory.data()[i] = one.theory;
    grid.networks.data()[i] = one.networks.value;
    grid.z.data()[i] = one.z();
  }
  return grid;
}

void run_simulate_phase(const SimulatePhaseArguments& arguments) {
  check_output(arguments.output);
  PropagationModel model = arguments.model;
  const Axis x = axis_of(arguments.x, "--x", points_a_side), y = axis_of(arguments.y, "--y", points_a_side);
  exclude_axes(model, x, y);
  ExponentOptions options;
  options.depth = static_cast<double>(whole_depth(model.depth));
  options.mask = model.mask();
  options.angle = arguments.one_block ? AngleMeasure::one_block : AngleMeasure::collapsed;
  const Parameters parameters = model.parameters();
  const ParameterPoint base = parameter_point(parameters, options);
  const std::vector<ComparedPoint> points = compare(arguments, base, x, y);
  std::vector<BoundaryCurve> angle, gradient;
  if (has_boundaries(x, y, parameters)) {
    // From the fixed point under a causal mask one block's angles have no exponent of their own.
    if (arguments.one_block || !model.causal)
      angle = trace_boundary(Exponent::angle, parameters, rectangle_of(x, y), options);
    gradient = trace_boundary(Exponent::gradient, parameters, rectangle_of(x, y), options);
  }
  PropagationTable table = table_of("simulate phase", model,
                                    {{"x", arguments.x},
                                     {"y", arguments.y},
                                     {"width", arguments.sampled.width},
                                     {"networks", arguments.sampled.networks},
                                     {"c0", arguments.c0},
                                     {"one_block", arguments.one_block}});
  table.origin.seed = arguments.sampled.seed;
  table.summary.update({{"depth", options.depth},
                        {"angle", agreement(points, &ComparedPoint::angle)},
                        {"gradient", agreement(points, &ComparedPoint::gradient)},
                        {"angle_zero", curves_json(angle)},
                        {"gradient_zero", curves_json(gradient)}});
  table.columns = {std::string(coordinate_name(x.coordinate)),
                   std::string(coordinate_name(y.coordinate)),
                   "angle_theory",
                   "angle",
                   "angle_error",
                   "angle_z",
                   "gradient_theory",
                   "gradient",
                   "gradient_error",
                   "gradient_z"};
  for (std::size_t i = 0; i < points.size(); ++i) {
    table.rows.push_back({x.values[i % x.values.size()], y.values[i / x.values.size()]});
    for (const Compared& one : {points[i].angle, points[i].gradient})
      for (const double value : {one.theory, one.networks.value, one.networks.standard_error, one.z()})
        table.rows.back().push_back(value);
  }
  write_table(arguments.output, table);
  if (arguments.output.plot.empty()) return;
  const SimulatedPhase phase{x, y, grid_of(points, &ComparedPoint::angle, x, y, angle),
                             grid_of(points, &ComparedPoint::gradient, x, y, gradient)};
  draw_output_file(arguments.output.plot, simulated_phase_script(phase), arguments.stop);
}

}  // namespace

void add_propagation_simulate_phase_command(CLI::App& simulate, const RunContext& context) {
  auto arguments = std::make_shared<SimulatePhaseArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command = simulate.add_subcommand(
      "phase", "Both exponents over two parameters, theory and networks side by side");
  add_model_options(*command, arguments->model);
  add_output_options(*command, arguments->output, "Theory, networks and z-scores of both exponents");
  command->add_option("--x", arguments->x, "Horizontal axis [alpha:0.05:0.95:8]")->type_name("AXIS");
  command->add_option("--y", arguments->y, "Vertical axis [sigma_w:0.2:4:8]")->type_name("AXIS");
  add_sampling_options(*command, arguments->sampled, 2, "Networks at each point");
  add_number(*command, "--c0", arguments->c0, "Cosine of tokens whose angles grow, from 0 to 1",
             number_from_to(0, 1), "C");
  command->add_flag("--one-block", arguments->one_block,
                    "Angles from norm 1, as the paper measures them, not from the fixed point");
  command->footer(
      std::string(axis_help) +
      " 8 values without COUNT. Angles grow in one block, gradients from equal tokens at the fixed "
      "point through all.\n\nExample:\n"
      "  widelimit propagation simulate phase --tokens 64 --one-block --plot phase.png");
  command->callback([arguments] { run_simulate_phase(*arguments); });
}

}  // namespace widelimit::cli
