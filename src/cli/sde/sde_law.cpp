#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/result_text.hpp"
#include "cli/sde/sde_law_setup.hpp"
#include "cli/sde/sde_run.hpp"
#include "widelimit/covariance_sde/exact_distributions.hpp"
#include "widelimit/covariance_sde/explosion.hpp"

namespace widelimit::cli {

using namespace covariance_sde;
using nlohmann::json;

bool has_attention(const SdeModel& model) { return model.attention_drift > 0; }

bool has_gap(const SdeSetup& setup) { return covariance_sde::has_gap(setup.model, setup.v0); }

bool has_gap_law(const SdeSetup& setup) { return has_gap(setup) && !(setup.model.relu_drift > 0); }

bool is_out_of_reach(const std::exception& error) {
  return dynamic_cast<const NumericalError*>(&error) != nullptr ||
         dynamic_cast<const ArgumentError*>(&error) != nullptr;
}

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

namespace {

/// The law at one of the configuration's times, at one point of its lists, or why there is none.
struct LawAtTime {
  SdePoint point;
  double time;
  std::optional<DiffusionDistribution> law;
  std::string missing;
};

double correlation_of(const Matrix<double>& v) { return v(0, 1) / std::sqrt(v(0, 0) * v(1, 1)); }

DiffusionDistribution law_at(const SdeSetup& setup, double time) {
  return has_gap_law(setup) ? gap_distribution(setup.model, gap_of(setup.v0), time)
                            : correlation_distribution(setup.model, correlation_of(setup.v0), time);
}

/// The field that gives the start's correlation.
const char* start_field(const ConfigReader& fields) { return fields.has("V0") ? "V0" : "rho0"; }

void require_noise(const ConfigReader& fields, const SdeModel& model) {
  if (!(model.linear_noise > 0))
    fields.fail(fields.has("gamma") ? "gamma" : "gamma_squared",
                "expected a number > 0 for sde law, without which nothing moves, got 0");
}

void require_gap_law(const ConfigReader& fields, const SdeSetup& setup) {
  if (setup.model.mask != AttentionMask::full)
    fields.fail("mask", "expected full for sde law: under a causal mask no law is known, got \"causal\"");
  if (!has_gap(setup))
    fields.fail(start_field(fields),
                fmt::format("expected two tokens with a gap (V00 + V11 - 2 V01) / 4 above 0, got {}",
                            gap_of(setup.v0)));
}

void require_correlation_law(const ConfigReader& fields, const SdeSetup& setup) {
  const double rho = correlation_of(setup.v0);
  if (!(std::abs(rho) < 1))
    fields.fail(start_field(fields),
                fmt::format("expected a correlation in (-1, 1) for sde law, got {}", rho));
  if (fields.has("variance")) fields.fail("variance", "has no effect on the correlation: leave it out");
}

/// All that can be said before the work.
void require_law(const ConfigReader& fields, const SdeSetup& setup) {
  if (setup.v0.rows() != 2)
    fields.fail("V0", fmt::format("sde law is of two tokens, got a start of {}; give a V0 of two rows",
                                  setup.v0.rows()));
  require_noise(fields, setup.model);
  if (has_attention(setup.model))
    require_gap_law(fields, setup);
  else
    require_correlation_law(fields, setup);
}

/// A time without a law leaves those of the others.
void append_laws(std::vector<LawAtTime>& laws, const SdePoint& point, const SdeSetup& setup) {
  for (const double time : setup.options.times) {
    LawAtTime one{point, time, {}, {}};
    try {
      one.law = law_at(setup, time);
    } catch (const std::exception& error) {
      if (!is_out_of_reach(error)) throw;
      one.missing = out_of_reach(setup.model, time);
    }
    laws.push_back(std::move(one));
  }
}

/// None with a law is an error.
void require_one(const ConfigReader& fields, const std::vector<LawAtTime>& laws) {
  if (std::ranges::none_of(laws, [](const LawAtTime& one) { return one.law.has_value(); }))
    fields.fail(fields.has("times")     ? "times[0]"
                : fields.has("horizon") ? "horizon"
                                        : "depth",
                laws.front().missing);
}

void warn_of_missing(const SdeArguments& arguments, const std::vector<LawAtTime>& laws, std::size_t times) {
  for (std::size_t k = 0; k < laws.size(); ++k)
    if (!laws[k].law) {
      const std::string label = laws[k].point.label();
      warn("{}: config.times[{}]{}: {}", arguments.config.string(), k % times,
           label.empty() ? "" : " of " + label, laws[k].missing);
    }
}

constexpr double law_probabilities[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};

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
std::string quantiles_csv(const std::vector<LawAtTime>& laws, const char* quantity, bool of_correlation) {
  std::string csv = laws.front().point.columns() + "time,observable,probability,quantile" +
                    (of_correlation ? ",one_minus_abs\n" : "\n");
  for (const LawAtTime& one : laws)
    for (const double p : law_probabilities) {
      if (!one.law || !(p < one.law->total_mass())) continue;
      const double y = one.law->chart_quantile(p);
      fmt::format_to(std::back_inserter(csv), "{}{},{},{},", one.point.cells(), one.time, quantity, p);
      csv += of_correlation ? fmt::format("{:.12g},{}\n", std::tanh(y), decimals_of(log_distance_to_one(y)))
                            : decimals_of(y) + "\n";
    }
  return csv;
}

json masses_json(const std::vector<LawAtTime>& laws) {
  json masses = json::array();
  for (const LawAtTime& one : laws) {
    json row = one.point.json();
    row["time"] = one.time;
    row["not_exploded"] = nullptr;
    if (one.law)
      row["not_exploded"] = one.law->total_mass();
    else
      row["missing"] = one.missing;
    masses.push_back(std::move(row));
  }
  return masses;
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
};

/// Of which there is something to draw.
bool is_drawn(const LawAtTime& one) { return one.law && one.law->total_mass() > 1e-3; }

LawAxis law_axis(const std::vector<LawAtTime>& laws, bool of_correlation) {
  constexpr double outside = 1e-3;
  const auto fitted = [&](LawScale scale) {
    LawAxis axis{.scale = scale};
    for (const LawAtTime& one : laws) {
      if (!is_drawn(one)) continue;
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

/// Evenly over the axis, and where this law is.
std::vector<double> law_places(const LawAxis& axis, const DiffusionDistribution& law) {
  constexpr int points = 200;
  std::vector<double> places;
  for (int i = 0; i <= points; ++i) places.push_back(axis.at(i / double{points}));
  for (int i = 1; i < points; ++i) {
    const double x = axis.quantile(law, law.total_mass() * i / points);
    if (x > axis.from && x < axis.to) places.push_back(x);
  }
  std::ranges::sort(places);
  return places;
}

/// In words, for the picture.
std::string law_label(LawScale scale, bool of_correlation) {
  if (of_correlation)
    return scale == LawScale::plain ? "correlation of the two tokens"
                                    : "artanh of the correlation of the two tokens";
  const std::string gap = "gap of the two tokens, (V00 + V11 - 2 V01) / 4";
  return scale == LawScale::plain ? gap : "decimal logarithm of the " + gap;
}

std::string law_script(const std::vector<LawAtTime>& laws, bool of_correlation) {
  const LawAxis axis = law_axis(laws, of_correlation);
  std::string script = gnuplot_canvas(760, 480) +
                       fmt::format("set grid\nset key outside\nset title 'Exact law of the {}'\n",
                                   of_correlation ? "correlation" : "gap"),
              plots;
  double highest = 0, lowest = HUGE_VAL;  // of the curves' peaks
  for (std::size_t k = 0; k < laws.size(); ++k) {
    if (!is_drawn(laws[k])) continue;
    double peak = 0;
    script += fmt::format("$d{} << end\n", k);
    for (const double x : law_places(axis, *laws[k].law)) {
      const double density = axis.density(*laws[k].law, x);
      peak = std::max(peak, density);
      fmt::format_to(std::back_inserter(script), "{} {}\n", x, density);
    }
    script += "end\n";
    highest = std::max(highest, peak);
    lowest = std::min(lowest, peak);
    const std::string label = laws[k].point.label();
    plots += fmt::format("$d{} using 1:2 with lines lw 2 title 'time {:.4g}{}', ", k, laws[k].time,
                         label.empty() ? "" : ", " + label);
  }
  if (plots.empty())
    return script + "set label 'all has exploded' at graph 0.4, 0.5\nplot [0:1] [0:1] -1 notitle\n";
  if (highest > 30 * lowest) script += fmt::format("set logscale y\nset yrange [{}:*]\n", lowest / 1000);
  return script + fmt::format("set xrange [{}:{}]\nset xlabel '{}'\nset ylabel 'density'\nplot {}\n",
                              axis.from, axis.to, law_label(axis.scale, of_correlation), plots);
}

}  // namespace

void run_sde_law(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "law", {"law.csv", "law.json"}, {"law.png"});
  std::vector<LawAtTime> laws;
  bool of_correlation = true;
  std::size_t times = 1;
  run.with_config([&] {
    const std::vector<SdePoint> points = read_sde_points(run.config);
    std::vector<SdeSetup> setups;
    for (const SdePoint& point : points) {
      setups.push_back(run.read(point.config, read_law_setup));
      require_law(run.reader(point.config), setups.back());
    }
    of_correlation = !has_attention(setups.front().model);
    times = setups.front().options.times.size();
    for (std::size_t k = 0; k < points.size(); ++k) append_laws(laws, points[k], setups[k]);
    require_one(run.reader(run.config), laws);
  });
  const char* quantity = of_correlation ? "rho01" : "gap";
  const std::string csv = quantiles_csv(laws, quantity, of_correlation);
  run.write_csv("law.csv", csv);
  run.write_report("law.json", {{"observable", quantity}, {"laws", masses_json(laws)}});
  say("{}", csv);
  warn_of_missing(arguments, laws, times);
  run.finish({{"times", laws.size()}}, {[&] { return law_script(laws, of_correlation); }});
}

}  // namespace widelimit::cli
