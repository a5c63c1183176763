#include "cli/models/fit_search.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "cli/models/learning.hpp"
#include "cli/models/search_spec.hpp"
#include "cli/models/trial_table.hpp"
#include "cli/options/inference_options.hpp"
#include "cli/options/kernel_options.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/result_table.hpp"
#include "cli/output/result_text.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/score_gradient.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/store/input_facts.hpp"
#include "widelimit/store/sha256.hpp"

namespace widelimit::cli {
namespace {

/// The score of the regulariser that was chosen.
double best_score(const gp::Selection& selection, gp::Criterion criterion) {
  for (const gp::RegulariserScore& score : selection.scores)
    if (score.relative_regulariser == selection.best.value()) return score_by(score, criterion);
  return std::numeric_limits<double>::quiet_NaN();
}

/// Tries networks, one at a time, and tells about them.
template <typename Scalar>
class NetworkSearch {
 public:
  NetworkSearch(const SearchSpace& space, const SearchChoice& choice, const gp::LabelledInputs<Scalar>& train,
                const std::optional<gp::LabelledInputs<Scalar>>& validation, const gp::ModelOptions& options)
      : space_{space},
        choice_{choice},
        train_{train},
        validation_{validation},
        options_{options},
        criterion_{gp::fit_options(options).criterion},
        standardised_{gp::standardised_targets(
            train.y, options.class_names.empty() ? gp::TargetKind::numbers : gp::TargetKind::classes,
            gp::fit_options(options))} {}

  Network run(const Origin& origin, const Interrupt& interrupt) {
    gp::SearchOptions search_options{.trials = choice_.trials};
    if (!choice_.table.empty()) {
      table_.emplace(choice_.table, origin, space_.parameters(), criterion_name(criterion_));
      rows_ = table_->rows();
      search_options.known = table_->known();
      for (gp::Trial& trial : search_options.known) trial.score *= sign();
      if (!rows_.empty()) say("{} trials are known from {}\n", rows_.size(), choice_.table.string());
    }
    if (has_derivatives())
      search_options.gradient = [&](const std::vector<double>& values) {
        interrupt.check();
        return derivatives(values);
      };
    static_cast<void>(gp::search(
        space_.parameters(),
        [&](const std::vector<double>& values) {
          interrupt.check();
          return sign() * score(values);
        },
        search_options));
    const TrialRow& best = best_row();
    draw(best, interrupt);
    say("best of {} trials: {}\n", rows_.size(), text_of(best.values, best.score));
    say("{}", edges_text(best.values));
    return space_.network_with(best.values);
  }

 private:
  [[nodiscard]] double sign() const { return higher_is_better(criterion_) ? -1 : 1; }

  /// Whether numbers can change continuously, and the score is one that has derivatives by them.
  [[nodiscard]] bool has_derivatives() const {
    const bool of_criterion =
        criterion_ == gp::Criterion::evidence || criterion_ == gp::Criterion::leave_one_out;
    // Outputs with regularisers of their own have scores that are sums, those of classes left out are log losses, and
    // equal rows are one input: their derivatives are not built.
    const bool is_class = !options_.class_names.empty();
    const bool is_single = is_class || train_.y.cols() == 1;
    if (is_class && criterion_ == gp::Criterion::leave_one_out) return false;
    if (!options_.groups.empty() || gp::distinct_inputs(train_.x).repeats() > 0) return false;
    return of_criterion && is_single && options_.kind == gp::ModelKind::bayesian && !options_.flip &&
           std::none_of(space_.parameters().begin(), space_.parameters().end(),
                        [](const auto& parameter) { return parameter.scale == gp::SearchScale::integer; });
  }

  /// Of what gp::search() makes small; none where they cannot be computed.
  [[nodiscard]] std::vector<double> derivatives(const std::vector<double>& values) const {
    const auto row = std::find_if(rows_.begin(), rows_.end(),
                                  [&](const TrialRow& tried) { return tried.values == values; });
    std::vector<std::string> paths;
    for (const gp::SearchParameter& parameter : space_.parameters()) paths.push_back(parameter.name);
    try {
      std::vector<double> slopes = gp::score_gradient(
          space_.network_with(values), train_.x, standardised_, gp::RelativeRegulariser(row->regulariser),
          criterion_, paths, {.threads = options_.gram.threads, .stop = options_.gram.stop});
      for (double& slope : slopes) slope *= sign();
      return slopes;
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      say("the search continues without derivatives: {}\n", error.what());
      return {};
    }
  }

  /// Keeps what cannot be computed as a trial without a score.
  double score(const std::vector<double>& values) {
    const auto start = std::chrono::steady_clock::now();
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    TrialRow row{values, nan, nan, 0, ""};
    try {
      const std::vector<gp::Selection> selections =
          gp::Model::select(space_.network_with(values), train_, validation_, options_);
      row.score = 0;
      for (const gp::Selection& selection : selections) row.score += best_score(selection, criterion_);
      row.regulariser = selections.front().best.value();
    } catch (const Cancelled&) {
      throw;
    } catch (const NumericalError& error) {
      row.note = error.what();
    } catch (const NetworkError& error) {
      row.note = error.what();
    }
    row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    rows_.push_back(row);
    say("trial {}: {}{}\n", rows_.size(), text_of(values, row.score),
        row.note.empty() ? "" : ": " + row.note);
    flush_standard_output();
    if (table_) table_->add(row);
    return row.score;
  }

  [[nodiscard]] std::string text_of(const std::vector<double>& values, double score) const {
    std::string text = fmt::format("{} {:.6g}", criterion_name(criterion_), score);
    for (std::size_t i = 0; i < values.size(); ++i)
      text += fmt::format(", {} = {:.6g}", space_.parameters()[i].name, values[i]);
    return text;
  }

  /// A line for each parameter that lies at an end of its range, beyond which a better network may be.
  [[nodiscard]] std::string edges_text(const std::vector<double>& values) const {
    constexpr double near = 1e-3;  // Of the range.
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const gp::SearchParameter& parameter = space_.parameters()[i];
      const auto place = [&](double value) {
        return parameter.scale == gp::SearchScale::logarithmic ? std::log(value) : value;
      };
      const double low = place(parameter.lower), high = place(parameter.upper), at = place(values[i]);
      for (const bool is_upper : {false, true})
        if (std::abs(at - (is_upper ? high : low)) <= near * (high - low))
          text += fmt::format("{} = {:.6g} is the {} end of its range: a {} value may be better\n",
                              parameter.name, values[i], is_upper ? "upper" : "lower",
                              is_upper ? "larger" : "smaller");
    }
    return text;
  }

  /// The best of all rows, those of earlier searches too.
  [[nodiscard]] const TrialRow& best_row() const {
    const TrialRow* best = nullptr;
    for (const TrialRow& row : rows_)
      if (!std::isnan(row.score) && (best == nullptr || sign() * row.score < sign() * best->score))
        best = &row;
    if (best == nullptr)
      throw NumericalError(fmt::format("--search: none of {} networks could be computed", rows_.size()));
    return *best;
  }

  void draw(const TrialRow& best, const Interrupt& interrupt) const {
    if (choice_.plot.empty()) return;
    draw_output_file(choice_.plot,
                     trial_picture_script(rows_, best, space_.parameters(), criterion_name(criterion_)),
                     interrupt.token());
  }

  const SearchSpace& space_;
  const SearchChoice& choice_;
  const gp::LabelledInputs<Scalar>& train_;
  const std::optional<gp::LabelledInputs<Scalar>>& validation_;
  const gp::ModelOptions& options_;
  gp::Criterion criterion_;
  Matrix<double> standardised_;  ///< Training targets.
  std::optional<TrialTable> table_;
  std::vector<TrialRow> rows_;
};

}  // namespace

void add_search_options(CLI::App& command, SearchChoice& search) {
  add_value(command, "--search", search.specs,
            "Number of the network file to choose by --criterion, PATH=LOW:HIGH[:linear|log|integer], "
            "e.g. layers[0].weight_variance=0.5:4:log; may be repeated",
            "SPEC");
  add_value(
      command, "--trials", search.trials,
      fmt::format("Networks that --search tries, or fewer where it comes to an end [{}]", search.trials),
      whole_number(1, 100'000), "N");
  add_value(command, "--table", search.table,
            "CSV file of the trials, replaced after each; a search that was stopped continues from it",
            "FILE");
  add_picture_option(command, "--plot", search.plot, "Picture of the trials");
}

void check_search_usage(const CLI::App& command, const SearchChoice& search) {
  for (const char* option : {"--trials", "--table", "--plot"})
    if (!search.is_asked() && command.count(option) > 0)
      throw CLI::ValidationError(option, "for --search only");
}

void require_named_network(const SearchChoice& search, const std::string& network) {
  if (search.is_asked() && network == automatic_argument)
    throw CLI::ValidationError(
        "--search", "is for the numbers of a network that you name, and auto chooses one: give --network");
}

namespace {

template <typename Scalar>
nlohmann::ordered_json described(const gp::LabelledInputs<Scalar>& data) {
  const auto bytes = static_cast<std::size_t>(data.y.size()) * sizeof(double);
  return {{"x", store::batch_facts(data.x)}, {"y_sha256", store::sha256_of(data.y.data(), bytes)}};
}

/// What a table of trials belongs to: all that their scores depend on.
template <typename Scalar>
Origin origin_of(const Network& network, const SearchChoice& choice, const gp::LabelledInputs<Scalar>& train,
                 const std::optional<gp::LabelledInputs<Scalar>>& validation,
                 const gp::ModelOptions& options) {
  const bool trained = options.kind == gp::ModelKind::trained;
  nlohmann::ordered_json configuration{
      {"network", nlohmann::ordered_json::parse(to_json(network))},
      {"train", described(train)},
      {"precision", to_string(std::is_same_v<Scalar, float> ? Precision::float32 : Precision::float64)},
      {"kernel", trained ? "ntk" : "nngp"},
      {"criterion", criterion_name(gp::fit_options(options).criterion)},
      {"search", choice.specs}};
  if (validation) configuration["validation"] = described(*validation);
  if (options.noise) configuration["regulariser"] = gp::noise_variance(*options.noise, 1);
  if (options.grid != gp::regulariser_grid()) configuration["candidates"] = options.grid;
  if (options.flip) configuration["flip"] = true;
  if (options.solver == gp::Solver::conjugate_gradients) configuration["solver"] = "cg";
  return {.command = "--search", .configuration = std::move(configuration)};
}

}  // namespace

template <typename Scalar>
Network searched_network(const Network& given, const SearchChoice& choice, const GpTask<Scalar>& task,
                         gp::ModelOptions options, const Interrupt& interrupt) {
  if (!choice.is_asked()) return given;
  const gp::LabelledInputs<Scalar> train{task.train.inputs(), *task.train.targets};
  std::optional<gp::LabelledInputs<Scalar>> validation;
  if (task.validation) validation = {task.validation->inputs(), *task.validation->targets};
  const Origin origin = origin_of(given, choice, train, validation, options);
  if (options.noise) options.grid = {gp::noise_variance(*options.noise, 1)};
  options.noise.reset();
  // Numbers that are searched for are the network's before anything is learned from the inputs.
  options.learning = {};
  // Stores are those of the network that is found.
  options.store_folder.reset();
  const SearchSpace space(given, choice.specs);
  return NetworkSearch<Scalar>(space, choice, train, validation, options).run(origin, interrupt);
}

template Network searched_network(const Network&, const SearchChoice&, const GpTask<float>&, gp::ModelOptions,
                                  const Interrupt&);
template Network searched_network(const Network&, const SearchChoice&, const GpTask<double>&,
                                  gp::ModelOptions, const Interrupt&);

}  // namespace widelimit::cli
