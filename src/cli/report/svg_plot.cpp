#include "cli/report/svg_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "cli/report/html.hpp"

namespace widelimit::cli {
namespace {

constexpr double right_margin = 14, top_margin = 26;

struct Tick {
  double value;
  std::string text;
};

std::vector<Tick> decade_ticks(const PlotAxis& axis) {
  const int first = static_cast<int>(std::ceil(std::log10(axis.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(axis.high) + 1e-9));
  const int step = std::max(1, (last - first + 5) / 6);
  std::vector<Tick> ticks;
  for (int power = first; power <= last; power += step)
    ticks.push_back({std::pow(10.0, power), fmt::format("10<tspan dy='-5' font-size='9'>{}</tspan>", power)});
  return ticks;
}

/// Multiples of 1, 2 or 5 times a power of ten.
std::vector<Tick> linear_ticks(const PlotAxis& axis) {
  constexpr double wanted = 5;
  const double rough = (axis.high - axis.low) / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double ratio = rough / power;
  const double step = power * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10);
  std::vector<Tick> ticks;
  for (double i = std::ceil(axis.low / step - 1e-9); i * step <= axis.high + 1e-9 * step; ++i)
    ticks.push_back({i * step, fmt::format("{:.4g}", i == 0 ? 0.0 : i * step)});
  return ticks;
}

std::vector<Tick> ticks_of(const PlotAxis& axis) {
  return axis.scale == PlotAxis::Scale::logarithmic ? decade_ticks(axis) : linear_ticks(axis);
}

/// Where a value lies between the ends of an axis, 0 to 1.
double share_of(const PlotAxis& axis, double value) {
  if (axis.scale == PlotAxis::Scale::linear) return (value - axis.low) / (axis.high - axis.low);
  return std::log(value / axis.low) / std::log(axis.high / axis.low);
}

}  // namespace

PlotAxis axis_over(std::string label, const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  double margin = 0.05 * (*high - *low);
  if (margin <= 1e-12 * std::abs(*high)) margin = *high == 0 ? 1 : 0.1 * std::abs(*high);
  return {std::move(label), *low - margin, *high + margin};
}

std::string_view plot_colour(std::size_t i) {
  static constexpr std::array<std::string_view, 6> colours{"#1f5fa8", "#d1600a", "#2f8f5b",
                                                           "#8250a8", "#b5304f", "#5f6b76"};
  return colours[i % colours.size()];
}

SvgPlot::SvgPlot(std::string title, PlotAxis x, PlotAxis y, double width, double height)
    : title_{std::move(title)}, x_{std::move(x)}, y_{std::move(y)}, width_{width}, height_{height} {}

double SvgPlot::x_of(double value) const {
  return left() + share_of(x_, value) * (width_ - right_margin - left());
}

double SvgPlot::y_of(double value) const { return bottom() - share_of(y_, value) * (bottom() - top_margin); }

std::string SvgPlot::path(const std::vector<PlotPoint>& points) const {
  std::string text;
  for (const PlotPoint& point : points)
    fmt::format_to(std::back_inserter(text), "{}{:.2f},{:.2f}", text.empty() ? "" : " ", x_of(point.x),
                   y_of(point.y));
  return text;
}

void SvgPlot::line(const std::vector<PlotPoint>& points, std::string_view colour, std::string_view style) {
  body_ += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='1.8' {}/>", path(points),
                       colour, style);
}

void SvgPlot::dots(const std::vector<PlotPoint>& points, std::string_view colour, double radius) {
  for (const PlotPoint& point : points)
    body_ += fmt::format("<circle cx='{:.2f}' cy='{:.2f}' r='{}' fill='{}'/>", x_of(point.x), y_of(point.y),
                         radius, colour);
}

void SvgPlot::box(PlotPoint from, PlotPoint to, std::string_view colour, double opacity,
                  std::string_view tip) {
  const double x0 = x_of(from.x), x1 = x_of(to.x), y0 = y_of(from.y), y1 = y_of(to.y);
  body_ +=
      fmt::format("<rect x='{:.2f}' y='{:.2f}' width='{:.2f}' height='{:.2f}' fill='{}' opacity='{}'>",
                  std::min(x0, x1), std::min(y0, y1), std::abs(x1 - x0), std::abs(y1 - y0), colour, opacity);
  if (!tip.empty()) body_ += fmt::format("<title>{}</title>", html_escaped(tip));
  body_ += "</rect>";
}

void SvgPlot::band(const std::vector<PlotPoint>& lower, const std::vector<PlotPoint>& upper,
                   std::string_view colour) {
  std::vector<PlotPoint> around = lower;
  around.insert(around.end(), upper.rbegin(), upper.rend());
  body_ += fmt::format("<polygon points='{}' fill='{}' opacity='0.13'/>", path(around), colour);
}

void SvgPlot::legend(std::string_view name, std::string_view colour) {
  constexpr double y = 13, mark = 20, letter = 6.8;
  const double x = left() + legend_width_;
  legend_ += fmt::format(
      "<line x1='{0:.1f}' x2='{1:.1f}' y1='{2}' y2='{2}' stroke='{3}' stroke-width='3'/><text x='{4:.1f}' "
      "y='{5}'>{6}</text>",
      x, x + mark, y, colour, x + mark + 6, y + 4, html_escaped(name));
  legend_width_ += mark + 26 + letter * static_cast<double>(name.size());
}

std::string SvgPlot::frame() const {
  std::string text;
  const double right = width_ - right_margin;
  for (const Tick& tick : ticks_of(x_))
    text += fmt::format(
        "<line x1='{0:.2f}' x2='{0:.2f}' y1='{1}' y2='{2}' class='grid'/><text x='{0:.2f}' y='{3}' "
        "text-anchor='middle'>{4}</text>",
        x_of(tick.value), top_margin, bottom(), bottom() + 17, tick.text);
  for (const Tick& tick : ticks_of(y_))
    text += fmt::format(
        "<line x1='{0}' x2='{1}' y1='{2:.2f}' y2='{2:.2f}' class='grid'/><text x='{3}' y='{4:.2f}' "
        "text-anchor='end'>{5}</text>",
        left(), right, y_of(tick.value), left() - 6, y_of(tick.value) + 4, tick.text);
  text += fmt::format("<text x='{}' y='{}' text-anchor='middle' class='axis'>{}</text>", (left() + right) / 2,
                      height_ - 8, html_escaped(x_.label));
  const double middle = (top_margin + bottom()) / 2;
  text += fmt::format(
      "<text transform='translate(14,{}) rotate(-90)' text-anchor='middle' class='axis'>{}</text>", middle,
      html_escaped(y_.label));
  return text;
}

std::string SvgPlot::svg() const {
  const std::string border =
      fmt::format("<rect x='{}' y='{}' width='{}' height='{}' class='border'/>", left(), top_margin,
                  width_ - right_margin - left(), bottom() - top_margin);
  return fmt::format(
      "<svg viewBox='0 0 {0} {1}' width='{0}' height='{1}' role='img' "
      "class='plot'><title>{2}</title>{3}{4}{5}{6}</svg>",
      width_, height_, html_escaped(title_), frame(), body_, border, legend_);
}

}  // namespace widelimit::cli
