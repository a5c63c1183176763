#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "covariance_sde/experiments/shared.hpp"
#include "widelimit/covariance_sde/deterministic_limit.hpp"
#include "widelimit/covariance_sde/exact_distributions.hpp"
#include "widelimit/covariance_sde/explosion.hpp"
#include "widelimit/error.hpp"

namespace widelimit::covariance_sde {

using nlohmann::json;

namespace {

bool has_attention(const SdeModel& model) { return model.attention_drift > 0; }

/// What the exact laws know of the explosion: two tokens under full attention alone, of which the gap decides what
/// attention does with them.
bool has_gap_law(const SdeSetup& setup) {
  return has_gap(setup.model, setup.v0) && !(setup.model.relu_drift > 0);
}

/// What to say of a time whose law is out of reach.
std::string out_of_reach(const SdeModel& model, double time) {
  if (time < shortest_law_time(model))
    return fmt::format("expected a time of at least {:g} for the exact law of this model, got {:g}",
                       shortest_law_time(model), time);
  if (time > longest_law_time(model))
    return fmt::format("expected a time of at most {:g} for the exact law of this model, got {:g}",
                       longest_law_time(model), time);
  return fmt::format(
      "expected a time whose law is within reach (see --help of sde law), got {:g}; simulate it", time);
}

/// compute(), or nothing and why where the time is too long or no grid resolves the law.
template <typename Compute>
auto within_reach(const SdeModel& model, double time, std::string& missing, const Compute& compute)
    -> std::optional<decltype(compute())> {
  try {
    return compute();
  } catch (const NumericalError&) {
  } catch (const ArgumentError&) {
  }
  missing = out_of_reach(model, time);
  return std::nullopt;
}

/// The field that a time out of reach is of.
const char* time_field(const ConfigReader& fields) {
  return fields.has("times") ? "times[0]" : fields.has("horizon") ? "horizon" : "depth";
}

/// The law at one of the configuration's times, at one point of its lists, or why there is none.
struct LawAtTime {
  ListPoint point;
  double time;
  std::optional<DiffusionDistribution> law;
  std::string missing;

  /// Whether there is something to draw.
  [[nodiscard]] bool is_drawn() const { return law && law->total_mass() > 1e-3; }
};

double correlation_of(const Matrix<double>& v) { return v(0, 1) / std::sqrt(v(0, 0) * v(1, 1)); }

/// All that can be said before the work.
void require_law(const ConfigReader& fields, const SdeSetup& setup) {
  const SdeModel& model = setup.model;
  const char* start = fields.has("V0") ? "V0" : "rho0";
  if (setup.v0.rows() != 2)
    fields.fail("V0", fmt::format("sde law is of two tokens, got a start of {}; give a V0 of two rows",
                                  setup.v0.rows()));
  if (!(model.linear_noise > 0))
    fields.fail(fields.has("gamma") ? "gamma" : "gamma_squared",
                "expected a number > 0 for sde law, without which nothing moves, got 0");
  if (has_attention(model)) {
    if (model.mask != AttentionMask::full)
      fields.fail("mask", "expected full for sde law: under a causal mask no law is known, got \"causal\"");
    if (!has_gap(model, setup.v0))
      fields.fail(start, fmt::format("expected two tokens with a gap (V00 + V11 - 2 V01) / 4 above 0, got {}",
                                     gap_of(setup.v0)));
    return;
  }
  const double rho = correlation_of(setup.v0);
  if (!(std::abs(rho) < 1))
    fields.fail(start, fmt::format("expected a correlation in (-1, 1) for sde law, got {}", rho));
  if (fields.has("variance")) fields.fail("variance", "has no effect on the correlation: leave it out");
}

/// A time without a law leaves those of the others.
void append_laws(std::vector<LawAtTime>& laws, const ListPoint& point, const SdeSetup& setup) {
  for (const double time : setup.options.times) {
    LawAtTime one{point, time, {}, {}};
    one.law = within_reach(setup.model, time, one.missing, [&] {
      return has_gap_law(setup) ? gap_distribution(setup.model, gap_of(setup.v0), time)
                                : correlation_distribution(setup.model, correlation_of(setup.v0), time);
    });
    laws.push_back(std::move(one));
  }
}

/// A positive number by its natural logarithm, in decimals that double need not hold: "3.2e-869".
std::string decimals_of(double logarithm) {
  if (std::abs(logarithm) < 700) return fmt::format("{:.12g}", std::exp(logarithm));
  const double decimal = logarithm / std::numbers::ln10, exponent = std::floor(decimal);
  return fmt::format("{:.6f}e{:.0f}", std::pow(10, decimal - exponent), exponent);
}

/// Of 1 - |tanh y|.
double log_distance_to_one(double y) {
  return std::numbers::ln2 - 2 * std::abs(y) - std::log1p(std::exp(-2 * std::abs(y)));
}

/// Beside correlations what they lack of 1 or -1, to which late ones round.
Table quantile_table(const std::vector<LawAtTime>& laws, const char* quantity, bool of_correlation) {
  results::Column lack{.name = "one_minus_abs", .in_files = of_correlation};
  Table table = laws.front().point.table(
      {{.name = "time"}, {.name = "observable"}, {.name = "probability"}, {.name = "quantile"}, lack});
  for (const LawAtTime& one : laws)
    for (const double p : {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99}) {
      if (!one.law || !(p < one.law->total_mass())) continue;
      const double y = one.law->chart_quantile(p);
      table.add(one.point.cells(), one.time, quantity, p,
                of_correlation ? fmt::format("{:.12g}", std::tanh(y)) : decimals_of(y),
                of_correlation ? decimals_of(log_distance_to_one(y)) : "");
    }
  return table;
}

/// What the picture's x is: the quantity, the decimal logarithm of a gap, or artanh of a correlation.
enum class LawScale { plain, decades, artanh };

/// The picture's x: where all but a thousandth of each law is, on a scale on which it shows.
struct LawAxis {
  double from = HUGE_VAL, to = -HUGE_VAL;
  LawScale scale = LawScale::plain;

  [[nodiscard]] double at(double share) const { return std::lerp(from, to, share); }
  [[nodiscard]] double quantile(const DiffusionDistribution& law, double p) const {
    return scale == LawScale::plain    ? law.quantile(p)
           : scale == LawScale::artanh ? law.chart_quantile(p)
                                       : law.chart_quantile(p) / std::numbers::ln10;
  }
  [[nodiscard]] double density(const DiffusionDistribution& law, double x) const {
    return scale == LawScale::plain    ? law.density(x)
           : scale == LawScale::artanh ? law.chart_density(x)
                                       : law.chart_density(x * std::numbers::ln10) * std::numbers::ln10;
  }
  [[nodiscard]] std::string label(bool of_correlation) const {
    if (of_correlation)
      return (scale == LawScale::plain ? "" : "artanh of the ") +
             std::string("correlation of the two tokens");
    return (scale == LawScale::plain ? "" : "decimal logarithm of the ") +
           std::string("gap of the two tokens, (V00 + V11 - 2 V01) / 4");
  }
  /// Evenly over the axis, and where this law is.
  [[nodiscard]] std::vector<double> places(const DiffusionDistribution& law) const {
    constexpr int points = 200;
    std::vector<double> places;
    for (int i = 0; i <= points; ++i) places.push_back(at(i / double{points}));
    for (int i = 1; i < points; ++i) {
      const double x = quantile(law, law.total_mass() * i / points);
      if (x > from && x < to) places.push_back(x);
    }
    std::ranges::sort(places);
    return places;
  }
};

LawAxis law_axis(const std::vector<LawAtTime>& laws, bool of_correlation) {
  constexpr double outside = 1e-3;
  const auto fitted = [&](LawScale scale) {
    LawAxis axis{.scale = scale};
    for (const LawAtTime& one : laws) {
      if (!one.is_drawn()) continue;
      axis.from = std::min(axis.from, axis.quantile(*one.law, outside * one.law->total_mass()));
      axis.to = std::max(axis.to, axis.quantile(*one.law, (1 - outside) * one.law->total_mass()));
    }
    return axis;
  };
  // Beyond this correlations are within 1e-3 of 1; gaps that span two decades.
  constexpr double furthest = 4;
  const LawAxis chart = fitted(of_correlation ? LawScale::artanh : LawScale::decades);
  const bool shows = of_correlation ? std::max(-chart.from, chart.to) < furthest : chart.to - chart.from < 2;
  return shows ? fitted(LawScale::plain) : chart;
}

Picture law_picture(const std::vector<LawAtTime>& laws, bool of_correlation) {
  const LawAxis axis = law_axis(laws, of_correlation);
  Panel panel{.title = fmt::format("Exact law of the {}", of_correlation ? "correlation" : "gap"),
              .x = {.label = axis.label(of_correlation), .from = axis.from, .to = axis.to},
              .y = {.label = "density"},
              .legend = Legend::outside,
              .grid = true};
  double highest = 0, lowest = HUGE_VAL;  // of the curves' peaks
  for (const LawAtTime& one : laws) {
    if (!one.is_drawn()) continue;
    Series series{.columns = {axis.places(*one.law), {}},
                  .name = fmt::format("time {:.4g}{}{}", one.time, one.point.label().empty() ? "" : ", ",
                                      one.point.label()),
                  .colour = static_cast<int>(panel.series.size()) + 1,
                  .width = 2};
    for (const double x : series.columns[0]) series.columns[1].push_back(axis.density(*one.law, x));
    const double peak = std::ranges::max(series.columns[1]);
    highest = std::max(highest, peak);
    lowest = std::min(lowest, peak);
    panel.series.push_back(std::move(series));
  }
  if (panel.series.empty())
    return {.panels = {results::empty_panel({.title = panel.title}, "all has exploded")}};
  if (highest > 30 * lowest) {
    panel.y.logarithmic = true;
    panel.y.from = lowest / 1000;
  }
  return {.panels = {std::move(panel)}};
}

}  // namespace

Results law_experiment(ConfigReader& fields, const Control& control) {
  Run run(fields, control);
  const std::vector<ListPoint> points = read_points(run.config);
  std::vector<SdeSetup> setups;
  for (const ListPoint& point : points) {
    setups.push_back(run.read(point.config, read_law_setup));
    require_law(run.reader(point.config), setups.back());
  }
  const bool of_correlation = !has_attention(setups.front().model);
  const char* quantity = of_correlation ? "rho01" : "gap";
  std::vector<LawAtTime> laws;
  for (std::size_t k = 0; k < points.size(); ++k) append_laws(laws, points[k], setups[k]);
  if (std::ranges::none_of(laws, [](const LawAtTime& one) { return one.law.has_value(); }))
    fields.fail(time_field(fields), laws.front().missing);
  Table& table = run.results.tables["law"] = quantile_table(laws, quantity, of_correlation);
  run.say(csv_text(table));
  run.results.summary = {{"observable", quantity}, {"laws", json::array()}};
  for (std::size_t k = 0; k < laws.size(); ++k) {
    const LawAtTime& one = laws[k];
    json row = one.point.json();
    row.update({{"time", one.time}, {"not_exploded", one.law ? json(one.law->total_mass()) : json()}});
    if (!one.law) {
      row["missing"] = one.missing;
      const std::string label = one.point.label();
      run.warn_in_config(fmt::format("config.times[{}]{}: {}", k % setups.front().options.times.size(),
                                     label.empty() ? "" : " of " + label, one.missing));
    }
    run.results.summary["laws"].push_back(std::move(row));
  }
  run.results.shapes = {{"times", laws.size()}};
  run.results.pictures = {picture([=] { return law_picture(laws, of_correlation); })};
  return std::move(run.results);
}

Results explosion_experiment(ConfigReader& fields, const Control& control) {
  Run run(fields, control);
  const SdeSetup setup = run.read_setup(run.config, read_sde_setup);
  LinePlot plot{.title = "Explosion of the covariance SDE",
                .x_label = "time, layers over width",
                .y_label = "share of paths that have exploded",
                .samples = {{"sampled, 95 % interval"}}};
  if (has_gap_law(setup)) plot.curves.push_back({"exact probability", {}});
  const CovarianceEnsemble ensemble = sampled(setup, control);
  json rows = json::array();
  for (const ExplosionShare& share : explosion_shares(setup.model, setup.v0, ensemble)) {
    rows.push_back({{"time", share.time},
                    {"beyond_upper", share.beyond_upper},
                    {"explodes_from_there", share.explodes_from_there},
                    {"probability", share.probability},
                    {"interval_95", {share.interval.lower, share.interval.upper}}});
    plot.x.push_back(share.time);
    plot.samples[0].add(share.probability, share.interval.lower, share.interval.upper);
    std::string exact_text;
    if (has_gap_law(setup)) {
      std::string missing;
      const auto exact = within_reach(setup.model, share.time, missing, [&] {
        return 1 - gap_distribution(setup.model, gap_of(setup.v0), share.time).total_mass();
      });
      rows.back()["exact"] = exact ? json(*exact) : json();
      if (!exact) rows.back()["exact_missing"] = missing;
      plot.curves[0].values.push_back(exact.value_or(std::nan("")));
      exact_text = exact ? fmt::format("  exact {:.4f}", *exact) : "  exact: not known";
    }
    run.say(fmt::format("time {:<8g} exploded {:.4f}  95 % {:.4f} to {:.4f}{}\n", share.time,
                        share.probability, share.interval.lower, share.interval.upper, exact_text));
  }
  run.results.summary = {{"explosion", std::move(rows)}, {"counts", ensemble_counts(ensemble)}};
  if (has_gap_law(setup))
    run.results.summary["exact_at_any_time"] = explosion_probability(setup.model, gap_of(setup.v0));
  run.results.shapes = shape_of(setup.v0);
  run.results.shapes["times"] = plot.x.size();
  run.results.pictures = {picture([plot] { return lines_picture(plot); })};
  return std::move(run.results);
}

namespace {

/// The states by the last time that has one: a drift that explodes has none from then on.
std::vector<Matrix<double>> flow_states(const ConfigReader& fields, const FlowSetup& setup,
                                        std::string& missing) {
  std::vector<Matrix<double>> states;
  for (const double time : setup.times) {
    try {
      states.push_back(setup.model ? drift_flow(*setup.model, setup.v0, time)
                                   : commuting_limit(setup.v0, time, setup.shortcut));
    } catch (const NumericalError& error) {
      const std::string_view reason = error.what();  // after the function's name
      missing = fmt::format("expected times before the flow explodes, got {:g}: {}", time,
                            reason.substr(reason.find(": ") + 2));
      break;
    }
  }
  if (states.empty()) fields.fail(time_field(fields), missing);
  return states;
}

}  // namespace

Results flow_experiment(ConfigReader& fields, const Control& control) {
  Run run(fields, control);
  const FlowSetup setup = run.read(run.config, read_flow_setup);
  std::string missing;
  const std::vector<Matrix<double>> states = flow_states(fields, setup, missing);
  if (states.size() < setup.times.size())
    run.warn_in_config(fmt::format("config.times[{}]: {}; this time and those after it are left out",
                                   states.size(), missing));
  // Entries on and above the diagonal at each time, a curve each.
  results::Column entries = results::symmetric_column("V", setup.v0.rows());
  entries.format = "{:.17g}";
  Table& table = run.results.tables["flow"] = Table({{.name = "time"}, entries});
  LinePlot plot{.title = "Covariances of tokens in the deterministic limit",
                .x_label = "time",
                .y_label = "entry of V"};
  for (const std::string& name : entries.entries) plot.curves.push_back({name, {}});
  for (std::size_t k = 0; k < states.size(); ++k) {
    std::vector<double> row;
    for (Index a = 0; a < states[k].rows(); ++a)
      for (Index b = a; b < states[k].cols(); ++b) {
        plot.curves[row.size()].values.push_back(states[k](a, b));
        row.push_back(states[k](a, b));
      }
    table.add(setup.times[k], row);
    plot.x.push_back(setup.times[k]);
  }
  run.results.shapes = shape_of(setup.v0);
  run.results.shapes["times"] = states.size();
  run.results.pictures = {picture([plot] { return lines_picture(plot); })};
  return std::move(run.results);
}

}  // namespace widelimit::covariance_sde
