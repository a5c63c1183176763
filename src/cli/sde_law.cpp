#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "cli/sde_law_setup.hpp"
#include "cli/sde_run.hpp"
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

std::string out_of_reach(double time) {
  return fmt::format(
      "expected a time whose law is within reach (see --help of sde law), got {:g}; simulate it", time);
}

namespace {

/// The law at one of the configuration's times, or why there is none.
struct LawAtTime {
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
const char* start_field(const FieldReader& fields) { return fields.has("V0") ? "V0" : "rho0"; }

void require_noise(const FieldReader& fields, const SdeModel& model) {
  if (!(model.linear_noise > 0))
    fields.fail(fields.has("gamma") ? "gamma" : "gamma_squared",
                "expected a number > 0 for sde law, without which nothing moves, got 0");
}

void require_gap_law(const FieldReader& fields, const SdeSetup& setup) {
  if (setup.model.mask != AttentionMask::full)
    fields.fail("mask", "expected full for sde law: under a causal mask no law is known, got \"causal\"");
  if (!has_gap(setup))
    fields.fail(start_field(fields),
                fmt::format("expected two tokens with a gap (V00 + V11 - 2 V01) / 4 above 0, got {}",
                            gap_of(setup.v0)));
}

void require_correlation_law(const FieldReader& fields, const SdeSetup& setup) {
  const double rho = correlation_of(setup.v0);
  if (!(std::abs(rho) < 1))
    fields.fail(start_field(fields),
                fmt::format("expected a correlation in (-1, 1) for sde law, got {}", rho));
  if (fields.has("variance")) fields.fail("variance", "has no effect on the correlation: leave it out");
}

/// All that can be said before the work.
void require_law(const FieldReader& fields, const SdeSetup& setup) {
  if (setup.v0.rows() != 2)
    fields.fail("tokens",
                fmt::format("sde law is of two tokens, got a start of {}; give tokens 2 or a V0 of two rows",
                            setup.v0.rows()));
  require_noise(fields, setup.model);
  if (has_attention(setup.model))
    require_gap_law(fields, setup);
  else
    require_correlation_law(fields, setup);
}

/// A time without a law leaves those of the others; none with one is an error.
std::vector<LawAtTime> laws_of(const FieldReader& fields, const SdeSetup& setup) {
  std::vector<LawAtTime> laws;
  for (const double time : setup.options.times) {
    LawAtTime one{time, {}, {}};
    try {
      one.law = law_at(setup, time);
    } catch (const std::exception& error) {
      if (!is_out_of_reach(error)) throw;
      one.missing = out_of_reach(time);
    }
    laws.push_back(std::move(one));
  }
  if (std::ranges::none_of(laws, [](const LawAtTime& one) { return one.law.has_value(); }))
    fields.fail(fields.has("times")     ? "times[0]"
                : fields.has("horizon") ? "horizon"
                                        : "depth",
                laws.front().missing);
  return laws;
}

void warn_of_missing(const SdeArguments& arguments, const std::vector<LawAtTime>& laws) {
  for (std::size_t k = 0; k < laws.size(); ++k)
    if (!laws[k].law)
      fmt::print(stderr, "widelimit: warning: {}: config.times[{}]: {}\n", arguments.config.string(), k,
                 laws[k].missing);
}

constexpr double law_probabilities[] = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};

std::string quantiles_csv(const std::vector<LawAtTime>& laws, const char* quantity) {
  std::string csv = "time,observable,probability,quantile\n";
  for (const LawAtTime& one : laws)
    for (const double p : law_probabilities)
      if (one.law && p < one.law->total_mass())
        fmt::format_to(std::back_inserter(csv), "{},{},{},{:.12g}\n", one.time, quantity, p,
                       one.law->quantile(p));
  return csv;
}

json masses_json(const std::vector<LawAtTime>& laws) {
  json masses = json::array();
  for (const LawAtTime& one : laws) {
    json row{{"time", one.time}, {"not_exploded", nullptr}};
    if (one.law)
      row["not_exploded"] = one.law->total_mass();
    else
      row["missing"] = one.missing;
    masses.push_back(std::move(row));
  }
  return masses;
}

/// The picture's x: where all but a thousandth of each law is, in decades where it spans two.
struct LawAxis {
  double from = HUGE_VAL, to = -HUGE_VAL;
  bool decades = false;

  [[nodiscard]] double at(double share) const {
    return decades ? from * std::pow(to / from, share) : std::lerp(from, to, share);
  }
  /// Density of x, or of its decimal logarithm.
  [[nodiscard]] double density(const DiffusionDistribution& law, double x) const {
    return law.density(x) * (decades ? x * std::numbers::ln10 : 1);
  }
};

/// Of which there is something to draw.
bool is_drawn(const LawAtTime& one) { return one.law && one.law->total_mass() > 1e-3; }

LawAxis law_axis(const std::vector<LawAtTime>& laws) {
  constexpr double outside = 1e-3;
  LawAxis axis;
  for (const LawAtTime& one : laws) {
    if (!is_drawn(one)) continue;
    axis.from = std::min(axis.from, one.law->quantile(outside * one.law->total_mass()));
    axis.to = std::max(axis.to, one.law->quantile((1 - outside) * one.law->total_mass()));
  }
  axis.decades = axis.from > 0 && axis.to > 100 * axis.from;
  return axis;
}

/// Evenly over the axis, and where this law is.
std::vector<double> law_places(const LawAxis& axis, const DiffusionDistribution& law) {
  constexpr int points = 200;
  std::vector<double> places;
  for (int i = 0; i <= points; ++i) places.push_back(axis.at(i / double{points}));
  for (int i = 1; i < points; ++i) places.push_back(law.quantile(law.total_mass() * i / points));
  std::ranges::sort(places);
  return places;
}

std::string law_script(const std::vector<LawAtTime>& laws, const char* quantity) {
  const LawAxis axis = law_axis(laws);
  std::string script = gnuplot_canvas(760, 480) + "set grid\nset key outside\n", plots;
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
    plots += fmt::format("$d{} using 1:2 with lines lw 2 title 'T = {:.4g}', ", k, laws[k].time);
  }
  if (plots.empty())
    return script + "set label 'all has exploded' at graph 0.4, 0.5\nplot [0:1] [0:1] -1 notitle\n";
  if (axis.decades) script += "set logscale x\nset format x '%g'\n";
  if (highest > 30 * lowest) script += fmt::format("set logscale y\nset yrange [{}:*]\n", lowest / 1000);
  return script + fmt::format("set xrange [{}:{}]\nset xlabel '{}'\nset ylabel 'density{}'\nplot {}\n",
                              axis.from, axis.to, quantity,
                              axis.decades ? fmt::format(" of log10 {}", quantity) : "", plots);
}

}  // namespace

void run_sde_law(const SdeArguments& arguments, const RunContext& context) {
  SdeRun run(arguments, context, "law", {"law.csv", "law.json"}, "law.png");
  std::vector<LawAtTime> laws;
  const char* quantity = "rho01";
  with_config(arguments, [&] {
    FieldReader fields(run.config, "config");
    const SdeSetup setup = read_law_setup(fields);
    fields.finish(unused_field);
    require_law(fields, setup);
    if (has_attention(setup.model)) quantity = "gap";
    laws = laws_of(fields, setup);
  });
  const std::string csv = quantiles_csv(laws, quantity);
  run.write_csv("law.csv", csv);
  run.write_report("law.json", {{"observable", quantity}, {"laws", masses_json(laws)}});
  fmt::print("{}", csv);
  warn_of_missing(arguments, laws);
  run.finish({{"times", laws.size()}}, [&] { return law_script(laws, quantity); });
}

}  // namespace widelimit::cli
