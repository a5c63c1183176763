#include "widelimit/finite/check_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernel/inputs/graph_inputs.hpp"
#include "layers/finite/seeds.hpp"
#include "network/lowering.hpp"
#include "numerics/standard_normal.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/monte_carlo.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::finite {
namespace {

using numerics::Estimate;

/// A value at a place, with its standard error. The weight does not come from the error: errors are estimated
/// from the same skewed draws as the values, and small values with small errors would pull the line down.
struct LinePoint {
  double place;
  Estimate value;
  double weight;
};

struct LineFit {
  Estimate intercept;
  Estimate slope;
};

/// Weighted least squares through at least two places; errors from those of the values.
LineFit fit_line(const std::vector<LinePoint>& points) {
  double weight = 0, centre = 0, spread = 0;
  for (const LinePoint& point : points) {
    weight += point.weight;
    centre += point.weight * point.place;
  }
  centre /= weight;
  for (const LinePoint& point : points)
    spread += point.weight * (point.place - centre) * (point.place - centre);
  LineFit fit;
  for (const LinePoint& point : points) {
    const double to_slope = point.weight * (point.place - centre) / spread;
    const double to_intercept = point.weight / weight - centre * to_slope;
    fit.slope.value += to_slope * point.value.value;
    fit.intercept.value += to_intercept * point.value.value;
    fit.slope.standard_error = std::hypot(fit.slope.standard_error, to_slope * point.value.standard_error);
    fit.intercept.standard_error =
        std::hypot(fit.intercept.standard_error, to_intercept * point.value.standard_error);
  }
  return fit;
}

/// A network with the shape that it is checked on.
struct Subject {
  Network network;
  Shape shape;
};

bool can_be_lowered(const Network& network, const Shape& shape) {
  try {
    static_cast<void>(Lowering::lower(network, shape));
    return true;
  } catch (const NetworkError&) {
    return false;
  }
}

Layers joined(const Layers& front, const Layer& layer, const Layers& back) {
  Layers all = front;
  all.push_back(layer);
  all.insert(all.end(), back.begin(), back.end());
  return all;
}

/// The networks to try a layer in, from plain to deep: every list ends with the first variant that can be
/// lowered.
std::vector<std::vector<Network>> candidates(const Layer& layer, Index channels) {
  using namespace layers;
  const Layer front = dense({1.2, 0.1}), inner = dense({1.6, 0.1}), readout = dense({1.1, 0.2});
  const Layers deep{front, relu(), inner};
  // Zeros have no variance after biases that begin at 0, but an NTK of 1.
  const Layer zero_biases = dense({1.2, 0, {{.input_width = channels, .zero_biases = true}}});
  const std::string kind = layer.kind();
  return {
      {Network(kind + " between dense layers", joined({front}, layer, {readout})),
       Network(kind + " between dense layers", joined({front}, layer, {global_average_pool(), readout}))},
      {Network(kind + " after biases of 0", joined({zero_biases}, layer, {dense()})),
       Network(kind + " after biases of 0", joined({zero_biases}, layer, {global_average_pool(), dense()}))},
      {Network(kind + " in a deep network", joined(deep, layer, {inner, relu(), readout})),
       Network(kind + " in a deep network", joined(deep, layer, {inner, relu(), flatten(), readout}))}};
}

std::vector<Subject> subjects_of(const Layer& layer, const LimitOptions& options) {
  std::vector<Subject> subjects;
  for (const auto& variants : candidates(layer, options.channels)) {
    std::optional<Subject> found;
    for (const Shape& shape : options.shapes)
      for (const Network& network : variants)
        if (!found && can_be_lowered(network, shape)) found = Subject{network, shape};
    if (found) subjects.push_back(*found);
  }
  if (subjects.empty())
    throw NetworkError(
        fmt::format("check_limit: the layer {} can be used with none of the shapes given; give shapes that "
                    "fit (options.shapes)",
                    layer.kind()));
  return subjects;
}

/// Standard normal inputs, of which the second is close to the first; then a duplicate, a constant and zeros.
xt::xarray<double> inputs_of(const Shape& shape, const LimitOptions& options) {
  std::vector<Index> dimensions{options.inputs + 3};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  dimensions.push_back(options.channels);
  // The inputs' stream is apart from those of the drawn networks.
  auto x =
      numerics::standard_normal<double>(dimensions, numerics::RandomStream(options.seed, ~std::uint64_t{0}));
  const std::size_t numbers = x.size() / static_cast<std::size_t>(options.inputs + 3);
  if (options.inputs > 1)
    for (std::size_t k = 0; k < numbers; ++k)
      // 0.8^2 + 0.6^2 = 1: the second input keeps its variance and has the correlation 0.8 with the first.
      x.data()[numbers + k] = 0.8 * x.data()[k] + 0.6 * x.data()[numbers + k];
  double* const added = x.data() + static_cast<std::size_t>(options.inputs) * numbers;
  std::copy_n(x.data(), numbers, added);
  std::fill_n(added + numbers, numbers, 0.7);
  std::fill_n(added + 2 * numbers, numbers, 0.0);
  return x;
}

/// One kernel at one width: its mean over networks, and the squared distances of the single ones to the
/// limit.
struct WidthSample {
  Matrix<double> mean;
  Matrix<double> error;
  Estimate distance;
};

/// Limit, and how well it is known where it is sampled itself.
struct Limit {
  Matrix<double> value;
  Matrix<double> error;
};

/// Mean and standard error of the distances.
Estimate mean_of(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) squares += (value - sum / count) * (value - sum / count);
  return {sum / count, std::sqrt(squares / (count * (count - 1)))};
}

struct KernelSamples {
  std::vector<WidthSample> nngp;
  std::vector<WidthSample> ntk;
};

KernelSamples samples_of(const Subject& subject, const Inputs<double>& x, const Limit& nngp, const Limit& ntk,
                         const LimitOptions& options) {
  KernelSamples samples;
  for (std::size_t k = 0; k < options.widths.size(); ++k) {
    const Index width = options.widths[k];
    std::vector<double> nngp_distances, ntk_distances;
    MonteCarloOptions sampling;
    sampling.widths = {.hidden = width, .outputs = width, .layers = {}};
    // Heads and their widths grow with the width, as the limit of attention requires.
    sampling.heads = {.count = std::max<Index>(1, width / options.width_per_head),
                      .key_width = std::max<Index>(1, width / 4),
                      .value_width = std::max<Index>(1, width / 8)};
    // Every width has networks of its own.
    sampling.seed = mixed_seed(options.seed, k);
    sampling.draws = options.draws;
    sampling.threads = options.threads;
    sampling.stop = options.stop;
    sampling.on_draw = [&](Index, const Matrix<double>& drawn_nngp, const Matrix<double>& drawn_ntk) {
      nngp_distances.push_back((drawn_nngp - nngp.value).squaredNorm() / nngp.value.squaredNorm());
      ntk_distances.push_back((drawn_ntk - ntk.value).squaredNorm() / ntk.value.squaredNorm());
    };
    const auto drawn = monte_carlo_kernel<double>(subject.network, x, sampling);
    samples.nngp.push_back({drawn.nngp.mean, drawn.nngp.standard_error(), mean_of(nngp_distances)});
    samples.ntk.push_back({drawn.ntk.mean, drawn.ntk.standard_error(), mean_of(ntk_distances)});
  }
  return samples;
}

/// |mean extrapolated to infinite width - limit| of an entry in standard errors.
double z_score(const std::vector<WidthSample>& samples, const Limit& limit, const std::vector<Index>& widths,
               Index i, Index j) {
  std::vector<LinePoint> points;
  for (std::size_t k = 0; k < widths.size(); ++k) {
    const auto width = static_cast<double>(widths[k]);
    // An entry that does not scatter has the error of its rounding, and a small one, which may be a difference,
    // that of the largest entry.
    const double rounding =
        std::max(1e-13 * std::abs(limit.value(i, j)), 1e-15 * limit.value.cwiseAbs().maxCoeff());
    const double error = std::max(samples[k].error(i, j), rounding);
    // Means depart from the limit by the order of 1 / width, so that the line runs in 1 / width;
    // wider networks weigh more.
    points.push_back({1 / width, {samples[k].mean(i, j), error}, width});
  }
  const Estimate extrapolated = fit_line(points).intercept;
  const double error =
      std::hypot(extrapolated.standard_error, limit.error.size() > 0 ? limit.error(i, j) : 0.0);
  const double distance = std::abs(extrapolated.value - limit.value(i, j));
  // Zeros do not scatter, and have no rounding either.
  return distance == 0 ? 0 : distance / error;
}

LimitRow row_of(const Subject& subject, const std::string& kernel, const std::vector<WidthSample>& samples,
                const Limit& limit, const LimitOptions& options) {
  LimitRow row{subject.network.name(), kernel, 0, {}, 0, 0, false};
  for (Index i = 0; i < limit.value.rows(); ++i)
    for (Index j = 0; j <= i; ++j)
      row.largest_z = std::max(row.largest_z, z_score(samples, limit, options.widths, i, j));
  std::vector<LinePoint> points;
  for (std::size_t k = 0; k < options.widths.size(); ++k) {
    const Estimate& distance = samples[k].distance;
    row.distances.push_back(distance.value);
    // Squared distances fall as 1 / width: a slope of -1 in logarithms.
    points.push_back({std::log(static_cast<double>(options.widths[k])),
                      {std::log(distance.value), distance.standard_error / distance.value},
                      1});
  }
  const Estimate slope = fit_line(points).slope;
  row.slope = slope.value;
  row.slope_error = slope.standard_error;
  // The slope is granted four of its standard errors.
  row.passed =
      row.largest_z <= options.largest_z && row.slope <= -1 + options.slope_tolerance + 4 * row.slope_error;
  return row;
}

void check(const LimitOptions& options) {
  const auto fail = [](const std::string& message) { throw ArgumentError("check_limit: " + message); };
  if (options.widths.size() < 2 || !std::is_sorted(options.widths.begin(), options.widths.end()) ||
      options.widths.front() < 1 || options.widths.front() == options.widths.back())
    fail(fmt::format("widths must be at least two positive numbers in ascending order, got {}",
                     fmt::join(options.widths, ", ")));
  if (options.width_per_head < 1)
    fail(fmt::format("width_per_head must be at least 1, got {}", options.width_per_head));
  if (options.draws < 8) fail(fmt::format("draws must be at least 8, got {}", options.draws));
  if (options.channels < 1) fail(fmt::format("channels must be at least 1, got {}", options.channels));
  if (options.inputs < 1) fail(fmt::format("inputs must be at least 1, got {}", options.inputs));
  if (!(options.largest_z > 0)) fail(fmt::format("largest_z must be positive, got {}", options.largest_z));
  if (!(options.slope_tolerance >= 0))
    fail(fmt::format("slope_tolerance must not be negative, got {}", options.slope_tolerance));
}

LimitReport report_on(const std::vector<Subject>& subjects, const LimitOptions& options) {
  LimitReport report{options.widths, {}};
  for (const Subject& subject : subjects) {
    const xt::xarray<double> values = inputs_of(subject.shape, options);
    const Inputs<double> x = with_drawn_graphs<double>(values, options.seed);
    GramOptions exact;
    exact.threads = options.threads;
    exact.stop = options.stop;
    const auto kernels = gram<double>(subject.network, x, exact);
    const Limit nngp{kernels.nngp, kernels.nngp_error}, ntk{kernels.ntk, kernels.ntk_error};
    const KernelSamples samples = samples_of(subject, x, nngp, ntk, options);
    report.rows.push_back(row_of(subject, "nngp", samples.nngp, nngp, options));
    report.rows.push_back(row_of(subject, "ntk", samples.ntk, ntk, options));
  }
  return report;
}

}  // namespace

bool LimitReport::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const LimitRow& row) { return row.passed; });
}

std::string to_string(const LimitReport& report) {
  std::string text = fmt::format("{:<44} {:<6} {:>8} {:>15}", "network", "kernel", "z", "slope");
  for (const Index width : report.widths) text += fmt::format(" {:>10}", fmt::format("w={}", width));
  text += "\n";
  for (const LimitRow& row : report.rows) {
    text += fmt::format("{:<44} {:<6} {:>8.2f} {:>7.2f} +- {:.2f}", row.network, row.kernel, row.largest_z,
                        row.slope, row.slope_error);
    for (const double distance : row.distances) text += fmt::format(" {:>10.2e}", distance);
    text += row.passed ? "  passed\n" : "  FAILED\n";
  }
  return text;
}

LimitReport check_limit(const Layer& layer, const LimitOptions& options) {
  check(options);
  return report_on(subjects_of(layer, options), options);
}

LimitReport check_limit(const Network& network, const LimitOptions& options) {
  check(options);
  for (const Shape& shape : options.shapes)
    if (can_be_lowered(network, shape)) return report_on({{network, shape}}, options);
  throw NetworkError(
      fmt::format("check_limit: the network{} can be used with none of the shapes given; give shapes that "
                  "fit (options.shapes)",
                  network.name().empty() ? "" : " " + network.name()));
}

}  // namespace widelimit::finite
