#include "cli/propagation/propagation_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/propagation/propagation_axes.hpp"
#include "cli/propagation/propagation_model.hpp"
#include "cli/propagation/propagation_pictures.hpp"
#include "cli/propagation/propagation_width.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/critical.hpp"

namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;

namespace {

void add_trajectory(CLI::App& parent, const RunContext& context) {
  struct Arguments {
    PropagationModel model;
    PropagationOutput output;
    double q0 = 1, c0 = 0;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = parent.add_subcommand("trajectory", "Norm and angle of tokens after each block");
  add_model_options(*command, arguments->model);
  add_block_option(*command, arguments->model);
  add_output_options(*command, arguments->output, "The path over the field of displacements");
  add_number(*command, "--q0", arguments->q0, "Squared norm / width at the start, above 0", positive_number(),
             "Q");
  add_number(*command, "--c0", arguments->c0,
             "Cosine of two tokens at the start, from -1 / (n - 1) to 1, together with --q0",
             number_from_to(-1, 1), "C");
  command->callback([arguments, command, &context] {
    check_start(*command);
    check_output(arguments->output, arguments->model);
    if (arguments->model.causal && !arguments->output.plot.empty())
      throw ArgumentError(
          "--plot: the field of displacements is that of tokens that are alike; leave it out with --causal");
    const BlockMap map(arguments->model.parameters());
    const Index depth = whole_depth(arguments->model.depth);
    const TokenState start = TokenState::from_cosine(arguments->q0, arguments->c0);
    naming_errors("--c0", [&] { (void)map.trajectory(start, 0); });
    const auto states = mean_trajectory(map, start, depth, arguments->model.mask());
    ResultTable table =
        table_of("trajectory", arguments->model, {{"q0", arguments->q0}, {"c0", arguments->c0}});
    table.columns = {"block", "q", "cosine", "gap"};
    table.summary["causal"] = arguments->model.causal;
    for (const TokenState& state : states)
      table.rows.push_back(
          {static_cast<double>(table.rows.size()), state.q, state.cosine(), state.cosine_gap()});
    double widest = largest_gap(states);
    // Fixed points are of tokens that are alike.
    if (!arguments->model.causal)
      for (const FixedPoint& point : fixed_points(map)) {
        widest = std::max(widest, point.state.cosine_gap());
        table.summary["fixed_points"].push_back({{"q", point.state.q},
                                                 {"cosine", point.state.cosine()},
                                                 {"largest_eigenvalue", point.largest_eigenvalue},
                                                 {"stable", point.stability == Stability::stable}});
      }
    write_block(arguments->model, map.parameters());
    write_table(arguments->output, table);
    warn_of_annealing(arguments->model, widest, depth,
                      start_options(arguments->model, arguments->q0, arguments->c0));
    if (!arguments->output.plot.empty())
      draw_output_file(arguments->output.plot, trajectory_script(map, states, {}), context.interrupt.token());
  });
}

std::string phase_name(double lambda_a, double lambda_g) {
  return fmt::format("{} angles, {} gradients", lambda_a > 0 ? "chaotic" : "ordered",
                     lambda_g > 0 ? "exploding" : "vanishing");
}

/// Where norms grow for ever: means over the network's depth, from norm 1.
json growth_summary(const PropagationModel& model) {
  const Parameters parameters = model.parameters();
  const Index depth = whole_depth(model.depth);
  const EqualTokenGrowth growth = equal_token_growth(parameters, 1, depth, model.mask());
  return {{"parameters", described(parameters)},
          {"depth", depth},
          {"start_norm", 1},
          {"norm_growth", growth.norm},
          {"lambda_a", std::expm1(growth.angle)},
          {"lambda_a_log", growth.angle},
          {"lambda_g", growth.gradient},
          {"one_block_from_1", one_block_exponent_limit(parameters, 1, model.mask())},
          {"largest_annealed_gap",
           largest_annealed_gap(static_cast<double>(parameters.tokens), parameters.sigma_A)},
          {"phase", phase_name(growth.angle, growth.gradient)},
          {"causal", model.causal}};
}

json exponent_summary(const PropagationModel& model, Formula formula) {
  const Parameters parameters = model.parameters();
  if (!has_fixed_norm(parameters)) {
    if (formula == Formula::published)
      throw ArgumentError(
          "--published: the printed formulas are those of a fixed point of the norm, which skip connections "
          "of 1 or more do not have; leave it out");
    return growth_summary(model);
  }
  const CollapsedPoint point = collapsed_point(parameters);
  ExponentOptions options;
  options.depth = model.depth;
  options.mask = model.mask();
  options.formula = formula;
  const double lambda_a = exponent(Exponent::angle, parameters, options);
  const double lambda_g = exponent(Exponent::gradient, parameters, options);
  const Eigen::Matrix2d jacobian = collapsed_jacobian(parameters);
  json summary = {{"parameters", described(parameters)},
                  {"depth", model.depth},
                  {"q_star", point.q_star},
                  {"q_M", point.q_M},
                  {"k_out", point.k_out},
                  {"f", point.f},
                  {"mu_delta", point.mu_delta},
                  {"mu_q", point.mu_q},
                  {"lambda_a", lambda_a},
                  {"lambda_a_log", std::log1p(lambda_a)},
                  {"lambda_g", lambda_g},
                  {"lambda_g_infinite_depth", infinite_gradient_exponent(point)},
                  {"one_block_from_1", one_block_exponent_limit(parameters, 1, options.mask)},
                  {"largest_annealed_gap",
                   largest_annealed_gap(static_cast<double>(parameters.tokens), parameters.sigma_A)},
                  {"jacobian_q_p", {{jacobian(0, 0), jacobian(0, 1)}, {jacobian(1, 0), jacobian(1, 1)}}},
                  {"phase", phase_name(lambda_a, lambda_g)},
                  {"causal", model.causal},
                  {"published", formula == Formula::published},
                  {"lambda_a_infinite_depth", model.causal ? causal_angle_exponent(parameters) : lambda_a}};
  // Both are derivatives of the map of tokens that are alike.
  if (model.causal) summary["mu_delta"] = summary["jacobian_q_p"] = nullptr;
  return summary;
}

/// Exponents are -infinity where a block leaves nothing, of which JSON makes null.
void note_infinite(ResultTable& table) {
  const auto is_infinite = [&](const char* name) {
    const json value = table.summary.value(name, json());
    return value.is_number_float() && std::isinf(value.get<double>());
  };
  if (is_infinite("lambda_a_log"))
    table.notes["lambda_a_log"] = "-infinity: one block makes all tokens equal";
  for (const char* name : {"lambda_g", "lambda_g_infinite_depth"})
    if (is_infinite(name)) table.notes[name] = "-infinity: a block leaves nothing of the gradient";
  if (is_infinite("one_block_from_1"))
    table.notes["one_block_from_1"] = "-infinity: one block makes all tokens equal";
}

constexpr const char* published_help =
    "The paper's equations 18 and 19 as printed, with q_* in the place of q_M";

Formula formula_of(bool published, const PropagationModel& model) {
  if (published && model.causal)
    throw ArgumentError("--published: the printed formulas are for full attention; leave it or --causal out");
  return published ? Formula::published : Formula::corrected;
}

void add_exponents(CLI::App& parent) {
  struct Arguments {
    PropagationModel model;
    PropagationOutput output;
    bool published = false;
    NetworkWidth width;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = parent.add_subcommand("exponents", "Angle and gradient exponents of one network");
  add_model_options(*command, arguments->model);
  add_block_option(*command, arguments->model);
  add_output_options(*command, arguments->output, "");
  command->add_flag("--published", arguments->published, published_help);
  add_width_option(*command, arguments->width);
  command->callback([arguments] {
    check_output(arguments->output, arguments->model);
    check_width(arguments->width, arguments->model);
    if (arguments->width.width && arguments->published)
      throw ArgumentError(
          "--width: networks scatter about the exponents as corrected; leave it or --published out");
    ResultTable table = table_of("exponents", arguments->model,
                                 with_width({{"published", arguments->published}}, arguments->width));
    table.summary = exponent_summary(arguments->model, formula_of(arguments->published, arguments->model));
    add_width_summary(table.summary, arguments->width, arguments->model.parameters(), arguments->model.depth);
    note_limit_depth(table, table.summary);
    note_infinite(table);
    write_block(arguments->model, arguments->model.parameters());
    write_table(arguments->output, table);
  });
}

struct PhaseArguments {
  PropagationModel model;
  PropagationOutput output;
  std::string x = "alpha:0.01:0.95", y = "sigma_w:0.2:4";
  bool one_block = false, published = false;
  int threads = 0;
  std::stop_token stop;
};

/// Says at how many points there are no exponents, and why.
void note_undefined(const PhaseDiagram& diagram, ResultTable& table) {
  const auto points = diagram.lambda_a.size();
  for (const auto& [name, values] :
       {std::pair{"lambda_a", &diagram.lambda_a}, std::pair{"lambda_g", &diagram.lambda_g}}) {
    const auto undefined = values->array().isNaN().count();
    const auto infinite = (!values->array().isFinite()).count() - undefined;
    std::string note;
    if (undefined > 0)
      note = fmt::format(
          "none at {} of {} points, where the numbers of the MLP leave the range of double: take smaller "
          "sigma_w, sigma_out or mlp_depth, or another activation",
          undefined, points);
    if (infinite > 0)
      note += fmt::format("{}infinite at {} of {} points, where a block leaves nothing or has no bound",
                          note.empty() ? "" : "; ", infinite, points);
    if (note.empty()) continue;
    table.notes[name] = note;
    warn("{}: {}", name, note);
  }
}

void run_phase(const PhaseArguments& arguments) {
  check_output(arguments.output);
  PropagationModel model = arguments.model;
  const Axis x = axis_of(arguments.x, "--x"), y = axis_of(arguments.y, "--y");
  exclude_axes(model, x, y);
  model.exclude("--sigma-A", no_score_scale);
  const Parameters parameters = model.parameters();
  ExponentOptions options;
  options.depth = model.depth;
  options.mask = model.mask();
  options.angle = arguments.one_block ? AngleMeasure::one_block : AngleMeasure::collapsed;
  options.formula = formula_of(arguments.published, model);
  PhaseOptions run;
  run.threads = arguments.threads;
  run.stop = arguments.stop;
  PhaseDiagram diagram;
  {
    ProgressBar bar("phase diagram", Counted::steps, run.threads);
    run.progress = [&](Index done, Index total) { bar.show(done, total); };
    diagram = phase_diagram(parameters, x, y, options, run);
  }
  const ParameterRectangle rectangle = rectangle_of(x, y);
  std::vector<BoundaryCurve> angle, gradient;
  std::vector<BoundaryPoint> crossings;
  if (has_boundaries(x, y, parameters)) {
    angle = trace_boundary(Exponent::angle, parameters, rectangle, options);
    gradient = trace_boundary(Exponent::gradient, parameters, rectangle, options);
    crossings = boundary_intersections(parameters, rectangle, options);
  }
  ResultTable table = table_of("phase", model,
                               {{"x", arguments.x},
                                {"y", arguments.y},
                                {"one_block", arguments.one_block},
                                {"published", arguments.published}});
  table.summary.update({{"depth", options.depth},
                        {"lambda_a_zero", curves_json(angle)},
                        {"lambda_g_zero", curves_json(gradient)}});
  table.columns = {std::string(coordinate_name(x.coordinate)), std::string(coordinate_name(y.coordinate)),
                   "lambda_a", "lambda_g"};
  note_undefined(diagram, table);
  for (const BoundaryPoint& point : crossings) table.summary["intersections"].push_back({point.x, point.y});
  for (Index row = 0; row < diagram.lambda_a.rows(); ++row)
    for (Index column = 0; column < diagram.lambda_a.cols(); ++column)
      table.rows.push_back({x.values[static_cast<std::size_t>(column)],
                            y.values[static_cast<std::size_t>(row)], diagram.lambda_a(row, column),
                            diagram.lambda_g(row, column)});
  write_table(arguments.output, table);
  if (!arguments.output.plot.empty())
    draw_output_file(arguments.output.plot, phase_script(diagram, angle, gradient), arguments.stop);
}

void add_phase(CLI::App& parent, const RunContext& context) {
  auto arguments = std::make_shared<PhaseArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command =
      parent.add_subcommand("phase", "Both exponents over two parameters, and where they vanish");
  add_model_options(*command, arguments->model);
  add_output_options(*command, arguments->output, "Both exponents with both boundaries");
  add_value(*command, "--x", arguments->x, "Horizontal axis [alpha:0.01:0.95:100]", "AXIS");
  add_value(*command, "--y", arguments->y, "Vertical axis [sigma_w:0.2:4:100]", "AXIS");
  add_number(*command, "--threads", arguments->threads, "Threads, 0 for all", thread_count(), "N");
  command->add_flag("--one-block", arguments->one_block,
                    "Angle growth of one block from norm 1, what the paper measures, for lambda_a");
  command->add_flag("--published", arguments->published, published_help);
  command
      ->add_option_function<std::string>(
          "--block",
          [](const std::string&) {
            throw ArgumentError(
                "--block: the blocks of a phase diagram differ from point to point; exponents --block writes "
                "that of one point, and propagation network --vary goes over the numbers of such a file");
          })
      ->group("");  // for its message
  command->footer(
      std::string(axis_help) +
      " Strengths of 0 have no boundary: begin above.\n\n"
      "There is no --block: blocks differ from point to point. propagation exponents --block writes that of "
      "one point, and propagation network --vary goes over the numbers of such a file.\n\n"
      "Example:\n"
      "  widelimit propagation phase --sigma-w 2 --x alpha_M:0.02:0.98 --y alpha_A:0.02:0.98 --plot "
      "phase.png");
  command->callback([arguments] { run_phase(*arguments); });
}

json initialisation_json(const CriticalInitialisation& found) {
  json result = described(found.parameters);
  result["lambda_a"] = found.lambda_a;
  result["lambda_g"] = found.lambda_g;
  result["log_gradient_growth"] = found.log_gradient_growth;
  return result;
}

struct CriticalArguments {
  PropagationModel model;
  PropagationOutput output;
  std::string free = "strengths-and-gain";
  double tolerance = 0.1;
  NetworkWidth width;
};

/// Nothing for "balanced".
std::optional<FreeParameters> free_parameters(const std::string& name) {
  static const std::map<std::string, std::optional<FreeParameters>> known{
      {"strengths-and-gain", FreeParameters::strengths_and_gain},
      {"sigma-w", FreeParameters::gain},
      {"alpha-M", FreeParameters::mlp_strength},
      {"alpha-A", FreeParameters::attention_strength},
      {"balanced", std::nullopt}};
  const auto found = known.find(name);
  if (found == known.end())
    throw ArgumentError(fmt::format(
        "--free: expected strengths-and-gain, sigma-w, alpha-M, alpha-A or balanced, got '{}'", name));
  return found->second;
}

/// What is found, or what that does not depend on.
void exclude_from_critical(PropagationModel& model, const std::string& name) {
  const std::string why = fmt::format("has no effect together with --free {}", name);
  const bool one_strength = name == "alpha-A" || name == "alpha-M";
  if (one_strength)
    model.exclude_strengths(name == "alpha-A", name == "alpha-M", why);
  else
    model.exclude("--sigma-w", why);
  if (name != "strengths-and-gain") model.exclude("--tolerance", why);
  model.exclude("--sigma-A", no_score_scale);
}

void run_critical(const CriticalArguments& arguments) {
  check_output(arguments.output, arguments.model);
  check_width(arguments.width, arguments.model);
  const std::optional<FreeParameters> free = free_parameters(arguments.free);
  PropagationModel model = arguments.model;
  exclude_from_critical(model, arguments.free);
  const Parameters parameters = model.parameters();
  const Index depth = whole_depth(model.depth);
  ResultTable table =
      table_of("critical", model,
               with_width({{"free", arguments.free}, {"tolerance", arguments.tolerance}}, arguments.width));
  const CriticalInitialisation found =
      free ? critical_initialisation(parameters, depth, *free, arguments.tolerance, model.mask())
           : balanced_initialisation(parameters, depth, 1, 1, model.mask());
  table.summary["critical"] = initialisation_json(found);
  add_width_summary(table.summary["critical"], arguments.width, found.parameters, model.depth);
  note_limit_depth(table, table.summary["critical"]);
  table.summary["depth"] = depth;
  write_block(model, found.parameters);
  write_table(arguments.output, table);
}

void add_critical(CLI::App& parent) {
  auto arguments = std::make_shared<CriticalArguments>();
  CLI::App* command = parent.add_subcommand("critical", "Initialisation for a network of given depth");
  add_model_options(*command, arguments->model);
  add_block_option(*command, arguments->model);
  add_output_options(*command, arguments->output, "");
  add_value(*command, "--free", arguments->free,
            "What may be chosen: strengths-and-gain | sigma-w | alpha-M | alpha-A, or balanced "
            "(sigma_w with lambda_g = -lambda_a) [strengths-and-gain]. Of strengths-and-gain the "
            "ratio of the given strengths is kept",
            "WHAT");
  add_number(*command, "--tolerance", arguments->tolerance,
             "Of strengths-and-gain: largest log growth of the squared gradient over the network, above 0",
             positive_number(), "T");
  add_width_option(*command, arguments->width);
  command->callback([arguments] { run_critical(*arguments); });
}

void fill_propagation_command(CLI::App& command, const RunContext& context) {
  command.require_subcommand(1);
  add_trajectory(command, context);
  add_exponents(command);
  add_phase(command, context);
  add_critical(command);
  add_propagation_fit_command(command);
  add_propagation_simulate_command(command, context);
  add_propagation_network_command(command, context);
  add_propagation_measure_command(command, context);
}

}  // namespace

const Command propagation_command{"propagation", "Norms, angles and gradients in random deep transformers",
                                  fill_propagation_command};

}  // namespace widelimit::cli
