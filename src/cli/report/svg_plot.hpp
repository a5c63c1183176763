#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace widelimit::cli {

/// A place in the units of a plot's axes.
struct PlotPoint {
  double x;
  double y;
};

/// An axis of a plot.
struct PlotAxis {
  enum class Scale { linear, logarithmic };

  std::string label;
  double low;  ///< Below `high`; positive where logarithmic.
  double high;
  Scale scale = Scale::linear;
};

/// From the smallest to the largest of the values, and a twentieth more on either side; a range around a single value.
[[nodiscard]] PlotAxis axis_over(std::string label, const std::vector<double>& values);

/// Colours that are told apart, also in grey print: of series number i, over and over from some number on.
[[nodiscard]] std::string_view plot_colour(std::size_t i);

/// A figure with two axes as an inline SVG: vector graphics that print at any size. Drawn here and not by gnuplot, so
/// that every report is complete where gnuplot is missing, has its page's fonts, and tells its numbers to a pointer.
class SvgPlot {
 public:
  /// `title` is what screen readers say.
  SvgPlot(std::string title, PlotAxis x, PlotAxis y, double width = 500, double height = 320);

  void line(const std::vector<PlotPoint>& points, std::string_view colour, std::string_view style = "");
  void dots(const std::vector<PlotPoint>& points, std::string_view colour, double radius = 3.5);
  /// From (x0, y0) to (x1, y1); `tip` shows while the pointer is there.
  void box(PlotPoint from, PlotPoint to, std::string_view colour, double opacity, std::string_view tip = "");
  /// Between two curves over the same places.
  void band(const std::vector<PlotPoint>& lower, const std::vector<PlotPoint>& upper,
            std::string_view colour);
  /// Above the frame, one after the other.
  void legend(std::string_view name, std::string_view colour);

  [[nodiscard]] std::string svg() const;

 private:
  [[nodiscard]] double left() const { return 58; }
  [[nodiscard]] double bottom() const { return height_ - 46; }
  [[nodiscard]] double x_of(double value) const;
  [[nodiscard]] double y_of(double value) const;
  [[nodiscard]] std::string path(const std::vector<PlotPoint>& points) const;
  [[nodiscard]] std::string frame() const;

  std::string title_;
  PlotAxis x_, y_;
  double width_, height_;
  std::string body_;
  std::string legend_;
  double legend_width_ = 0;
};

}  // namespace widelimit::cli
