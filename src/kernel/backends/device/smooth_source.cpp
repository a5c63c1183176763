#include "kernel/backends/device/smooth_source.hpp"

#include <fmt/format.h>

#include <numbers>
#include <vector>

#include "kernel/backends/device/cl/smooth_source.hpp"
#include "kernel/backends/device/smooth_table.hpp"
#include "kernel/backends/device/source_beginning.hpp"
#include "numerics/gauss_legendre.hpp"
#include "numerics/gaussian_window.hpp"
#include "numerics/normal_density.hpp"

namespace widelimit {
namespace {

using numerics::formula::Precision;

template <typename Numbers>
std::string listed(const Numbers& numbers, Precision precision) {
  std::string text;
  for (const double number : numbers) text += (text.empty() ? "" : ", ") + literal_of(number, precision);
  return text;
}

template <typename Numbers>
std::string listed_orders(const Numbers& numbers) {
  std::string text;
  for (const std::size_t number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return text;
}

}  // namespace

std::string smooth_source(Precision precision) {
  const bool wide = precision == Precision::wide;
  const auto number = [&](double value) { return literal_of(value, precision); };
  const numerics::GaussLegendre& rule = numerics::gauss_legendre_15();
  std::string text = fmt::format("typedef {} real2;\n", wide ? "double2" : "float2");
  const auto define = [&](const char* name, const auto& value) {
    text += fmt::format("#define SMOOTH_{} {}\n", name, value);
  };
  using Layout = SmoothTable;
  define("PANELS", int{Layout::panels});
  define("EDGES", int{Layout::edges});
  define("SERIES", int{Layout::series});
  define("BREAKPOINT_COUNT", int{Layout::breakpoint_count});
  define("BREAKPOINTS", int{Layout::breakpoints});
  define("FIRST_SKIPS", int{Layout::first_skips});
  define("OTHERS_SKIP", int{Layout::others_skip});
  define("RISES", int{Layout::rises});
  define("REACH", int{Layout::reach});
  define("HEADER", int{Layout::header});
  define("DEGREES", Layout::degrees);
  define("TERMS", numerics::MehlerTable::chebyshev_nodes);
  define("PIECES", numerics::VarianceGrid::pieces);
  define("FIRST_EXPONENT", fmt::format("({})", numerics::VarianceGrid::first_exponent));
  define("SHORT_COUNT", numerics::series_truncations.size());
  define("SHORT", numerics::series_truncations.back());
  define("DEEP_COUNT", numerics::DeepSeries::truncations.size());
  define("DEEP", numerics::DeepSeries::truncations.back());
  define("NODES", rule.nodes.size());
  define("MOST_HALF_NODES", numerics::PairQuadrature::most_half_nodes);
  define("SPACING", number(numerics::PairQuadrature::spacing));
  define("GAUSSIAN_PANEL", number(numerics::PairQuadrature::gaussian_panel));
  define("PANEL_PER_DEVIATION", number(numerics::PairQuadrature::panel_per_deviation));
  define("LEAST_WINDOW", number(numerics::least_window));
  define("WIDEST_WINDOW", number(numerics::widest_window));
  define("ROOT_OF_TWO", number(std::numbers::sqrt2));
  define("DENSITY", number(numerics::normal_density(0)));
  define("ROOT_DENSITY", number(numerics::root_normal_density(0)));
  define("LOG_TOLERANCE", number(Layout::log_tolerance(precision)));
  // In standard deviations, above the rounding of places.
  define("NUDGE", number(wide ? 1e-12 : 1e-5));
  text += fmt::format(
      "constant int smooth_short[] = {{{}}};\nconstant int smooth_deep[] = {{{}}};\n"
      "constant real smooth_node[] = {{{}}};\nconstant real smooth_weight[] = {{{}}};\n",
      listed_orders(numerics::series_truncations), listed_orders(numerics::DeepSeries::truncations),
      listed(rule.nodes, precision), listed(rule.weights, precision));
  return text + smooth_functions;
}

}  // namespace widelimit
