#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "specialization/experiments/shared.hpp"
#include "specialization/experiments/times_over_scales.hpp"
#include "widelimit/specialization/experiments.hpp"

namespace widelimit::specialization {

using nlohmann::json;

namespace {

/// Slope of y against x by least squares; NaN for fewer than two different x.
double least_squares_slope(const std::vector<std::pair<double, double>>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [a, b] : points) {
    n += 1;
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  const double spread = n * xx - x * x;
  return spread > 1e-12 * n * xx ? (n * xy - x * y) / spread : std::nan("");
}

/// Mean and variance (with n - 1) of times that were all reached, of two runs or more.
std::optional<std::pair<double, double>> moments_of(const std::vector<std::optional<double>>& times) {
  if (times.size() < 2 || count_reached(times) < std::ssize(times)) return std::nullopt;
  double mean = 0, squares = 0;
  for (const auto& time : times) mean += *time / static_cast<double>(times.size());
  for (const auto& time : times) squares += (*time - mean) * (*time - mean);
  return std::pair{mean, squares / static_cast<double>(times.size() - 1)};
}

}  // namespace

void TimesOverScales::add(double scale, std::optional<double> time) {
  if (scales_.empty() || scale != scales_.back().first) scales_.push_back({scale, {}});
  scales_.back().second.push_back(time);
}

json TimesOverScales::summary() const {
  json result{{"slope", nullptr}, {"times", json::array()}};
  std::vector<std::pair<double, double>> complete;  // What is left out is late, and would flatten the slope.
  for (const auto& [scale, times] : scales_) {
    if (count_reached(times) == std::ssize(times))
      for (const auto& time : times) complete.emplace_back(scale, *time);
    json spread = times_spread(times);
    spread["reached"] = count_reached(times);
    const auto moments = moments_of(times);
    spread["mean"] = moments ? json(moments->first) : json();
    spread["variance"] = moments ? json(moments->second) : json();
    for (const auto& time : times) spread["values"].push_back(number_or_null(time));
    result["times"].push_back(std::move(spread));
  }
  if (const double slope = least_squares_slope(complete); !std::isnan(slope)) result["slope"] = slope;
  return result;
}

namespace {

/// A table of times over dimensions, "etas" and "starts", a row a start: eta, start, ln(sqrt(D) / eta), and each time
/// beside its ratio to that logarithm.
class TimesTable {
 public:
  /// `names` of the quantities follow "QUANTITY_" in the columns unless they are empty.
  TimesTable(ConfigReader& fields, const std::string& quantity, const std::vector<std::string>& names)
      : fields_{fields}, results_(seeded(fields)), quantities_(names.size()) {
    std::vector<Column> columns{{.name = "dimension", .in_files = fields.has("dimensions")},
                                {.name = "eta"},
                                {.name = "start"},
                                {.name = "log_scale"}};
    for (const std::string& name : names)
      for (const std::string& of : {quantity, std::string("ratio")})
        columns.push_back({.name = name.empty() ? of : of + "_" + name});
    results_.table = Table(std::move(columns));
    results_.tables["ends"] = Table({{.name = "end"}});
  }

  /// Adds a row for each of the sizes and starts in these dimensions: run(dimension, eta, seed) gives FirstTimes of
  /// some or all quantities.
  template <typename Run>
  void fill(const std::vector<Index>& dimensions, const results::Control& control, const Run& run) {
    const Index starts = fields_.integer("starts");
    const std::vector<double> etas = fields_.numbers("etas");
    const auto all = std::ssize(dimensions) * std::ssize(etas) * starts;
    for (const Index dimension : dimensions)
      for (const double eta : etas)
        for (Index start = 0; start < starts; ++start) {
          append(dimension, eta, start,
                 run(dimension, eta, read_seed(fields_) + static_cast<std::uint64_t>(start)));
          if (control.runs_done) control.runs_done(static_cast<std::ptrdiff_t>(results_.table.rows()), all);
        }
  }

  [[nodiscard]] json summary_of(std::size_t quantity) const { return quantities_[quantity].summary(); }

  /// With a summary: how many runs ended because everything had specialised, at rest, or at tau, and notes on the
  /// times that were not reached.
  [[nodiscard]] Results results(json summary) {
    for (std::size_t k = 0; k < end_names.size(); ++k) summary["ends"][end_names[k]] = ends_[k];
    results_.summary = std::move(summary);
    for (const Column& column : results_.table.columns()) {
      const auto missing =
          std::ranges::count_if(column.numbers, [](double time) { return std::isnan(time); });
      if (missing > 0)
        results_.notes[column.name] = fmt::format("not reached in {} of {} runs; `ends` says how they ended",
                                                  missing, results_.table.rows());
    }
    return std::move(results_);
  }

 private:
  static constexpr std::array<const char*, 3> end_names = {"specialised", "rest", "tau"};

  void append(Index dimension, double eta, Index start, const std::vector<FirstTimes>& runs) {
    const double scale = std::log(std::sqrt(static_cast<double>(dimension)) / eta);
    Table row({{.name = "dimension"}, {.name = "eta"}, {.name = "start"}, {.name = "log_scale"}});
    row.add(static_cast<double>(dimension), eta, static_cast<double>(start), scale);
    std::size_t quantity = 0;
    for (const FirstTimes& run : runs) {
      const auto end = static_cast<std::size_t>(run.end);
      ++ends_[end];
      results_.tables["ends"].add(end_names[end]);
      for (const std::optional<double>& time : run.times) {
        const double reached = time.value_or(std::nan(""));
        Table pair({{.name = "time"}, {.name = "ratio"}});
        pair.add(reached, reached / scale);
        row.join(pair);
        quantities_[quantity++].add(scale, time);
      }
    }
    results_.table.add(row);
  }

  ConfigReader& fields_;
  Results results_;
  std::vector<TimesOverScales> quantities_;
  std::array<Index, 3> ends_ = {};
};

/// "dimension", or all of "dimensions".
std::vector<Index> dimensions_of(ConfigReader& fields) {
  fields.require_either("dimension", "dimensions");
  return fields.has("dimensions") ? fields.integers("dimensions")
                                  : std::vector<Index>{fields.integer("dimension")};
}

/// "activation", or all of "activations".
std::vector<HeadActivation> activations_of(ConfigReader& fields) {
  fields.require_either("activation", "activations");
  if (!fields.has("activations")) return {read_activation(fields)};
  std::vector<HeadActivation> activations;
  for (const std::string& name : fields.texts("activations"))
    activations.push_back(head_activation_from_name(name));
  return activations;
}

/// "0", "1", ...
std::vector<std::string> numbered(Index count) {
  std::vector<std::string> names;
  for (Index k = 0; k < count; ++k) names.push_back(fmt::format("{}", k));
  return names;
}

/// The results with a list of all quantities.
Results listed(TimesTable& times, const char* list, Index count) {
  json summary;
  for (Index k = 0; k < count; ++k) summary[list].push_back(times.summary_of(static_cast<std::size_t>(k)));
  return times.results(std::move(summary));
}

}  // namespace

Results phase_transition_results(ConfigReader& fields, const Prior& prior, const results::Control& control) {
  const std::vector<HeadActivation> activations = activations_of(fields);
  TimedSetup setup = read_timed_runs(fields, prior);
  setup.runs.run = control;
  const bool single = fields.has("activation");
  std::vector<std::string> names;
  for (const HeadActivation activation : activations)
    names.emplace_back(single ? "" : head_activation_name(activation));
  TimesTable times(fields, "specialisation_time", names);
  times.fill(dimensions_of(fields), control, [&](Index dimension, double eta, std::uint64_t seed) {
    set_dimension(fields, dimension, setup);
    std::vector<FirstTimes> found;
    for (const HeadActivation activation : activations) {
      setup.runs.activation = activation;
      found.push_back(setup.split_times(eta, seed));
    }
    return found;
  });
  json all = json::object();
  for (std::size_t k = 0; k < activations.size(); ++k) (single ? all : all[names[k]]) = times.summary_of(k);
  return times.results(std::move(all));
}

Results feature_times_results(ConfigReader& fields, const Prior& prior, const results::Control& control) {
  TimedSetup setup = read_timed_runs(fields, prior);
  set_dimension(fields, fields.integer("dimension"), setup);
  setup.runs.run = control;
  setup.runs.activation = read_activation(fields);
  TimesTable times(fields, "feature_time", numbered(prior.features()));
  times.fill({setup.runs.dimension}, control, [&](Index, double eta, std::uint64_t seed) {
    return std::vector<FirstTimes>{feature_split_times(setup.runs, eta, seed)};
  });
  return listed(times, "features", prior.features());
}

Results digit_times_results(ConfigReader& fields, const ImageTask& task, const results::Control& control) {
  const Index classes = task.class_means().rows();
  TimesTable times(fields, "digit_time", numbered(classes));
  times.fill({task.dimension()}, control, [&](Index, double eta, std::uint64_t seed) {
    SgdOptions options = read_image_sgd(fields, task.dimension());
    options.seed = seed;
    options.run = control;
    return std::vector<FirstTimes>{class_split_times_of_sgd(read_activation(fields), fields.integer("heads"),
                                                            task, eta, fields.number("delta"), options)};
  });
  return listed(times, "digits", classes);
}

Results phase_transition_experiment(ConfigReader& fields, const results::Control& control) {
  const Prior prior = read_prior(fields);
  Results results = phase_transition_results(fields, prior, control);
  // What the theory says of the slope.
  for (const HeadActivation activation : activations_of(fields))
    if (const auto rate = split_rate_at_saddle(fields, activation, prior, control))
      (fields.has("activation") ? results.summary
                                : results.summary[head_activation_name(activation)])["inverse_rate"] =
          1 / rate->rate;
  return results;
}

Results feature_times_experiment(ConfigReader& fields, const results::Control& control) {
  return feature_times_results(fields, read_prior(fields), control);
}

}  // namespace widelimit::specialization
