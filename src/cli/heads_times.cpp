#include <cmath>
#include <utility>

#include "cli/heads_config.hpp"
#include "specialization/checks.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/sgd.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::cli {

using nlohmann::json;

namespace {

/// Overlaps along a flow.
struct OverlapPath {
  std::vector<double> tau;
  std::vector<Matrix<double>> m;
};

/// The flow from a random start of D dimensions, spikes whitened.
OverlapPath path_from(FieldReader& in, HeadActivation activation, const Prior& prior, double eta,
                      std::uint64_t seed, const RunControl& control) {
  const Index heads = in.integer("heads"), features = prior.features();
  const GramState start =
      random_gram_start(activation, heads, features, in.integer("dimension"), eta, seed + kStartSeed);
  const SgdPoint point{
      0, 0,
      order_parameters(start.gram.topLeftCorner(heads, heads), start.gram.topRightCorner(heads, features),
                       start.gram.bottomRightCorner(features, features)),
      start.b, start.v};
  const MatchedFlow matched = matched_flow(point);
  const auto samples =
      SampleSet<float>::draw(prior, {in.integer("tokens"), heads, in.integer("samples", 20'000)}, seed,
                             {symmetry_of(in, SampleSymmetry::closed), matched.spike_root, control});
  FlowOptions options;
  options.step = in.number("step", 0.1);
  options.steps = steps_in(in, "step", options.step);
  options.record = record_every(1, options.steps);
  options.run = control;
  OverlapPath path;
  for (const FlowPoint& flow : gradient_flow(activation, matched.start, samples, options)) {
    path.tau.push_back(flow.tau);
    path.m.push_back(flow.parameters.m * matched.spike_root);
  }
  return path;
}

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
  return spread > 1e-12 * n * xx ? (n * xy - x * y) / spread : kMissing;
}

/// Sizes of the start, and ln(sqrt(D) / eta) for each.
std::vector<std::pair<double, double>> etas_of(FieldReader& in) {
  const Vector<double> etas = field_value(in, "etas");
  if (etas.size() == 0)
    throw ArgumentError("config.etas: must hold at least one size of the start, got none");
  std::vector<std::pair<double, double>> scales;
  for (const double eta : etas) {
    require_positive("config", "etas", eta);
    scales.emplace_back(eta, std::log(std::sqrt(in.number("dimension")) / eta));
  }
  return scales;
}

/// "activation", or all of "activations".
std::vector<HeadActivation> activations_of(FieldReader& in) {
  if (in.has("activation") == in.has("activations"))
    in.fail("activation", "give either activation or activations");
  if (!in.has("activations")) return {activation_of(in)};
  std::vector<HeadActivation> activations;
  for (const std::string& name : in.texts("activations"))
    activations.push_back(head_activation_from_name(name));
  if (activations.empty()) in.fail("activations", "must hold at least one activation");
  return activations;
}

/// Times of one quantity over sizes and starts.
class TimesOverScales {
 public:
  void add(double scale, std::optional<double> time) {
    if (spreads_.empty() || scale != last_scale_) spreads_.emplace_back();
    last_scale_ = scale;
    spreads_.back().push_back(time);
    if (time) points_.emplace_back(scale, *time);
  }

  /// {"slope", "times": a spread and all values for each size}.
  [[nodiscard]] json summary() const {
    const double slope = least_squares_slope(points_);
    json result{{"slope", std::isnan(slope) ? json(nullptr) : json(slope)}, {"times", json::array()}};
    for (const auto& times : spreads_) {
      std::vector<double> values;
      json all = json::array();
      for (const auto& time : times) {
        all.push_back(time_or_null(time));
        if (time) values.push_back(*time);
      }
      json spread = values.empty() ? json::object() : spread_json(spread_of(values));
      spread["values"] = all;
      result["times"].push_back(std::move(spread));
    }
    return result;
  }

 private:
  double last_scale_ = 0;
  std::vector<std::vector<std::optional<double>>> spreads_;
  std::vector<std::pair<double, double>> points_;
};

void append_time(std::vector<double>& row, std::optional<double> time, double scale) {
  row.push_back(time.value_or(kMissing));
  row.push_back(row.back() / scale);
}

/// Appends rows of eta, start, log_scale and what times(eta, seed) gives, each beside its ratio to log_scale.
template <typename Times>
void append_scales(FieldReader& in, ExperimentTable& table, std::vector<TimesOverScales>& quantities,
                   const Times& times) {
  const Index starts = starts_of(in, 2);
  for (const auto& [eta, scale] : etas_of(in))
    for (Index start = 0; start < starts; ++start) {
      std::vector<double> row{eta, static_cast<double>(start), scale};
      const std::vector<std::optional<double>> found =
          times(eta, seed_of(in) + static_cast<std::uint64_t>(start));
      for (std::size_t k = 0; k < found.size(); ++k) {
        append_time(row, found[k], scale);
        quantities[k].add(scale, found[k]);
      }
      table.rows.push_back(std::move(row));
    }
}

}  // namespace

ExperimentTable phase_transition_experiment(FieldReader& in, const RunControl& control) {
  const Prior prior = prior_of(in);
  const std::vector<HeadActivation> activations = activations_of(in);
  const bool single = in.has("activation");
  const double delta = in.number("delta", 0.2);
  ExperimentTable table;
  table.columns = {"eta", "start", "log_scale"};
  for (const HeadActivation activation : activations) {
    const std::string suffix = single ? "" : fmt::format("_{}", head_activation_name(activation));
    table.columns.push_back("specialisation_time" + suffix);
    table.columns.push_back("ratio" + suffix);
  }
  std::vector<TimesOverScales> quantities(activations.size());
  append_scales(in, table, quantities, [&](double eta, std::uint64_t seed) {
    std::vector<std::optional<double>> times;
    for (const HeadActivation activation : activations) {
      const OverlapPath path = path_from(in, activation, prior, eta, seed, control);
      times.push_back(specialisation_time(path.tau, path.m, delta));
    }
    return times;
  });
  for (std::size_t k = 0; k < activations.size(); ++k) {
    json summary = quantities[k].summary();
    if (const auto rate = saddle_rate(in, activations[k], prior, control))
      summary["inverse_rate"] = 1 / rate->rate;
    if (single)
      table.summary = std::move(summary);
    else
      table.summary[std::string(head_activation_name(activations[k]))] = std::move(summary);
  }
  return table;
}

ExperimentTable feature_times_experiment(FieldReader& in, const RunControl& control) {
  const Prior prior = prior_of(in);
  const HeadActivation activation = activation_of(in);
  const double delta = in.number("delta", 1);
  const Index features = prior.features();
  ExperimentTable table;
  table.columns = {"eta", "start", "log_scale"};
  for (Index f = 0; f < features; ++f) {
    table.columns.push_back(fmt::format("feature_time_{}", f));
    table.columns.push_back(fmt::format("ratio_{}", f));
  }
  std::vector<TimesOverScales> quantities(static_cast<std::size_t>(features));
  append_scales(in, table, quantities, [&](double eta, std::uint64_t seed) {
    const OverlapPath path = path_from(in, activation, prior, eta, seed, control);
    std::vector<std::optional<double>> times;
    for (Index f = 0; f < features; ++f)
      times.push_back(feature_specialisation_time(path.tau, path.m, f, delta));
    return times;
  });
  for (const TimesOverScales& quantity : quantities) table.summary["features"].push_back(quantity.summary());
  return table;
}

}  // namespace widelimit::cli
