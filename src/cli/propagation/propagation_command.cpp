#include "cli/propagation/propagation_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/propagation/propagation_axes.hpp"
#include "cli/propagation/propagation_model.hpp"
#include "cli/propagation/propagation_pictures.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/results.hpp"

namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;

namespace {

struct CommandArguments {
  PropagationOptions options;
  PropagationOutput output;
  std::stop_token stop;
};

/// A subcommand with the options of a computation, and where its results go.
CLI::App* add_command(CLI::App& parent, const char* name, const char* about, const char* computation,
                      CommandArguments& arguments, const std::string& picture = "") {
  CLI::App* command = parent.add_subcommand(name, about);
  arguments.options.add_computation(*command, computation);
  add_output_options(*command, arguments.output, picture);
  return command;
}

void run_trajectory(const CommandArguments& arguments) {
  const PropagationOptions& options = arguments.options;
  check_start(options);
  check_output(arguments.output, options);
  const auto [transformer, tokens] = options.read([](ConfigReader& fields) {
    const Transformer read = read_transformer(fields);
    return std::pair(read, read_start(fields));
  });
  const bool causal = transformer.mask == AttentionMask::causal;
  if (causal && !arguments.output.plot.empty())
    throw ArgumentError(
        "--plot: the field of displacements is that of tokens that are alike; leave it out with --causal");
  const BlockMap map(transformer.parameters);
  const Index depth = transformer.blocks();
  const double q0 = *tokens.q0, c0 = tokens.c0;
  const TokenState start = TokenState::from_cosine(q0, c0);
  naming_errors("--c0", [&] { (void)map.trajectory(start, 0); });
  const auto states = mean_trajectory(map, start, depth, transformer.mask);
  ResultTable table = table_of("trajectory", options, transformer, {{"q0", q0}, {"c0", c0}});
  table.columns = {"block", "q", "cosine", "gap"};
  table.summary["causal"] = causal;
  for (const TokenState& state : states)
    table.rows.push_back(
        {static_cast<double>(table.rows.size()), state.q, state.cosine(), state.cosine_gap()});
  double widest = largest_gap(states);
  // Fixed points are of tokens that are alike.
  if (!causal)
    for (const FixedPoint& point : fixed_points(map)) {
      widest = std::max(widest, point.state.cosine_gap());
      table.summary["fixed_points"].push_back({{"q", point.state.q},
                                               {"cosine", point.state.cosine()},
                                               {"largest_eigenvalue", point.largest_eigenvalue},
                                               {"stable", point.stability == Stability::stable}});
    }
  write_block(options, transformer);
  write_table(arguments.output, table);
  warn_of_annealing(options, transformer, widest, depth, start_options(transformer, q0, c0));
  if (!arguments.output.plot.empty())
    draw_output_file(arguments.output.plot, gnuplot_script(trajectory_picture(map, states, {})),
                     arguments.stop);
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

/// Warns where networks of the summary's width are deeper than their limit says anything of single ones.
void warn_of_scatter(const json& summary, Index blocks) {
  if (!summary.contains("width") || summary.at("limit_depth").is_null()) return;
  const auto limit = summary.at("limit_depth").get<Index>();
  if (blocks <= limit) return;
  warn(
      "--width: networks of {} blocks of width {} scatter too much for their limit to describe single ones "
      "(the "
      "logarithms of squared gradients have the variance {:.3g}, those of gaps {:.3g}): take {}",
      blocks, summary.at("width").get<Index>(), summary.at("gradient_variance").get<double>(),
      summary.at("angle_variance").get<double>(),
      limit > 0 ? fmt::format("at most {} blocks, or a larger width", limit) : "a larger width");
}

/// Says of the summary's depth and intervals why they are null, where they are.
void note_scatter(ResultTable& table, const json& summary) {
  if (!summary.contains("width")) return;
  if (summary.at("limit_depth").is_null())
    table.notes["limit_depth"] = fmt::format("beyond {} blocks", deepest_limit);
  if (summary.at("lambda_a_low").is_null())
    for (const char* name : {"lambda_a_low", "lambda_a_high"})
      table.notes[name] = "one block makes all tokens equal, at any width";
}

/// The settings of a run with the width among them, if it was given.
json with_width(json settings, std::optional<Index> width) {
  if (width) settings["width"] = *width;
  return settings;
}

void run_exponents(const CommandArguments& arguments) {
  const PropagationOptions& options = arguments.options;
  check_output(arguments.output, options);
  const ExponentTask task = options.read(read_exponents);
  const bool published = task.formula == Formula::published;
  ResultTable table =
      table_of("exponents", options, task.transformer, with_width({{"published", published}}, task.width));
  table.summary.update(exponent_results(task));
  warn_of_scatter(table.summary, task.transformer.blocks());
  note_scatter(table, table.summary);
  note_infinite(table);
  write_block(options, task.transformer);
  write_table(arguments.output, table);
}

struct PhaseArguments : CommandArguments {
  std::string x = "alpha:0.01:0.95", y = "sigma_w:0.2:4";
  int threads = 0;
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
  PropagationOptions given = arguments.options;
  const Axis x = axis_of(arguments.x, "--x"), y = axis_of(arguments.y, "--y");
  exclude_axes(given, x, y);
  given.exclude("sigma_A", no_score_scale);
  const auto [transformer, options] = given.read([](ConfigReader& fields) {
    const Transformer read = read_transformer(fields);
    return std::pair(read, read_exponent_options(fields, read));
  });
  PhaseOptions run{.threads = arguments.threads, .stop = arguments.stop};
  PhaseDiagram diagram;
  {
    ProgressBar bar("phase diagram", Counted::steps, run.threads);
    run.progress = [&](Index done, Index total) { bar.show(done, total); };
    diagram = phase_diagram(transformer.parameters, x, y, options, run);
  }
  const ParameterRectangle rectangle = rectangle_of(x, y);
  std::vector<BoundaryCurve> angle, gradient;
  std::vector<BoundaryPoint> crossings;
  if (has_boundaries(x, y, transformer)) {
    angle = trace_boundary(Exponent::angle, transformer.parameters, rectangle, options);
    gradient = trace_boundary(Exponent::gradient, transformer.parameters, rectangle, options);
    crossings = boundary_intersections(transformer.parameters, rectangle, options);
  }
  ResultTable table = table_of("phase", given, transformer,
                               {{"x", arguments.x},
                                {"y", arguments.y},
                                {"one_block", options.angle == AngleMeasure::one_block},
                                {"published", options.formula == Formula::published}});
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
    draw_output_file(arguments.output.plot, gnuplot_script(phase_picture(diagram, angle, gradient)),
                     arguments.stop);
}

void add_phase(CLI::App& parent, const RunContext& context) {
  auto arguments = std::make_shared<PhaseArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command =
      add_command(parent, "phase", "Both exponents over two parameters, and where they vanish",
                  "phase_diagram", *arguments, "Both exponents with both boundaries");
  add_value(*command, "--x", arguments->x, "Horizontal axis [alpha:0.01:0.95:100]", "AXIS");
  add_value(*command, "--y", arguments->y, "Vertical axis [sigma_w:0.2:4:100]", "AXIS");
  add_number(*command, "--threads", arguments->threads, "Threads, 0 for all", thread_count(), "N");
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

/// What is found, or what that does not depend on; `name`: of what is free.
void exclude_from_critical(PropagationOptions& options, const std::string& name) {
  std::string word = name;
  std::ranges::replace(word, '_', '-');
  const std::string why = fmt::format("has no effect together with --free {}", word);
  if (name == "alpha_A" || name == "alpha_M")
    options.exclude_both("alpha", name == "alpha_A", name == "alpha_M", why);
  else
    options.exclude("sigma_w", why);
  if (name != "strengths_and_gain") options.exclude("tolerance", why);
  options.exclude("sigma_A", no_score_scale);
}

void run_critical(const CommandArguments& arguments) {
  check_output(arguments.output, arguments.options);
  PropagationOptions options = arguments.options;
  std::string free = options.has("free") ? options.given("free").get<std::string>() : "strengths_and_gain";
  exclude_from_critical(options, free);
  const CriticalTask task = options.read(read_critical);
  std::ranges::replace(free, '_', '-');
  ResultTable table = table_of("critical", options, task.transformer,
                               with_width({{"free", free}, {"tolerance", task.tolerance}}, task.width));
  const CriticalInitialisation found = task.found();
  const Index depth = task.transformer.blocks();
  json& critical = table.summary["critical"] = described(found.parameters);
  critical.update({{"lambda_a", found.lambda_a},
                   {"lambda_g", found.lambda_g},
                   {"log_gradient_growth", found.log_gradient_growth}});
  if (task.width) critical.update(width_results(found.parameters, *task.width, depth));
  warn_of_scatter(critical, depth);
  note_scatter(table, critical);
  table.summary["depth"] = depth;
  Transformer chosen = task.transformer;
  chosen.parameters = found.parameters;
  write_block(options, chosen);
  write_table(arguments.output, table);
}

/// A command whose results are those of one block.
void add_of_block(CLI::App& parent, const char* name, const char* about, void (*run)(const CommandArguments&),
                  const RunContext& context, const std::string& picture = "") {
  auto arguments = std::make_shared<CommandArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command = add_command(parent, name, about, name, *arguments, picture);
  arguments->options.add_block(*command);
  command->callback([arguments, run] { run(*arguments); });
}

void fill_propagation_command(CLI::App& command, const RunContext& context) {
  command.require_subcommand(1);
  add_of_block(command, "trajectory", "Norm and angle of tokens after each block", run_trajectory, context,
               "The path over the field of displacements");
  add_of_block(command, "exponents", "Angle and gradient exponents of one network", run_exponents, context);
  add_phase(command, context);
  add_of_block(command, "critical", "Initialisation for a network of given depth", run_critical, context);
  add_propagation_fit_command(command);
  add_propagation_simulate_command(command, context);
  add_propagation_network_command(command, context);
  add_propagation_measure_command(command, context);
}

}  // namespace

const Command propagation_command{"propagation", "Norms, angles and gradients in random deep transformers",
                                  fill_propagation_command};

}  // namespace widelimit::cli
