
#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/propagation/propagation_axes.hpp"
#include "cli/propagation/propagation_command.hpp"
#include "cli/propagation/propagation_pictures.hpp"
#include "widelimit/propagation/simulated_phase.hpp"

/// Both exponents over two parameters, theory and networks of finite width side by side.
namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;

namespace {

constexpr Index points_a_side = 8;

struct SimulatePhaseArguments {
  PropagationOptions options;
  PropagationOutput output;
  std::string x = "alpha:0.05:0.95", y = "sigma_w:0.2:4";
  int threads = 0;
  std::stop_token stop;
};

using Compared = ComparedExponent ComparedPoint::*;

/// Means over all points.
json agreement(const std::vector<ComparedPoint>& points, Compared which) {
  double difference = 0, z = 0, squares = 0;
  for (const ComparedPoint& point : points) {
    const ComparedExponent& one = point.*which;
    difference += one.networks.value - one.theory;
    z += one.z();
    squares += one.z() * one.z();
  }
  const auto count = static_cast<double>(points.size());
  return {{"mean_difference", difference / count},
          {"mean_z", z / count},
          {"root_mean_square_z", std::sqrt(squares / count)}};
}

SimulatedPhase::Compared grid_of(const std::vector<ComparedPoint>& points, Compared which, const Axis& x,
                                 const Axis& y, std::vector<BoundaryCurve> zeros) {
  const auto rows = static_cast<Index>(y.values.size()), columns = static_cast<Index>(x.values.size());
  SimulatedPhase::Compared grid{Matrix<double>(rows, columns), Matrix<double>(rows, columns),
                                Matrix<double>(rows, columns), std::move(zeros)};
  for (Index i = 0; i < rows * columns; ++i) {
    const ComparedExponent& one = points[static_cast<std::size_t>(i)].*which;
    grid.theory.data()[i] = one.theory;
    grid.networks.data()[i] = one.networks.value;
    grid.z.data()[i] = one.z();
  }
  return grid;
}

void run_simulate_phase(const SimulatePhaseArguments& arguments) {
  check_output(arguments.output);
  PropagationOptions given = arguments.options;
  const Axis x = axis_of(arguments.x, "--x", points_a_side), y = axis_of(arguments.y, "--y", points_a_side);
  exclude_axes(given, x, y);
  SimulatedPhaseTask task = given.read(read_simulated_phase);
  task.sampling.threads = arguments.threads;
  task.sampling.stop = arguments.stop;
  const Transformer& transformer = task.transformer;
  ExponentOptions options = transformer.exponent_options();
  options.angle = task.angle;
  std::vector<ComparedPoint> points;
  {
    ProgressBar bar("networks", Counted::steps, arguments.threads);
    task.sampling.progress = [&bar](Index done, Index total) { bar.show(done, total); };
    points = simulated_phase(task, x, y);
  }
  const bool one_block = task.angle == AngleMeasure::one_block;
  std::vector<BoundaryCurve> angle, gradient;
  if (has_boundaries(x, y, transformer)) {
    // From the fixed point under a causal mask one block's angles have no exponent of their own.
    if (one_block || transformer.mask == AttentionMask::full)
      angle = trace_boundary(Exponent::angle, transformer.parameters, rectangle_of(x, y), options);
    gradient = trace_boundary(Exponent::gradient, transformer.parameters, rectangle_of(x, y), options);
  }
  ResultTable table = table_of("simulate phase", given, transformer,
                               {{"x", arguments.x},
                                {"y", arguments.y},
                                {"width", task.sampling.width},
                                {"networks", task.sampling.networks},
                                {"c0", task.c0},
                                {"one_block", one_block}});
  table.origin.seed = task.sampling.seed;
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
    for (const ComparedExponent& one : {points[i].angle, points[i].gradient})
      for (const double value : {one.theory, one.networks.value, one.networks.standard_error, one.z()})
        table.rows.back().push_back(value);
  }
  write_table(arguments.output, table);
  if (arguments.output.plot.empty()) return;
  const SimulatedPhase phase{x, y, grid_of(points, &ComparedPoint::angle, x, y, angle),
                             grid_of(points, &ComparedPoint::gradient, x, y, gradient)};
  draw_output_file(arguments.output.plot, gnuplot_script(simulated_phase_picture(phase)), arguments.stop);
}

}  // namespace

void add_propagation_simulate_phase_command(CLI::App& simulate, const RunContext& context) {
  auto arguments = std::make_shared<SimulatePhaseArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command = simulate.add_subcommand(
      "phase", "Both exponents over two parameters, theory and networks side by side");
  arguments->options.add_computation(*command, "simulate_phase");
  add_output_options(*command, arguments->output, "Theory, networks and z-scores of both exponents");
  add_value(*command, "--x", arguments->x, "Horizontal axis [alpha:0.05:0.95:8]", "AXIS");
  add_value(*command, "--y", arguments->y, "Vertical axis [sigma_w:0.2:4:8]", "AXIS");
  add_threads_option(*command, arguments->threads);
  command->footer(std::string(axis_help) +
                  " 8 values without COUNT. Angles grow in one block, gradients from equal tokens at the "
                  "fixed point through all.\n\nExample:\n"
                  "  widelimit propagation simulate phase --tokens 64 --one-block --plot phase.png");
  command->callback([arguments] { run_simulate_phase(*arguments); });
}

}  // namespace widelimit::cli
