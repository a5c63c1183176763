#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "numerics/double_values.hpp"
#include "numerics/interval_series.hpp"
#include "numerics/smooth_mesh.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::numerics {
namespace {

/// Shells |x| in [0, first], [first, 2 first], ...: kinks are at numbers that people write, edges should not be.
constexpr double first_shell = 1.0372194651;
constexpr double search_reach = 2100;
constexpr std::size_t most_shell_panels = 4096;
constexpr std::size_t most_kinks = 256;
constexpr double least_width = 1e-13;  // of a panel, relative to max(1, |x|)
constexpr double window_widths =
    8;  // of the narrowest panels, beside which f is smooth if there is a kink in them
constexpr double cusp_width =
    1e-5;  // of panels so narrow that f counts as singular there, relative to max(1, |x|)
constexpr std::size_t most_degree = 14;  // of a series that is extrapolated by an eighth of its length
constexpr double one_sided_share =
    1e-2;  // that a side's series may miss of what the other's misses beyond the kink

struct SearchPanel {
  double begin, end;

  [[nodiscard]] double width() const { return end - begin; }
};

/// Series are refined until they are right to rounding: towards a kink of any low order panels shrink far below those
/// beside it, and on either side f is smooth over lengths that no smooth function with such panels would allow.
class KinkSearch {
 public:
  // Kinks that the caller knows split the panels and are not reported again.
  KinkSearch(const FunctionValues& f, std::vector<double> known) : f_{f}, known_{std::move(known)} {
    std::sort(known_.begin(), known_.end());
    const SearchPanel near{-1, 1};
    size_near_zero_ = series_of({&near, 1}).front().size();
  }

  Kinks run() {
    std::vector<SearchPanel> panels;
    Kinks found{{}, std::numeric_limits<double>::infinity()};
    // Edges of shells grow from 1.037... by factors of 2, so that no edge is a short number, where kinks are.
    double inner = 0;
    for (int shell = 0; inner < search_reach; ++shell) {
      const double outer = std::ldexp(first_shell, shell);
      std::vector<SearchPanel> above, below;
      // 0 is within the first panel, not at its edge: there most functions have their kinks.
      const bool is_covered = inner == 0 ? cover(-outer, outer, above)
                                         : cover(inner, outer, above) && cover(-outer, -inner, below);
      if (!is_covered) break;
      // The list runs from left to right: the negative shell, all inner shells, the positive shell.
      below.insert(below.end(), panels.begin(), panels.end());
      below.insert(below.end(), above.begin(), above.end());
      // A kink beside a shell's edge shows only in the panels on both sides of it, so that all
      // panels are searched again.
      std::vector<double> places = among(below);
      if (places.size() > most_kinks) {
        found.reach = inner;
        break;
      }
      panels = std::move(below);
      found.places = std::move(places);
      inner = outer;
    }
    return found;
  }

 private:
  /// Of all panels in one call of f: calls of Python's functions cost as much as hundreds of their values.
  [[nodiscard]] std::vector<IntervalSeries> series_of(std::span<const SearchPanel> panels) const {
    std::vector<double> places, values(IntervalSeries::value_count * panels.size());
    places.reserve(values.size());
    for (const SearchPanel& panel : panels) {
      const auto of_panel = IntervalSeries::places(panel.begin, panel.end);
      places.insert(places.end(), of_panel.begin(), of_panel.end());
    }
    if (!panels.empty()) f_(places, values.data());
    std::vector<IntervalSeries> result;
    result.reserve(panels.size());
    for (std::size_t i = 0; i < panels.size(); ++i) {
      const std::span<const double, IntervalSeries::value_count> of_panel{
          values.data() + i * IntervalSeries::value_count, IntervalSeries::value_count};
      // Where terms cancel, as in exp(x) - 1, values are not right to their own rounding.
      result.emplace_back(of_panel, panels[i].begin, panels[i].end,
                          1e-15 * farthest(panels[i]) * size_near_zero_);
    }
    return result;
  }

  [[nodiscard]] static double farthest(const SearchPanel& panel) {
    return std::max({1.0, std::abs(panel.begin), std::abs(panel.end)});
  }

  [[nodiscard]] double tolerance(const IntervalSeries& series, const SearchPanel& panel) const {
    return 2e-13 * series.size() + 1e-14 * farthest(panel) * size_near_zero_ + 2 * series.place_rounding();
  }

  [[nodiscard]] bool is_resolved(const IntervalSeries& series, const SearchPanel& panel) const {
    return series.tail() <= tolerance(series, panel);
  }

  /// Adds the panels of [begin, end] in their order, level by level; false where f is not finite or too many would be
  /// needed.
  bool cover(double begin, double end, std::vector<SearchPanel>& panels) const {
    std::vector<SearchPanel> open = between_known(begin, end);
    while (!open.empty()) {
      if (panels.size() + open.size() > most_shell_panels) return false;
      const std::vector<IntervalSeries> series = series_of(open);
      std::vector<SearchPanel> halves;
      for (std::size_t i = 0; i < open.size(); ++i) {
        const SearchPanel& panel = open[i];
        if (!std::isfinite(series[i].tail())) return false;
        if (is_resolved(series[i], panel) || panel.width() < least_width * farthest(panel)) {
          panels.push_back(panel);
          continue;
        }
        // The uneven split keeps edges off short numbers: a kink at an edge would make no panel narrow.
        const double middle = panel.begin + 0.4871 * panel.width();
        halves.push_back({panel.begin, middle});
        halves.push_back({middle, panel.end});
      }
      open = std::move(halves);
    }
    std::sort(panels.begin(), panels.end(),
              [](const SearchPanel& a, const SearchPanel& b) { return a.begin < b.begin; });
    return true;
  }

  [[nodiscard]] std::vector<SearchPanel> between_known(double begin, double end) const {
    std::vector<SearchPanel> parts;
    for (const double at : known_) {
      if (at <= begin || at >= end) continue;
      parts.push_back({begin, at});
      begin = at;
    }
    parts.push_back({begin, end});
    return parts;
  }

  /// The places in runs of panels of one width that are narrower than the panels on both sides of them.
  [[nodiscard]] std::vector<double> among(const std::vector<SearchPanel>& panels) const {
    std::vector<SearchPanel> regions, sides;
    for (std::size_t i = 0; i < panels.size();) {
      std::size_t end = i + 1;
      while (end < panels.size() && alike(panels[end], panels[i])) ++end;
      const bool falls = i > 0 && panels[i - 1].width() > panels[i].width();
      const bool rises = end < panels.size() && panels[end].width() > panels[end - 1].width();
      const SearchPanel region{panels[i].begin, panels[end - 1].end};
      if (falls && rises && !holds_known(region)) regions.push_back(region);
      i = end;
    }
    for (const SearchPanel& region : regions) {
      const double length = window_widths * region.width();
      sides.push_back({region.begin - length, region.begin});
      sides.push_back({region.end, region.end + length});
    }
    const std::vector<IntervalSeries> series = series_of(sides);
    std::vector<double> found;
    for (std::size_t k = 0; k < regions.size(); ++k) {
      const bool are_smooth =
          is_smooth_side(series[2 * k], sides[2 * k]) && is_smooth_side(series[2 * k + 1], sides[2 * k + 1]);
      add_place(regions[k], are_smooth ? kink_in(regions[k], series[2 * k], series[2 * k + 1]) : std::nullopt,
                found);
    }
    return found;
  }

  /// Whether two panels count as equally wide: the uneven split lets panels of one level differ by some per cent.
  static bool alike(const SearchPanel& one, const SearchPanel& other) {
    return std::max(one.width(), other.width()) < 1.2 * std::min(one.width(), other.width());
  }

  /// A known kink makes panels narrow.
  [[nodiscard]] bool holds_known(const SearchPanel& region) const {
    const auto known = std::lower_bound(known_.begin(), known_.end(), region.begin);
    return known != known_.end() && *known <= region.end;
  }

  static void add_place(const SearchPanel& region, std::optional<double> kink, std::vector<double>& found) {
    // Kinks are mostly at numbers of few decimals. The added 0.0 turns -0 into 0.
    const double middle = region.begin + region.width() / 2, written = std::round(middle * 1e4) / 1e4 + 0.0;
    const bool is_cusp = region.width() < cusp_width * std::max(1.0, std::abs(middle));
    if (kink)
      found.push_back(*kink);
    else if (is_cusp)
      found.push_back(written > region.begin && written < region.end ? written : middle);
  }

  /// The place within a region between two smooth sides, if both say so.
  [[nodiscard]] std::optional<double> kink_in(const SearchPanel& region, const IntervalSeries& left,
                                              const IntervalSeries& right) const {
    // The kink separates the places where f is closer to the left series from those where it
    // is closer to the right one.
    const auto is_left = [&](double x) { return distance(left, x) <= distance(right, x); };
    double begin = region.begin, end = region.end;
    if (!is_left(begin) || is_left(end)) return std::nullopt;
    while (end - begin > 1e-17) {
      const double middle = begin + (end - begin) / 2;
      if (middle <= begin || middle >= end) break;
      (is_left(middle) ? begin : end) = middle;
    }
    // How far a series departs from f beyond the kink: the scale of what the two sides differ by.
    const double signal = std::max(distance(left, region.end), distance(right, region.begin));
    if (!follows(left, region.begin, begin, signal) || !follows(right, region.end, end, signal))
      return std::nullopt;
    return rounded(end, left, right, signal);
  }

  [[nodiscard]] bool is_smooth_side(const IntervalSeries& series, const SearchPanel& side) const {
    return is_resolved(series, side) && series.degree() <= most_degree;
  }

  [[nodiscard]] double value(double x) const {
    double result = 0;
    f_({&x, 1}, &result);
    return result;
  }

  [[nodiscard]] double distance(const IntervalSeries& series, double x) const {
    return std::abs(value(x) - series(x));
  }

  /// Whether the series is f all the way from its own end to the kink.
  [[nodiscard]] bool follows(const IntervalSeries& series, double from, double kink, double signal) const {
    for (const double share : {0.2, 0.5, 0.8, 0.95})
      if (!(distance(series, from + share * (kink - from)) <= one_sided_share * signal)) return false;
    return true;
  }

  /// The short number beside it where both series agree so well that f cannot tell.
  [[nodiscard]] static double rounded(double kink, const IntervalSeries& left, const IntervalSeries& right,
                                      double signal) {
    const double written = std::round(kink * 1e4) / 1e4 + 0.0;
    const double nearest = 4 * std::numeric_limits<double>::epsilon() * std::max(1.0, std::abs(kink));
    const bool agree = std::abs(left(written) - right(written)) <= 1e-5 * signal;
    return agree || std::abs(written - kink) <= nearest ? written : kink;
  }

  const FunctionValues& f_;
  std::vector<double> known_;
  double size_near_zero_ = 0;
};

}  // namespace

QuadratureOptions with_kinks(const FunctionValues& function, QuadratureOptions options) {
  // This comes first: rounding to float makes kinks everywhere, and the search would have no end of them.
  require_double_values(function, options.name);
  options.breakpoints = sorted_breakpoints(std::move(options.breakpoints), options.name);
  const Kinks kinks = find_kinks(function, options.breakpoints);
  options.breakpoints.insert(options.breakpoints.end(), kinks.places.begin(), kinks.places.end());
  options.reach = std::min(options.reach, kinks.reach);
  return options;
}

Kinks find_kinks(const FunctionValues& f, const std::vector<double>& known) {
  return KinkSearch(f, known).run();
}

}  // namespace widelimit::numerics
