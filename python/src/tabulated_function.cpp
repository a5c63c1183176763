#include "tabulated_function.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <mutex>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/numerics/numerical_derivative.hpp"

namespace widelimit::python {

namespace {

constexpr int order = 24;
/// |x| < 2^-24, [2^-24, 2^-23), ... [2^41, 2^42): quadrature looks so far out, and so near to 0, where powers have all
/// digits of their small values.
constexpr int octaves = 67;
constexpr int below_one = 24;                 // Octaves of |x| < 1 but the first.
constexpr int near_octaves = below_one + 15;  // Beyond them functions are simple, or left alone.
constexpr int deepest = 40;
constexpr std::size_t most_series = 4096;
constexpr std::size_t most_exact_series = 512;
constexpr int middle_octaves =
    near_octaves + 2;  // Meshes of functions that oscillate like cos(x) end in them.
constexpr std::size_t most_far_series = 8;
constexpr std::size_t most_unresolved = 64;
constexpr double rounding = 2e-15;
constexpr int needed_octaves = below_one + 7;  // |x| < 64: quadrature does without what is farther out.
constexpr double roughness = 2e-9;  // of an interval's largest value: more is not smooth to quadrature

using Coefficients = std::array<double, order>;

/// cos(pi (k + 1/2) / order): where values are taken.
const Coefficients& nodes() {
  static const Coefficients result = [] {
    Coefficients places;
    for (int k = 0; k < order; ++k)
      places[static_cast<std::size_t>(k)] = std::cos(std::numbers::pi * (k + 0.5) / order);
    return places;
  }();
  return result;
}

/// One interval of a table.
struct Interval {
  double begin;
  double end;
  Coefficients coefficients;

  /// Clenshaw's recurrence.
  double operator()(double x) const {
    const double t = (2 * x - begin - end) / (end - begin);
    double last = 0, before = 0;
    for (std::size_t k = order - 1; k > 0; --k) {
      const double next = 2 * t * last - before + coefficients[k];
      before = last;
      last = next;
    }
    return t * last - before + coefficients[0];
  }

  /// The same recurrence: the derivative of T_k is k U_{k-1}.
  double derivative(double x) const {
    const double t = (2 * x - begin - end) / (end - begin);
    double last = 0, before = 0;
    for (std::size_t k = order - 1; k > 0; --k) {
      const double next = 2 * t * last - before + static_cast<double>(k) * coefficients[k];
      before = last;
      last = next;
    }
    return 2 / (end - begin) * last;
  }
};

/// The intervals of one octave, in their order; none where the function is called itself.
struct Octave {
  std::once_flag made;
  std::vector<Interval> intervals;
};

/// T_j at the k-th node.
const std::array<Coefficients, order>& cosines() {
  static const std::array<Coefficients, order> result = [] {
    std::array<Coefficients, order> table;
    for (int j = 0; j < order; ++j)
      for (int k = 0; k < order; ++k)
        table[static_cast<std::size_t>(j)][static_cast<std::size_t>(k)] =
            std::cos(std::numbers::pi * j * (k + 0.5) / order);
    return table;
  }();
  return result;
}

Coefficients chebyshev_series(const Coefficients& values) {
  Coefficients series{};
  if (std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; })) {
    series[0] = values[0];  // Without rounding: differences of a step are 0.
    return series;
  }
  for (std::size_t j = 0; j < order; ++j) {
    double sum = 0;
    for (std::size_t k = 0; k < order; ++k) sum += values[k] * cosines()[j][k];
    series[j] = (j == 0 ? 1.0 : 2.0) / order * sum;
  }
  return series;
}

/// Whether the last coefficients have fallen to a tolerance.
bool has_converged(const Coefficients& series, double tolerance) {
  const auto is_small = [&](double coefficient) { return std::abs(coefficient) <= tolerance; };
  return std::all_of(series.end() - 4, series.end(), is_small);
}

Coefficients places_of(double begin, double end) {
  Coefficients places;
  for (std::size_t k = 0; k < order; ++k) places[k] = 0.5 * (begin + end) + 0.5 * (end - begin) * nodes()[k];
  return places;
}

/// The intervals of one octave while they are found.
struct Search {
  std::size_t most_series;  ///< More are too many.
  double noise;  ///< What counts as rounding of the function, beside a share of an interval's largest value.
  std::size_t
      most_unresolved;  ///< Intervals of the least length without a series; more are noise, not kinks.
  double share = 1e-14;
  std::size_t unresolved = 0;
  bool is_hopeless = false;
  std::vector<Interval> intervals{};
};

struct Span {
  double begin, end;
};

}  // namespace

class TabulatedFunction::Series {
 public:
  Series(numerics::FunctionValues function, const numerics::QuadratureOptions& options)
      : function_{std::move(function)}, breakpoints_{options.breakpoints}, name_{options.name} {
    std::sort(breakpoints_.begin(), breakpoints_.end());
    by_differences_ = numerics::numerical_derivative([this](double x) { return (*this)(x); }, breakpoints_);
  }
  Series(const Series&) = delete;
  Series& operator=(const Series&) = delete;

  double operator()(double x) {
    const Interval* interval = interval_of(x);
    return interval == nullptr ? directly(x) : (*interval)(x);
  }

  double derivative(double x) {
    const Interval* interval = interval_of(x);
    return interval == nullptr ? by_differences_(x) : interval->derivative(x);
  }

 private:
  /// That with a series for x; null where there is none.
  const Interval* interval_of(double x) {
    if (!(std::abs(x) < 0x1p42)) return nullptr;
    const int number = std::abs(x) < std::ldexp(1.0, -below_one) ? 0 : below_one + 1 + std::ilogb(x);
    Octave& octave = (std::signbit(x) ? negative_ : positive_)[static_cast<std::size_t>(number)];
    std::call_once(octave.made, [&] { make(octave, number, std::signbit(x)); });
    if (octave.intervals.empty()) return nullptr;
    const auto behind =
        std::upper_bound(octave.intervals.begin(), octave.intervals.end(), x,
                         [](double at, const Interval& interval) { return at < interval.end; });
    return behind == octave.intervals.end() ? &octave.intervals.back() : &*behind;
  }

  double directly(double x) const {
    double value = 0;
    function_({&x, 1}, &value);
    return value;
  }

  void make(Octave& octave, int number, bool is_negative) const {
    const double far = std::ldexp(1.0, number - below_one), near = number == 0 ? 0 : far / 2;
    const double begin = is_negative ? -far : near, end = is_negative ? -near : far;
    // Where terms cancel, as in 1 + tanh(x) for x < 0, values have less than 1e-14 of themselves right: there the
    // terms' rounding is all that a series can come to.
    const bool is_near = number < near_octaves;
    Search exact{is_near ? most_exact_series : most_far_series, 0, most_unresolved},
        rounded{number < middle_octaves ? most_series : most_far_series, 0, most_series};
    if (add(begin, end, exact)) {
      octave.intervals = std::move(exact.intervals);
      return;
    }
    // Places are rounded too, which moves a function that oscillates by that share of its own size.
    rounded.share = std::max(rounded.share, rounding * far);
    rounded.noise = rounding * std::max(far, 1.0) * largest_near_zero();
    if (add(begin, end, rounded))
      octave.intervals = std::move(rounded.intervals);
    else if (number < needed_octaves)
      require_smooth(begin, end);
  }

  /// Whether quadrature could do with the function itself: it asks for values until it knows, and each is dear.
  void require_smooth(double begin, double end) const {
    Search coarse{most_series, 0, most_series};
    coarse.share = roughness;
    if (add(begin, end, coarse) || !coarse.is_hopeless) return;
    throw ArgumentError(
        fmt::format("{}: phi or its derivative is too rough for quadrature where x is between {:g} and {:g}: "
                    "expected a function of smooth pieces, computed in double (float64), got one that {} "
                    "series do not follow to {:g} of its size: give the dual itself instead",
                    name_, begin, end, most_series, roughness));
  }

  /// Over [-1, 1], of the values that are finite.
  double largest_near_zero() const {
    const Coefficients places = places_of(-1, 1);
    Coefficients values;
    function_(places, values.data());
    double largest = 0;
    for (const double value : values)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    return largest;
  }

  /// Adds series of [begin, end) to the search, level by level, each in one call of the function; false if there is no
  /// table of it.
  bool add(double begin, double end, Search& search) const {
    std::vector<Span> open = between_breakpoints(begin, end);
    for (int depth = deepest; !open.empty(); --depth) {
      search.is_hopeless = search.intervals.size() + open.size() > search.most_series;
      if (search.is_hopeless) return false;
      const std::vector<double> values = values_in(open);
      std::vector<Span> halves;
      for (std::size_t i = 0; i < open.size(); ++i) {
        const Span& span = open[i];
        Coefficients of_span;
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * order), order, of_span.begin());
        double largest = 0;
        for (const double value : of_span) {
          if (!std::isfinite(value)) return false;
          largest = std::max(largest, std::abs(value));
        }
        const Coefficients series = chebyshev_series(of_span);
        if (!has_converged(series, std::max(search.share * largest, search.noise))) {
          const double middle = 0.5 * (span.begin + span.end);
          if (depth > 0 && span.begin < middle && middle < span.end) {
            halves.push_back({span.begin, middle});
            halves.push_back({middle, span.end});
            continue;
          }
          search.is_hopeless = ++search.unresolved > search.most_unresolved;
          if (search.is_hopeless) return false;
        }
        search.intervals.push_back({span.begin, span.end, series});
      }
      open = std::move(halves);
    }
    std::sort(search.intervals.begin(), search.intervals.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    return true;
  }

  [[nodiscard]] std::vector<Span> between_breakpoints(double begin, double end) const {
    std::vector<Span> parts;
    for (const double at : breakpoints_) {
      if (at <= begin || at >= end) continue;
      parts.push_back({begin, at});
      begin = at;
    }
    parts.push_back({begin, end});
    return parts;
  }

  /// The function's values at the places of all spans, one span after another.
  [[nodiscard]] std::vector<double> values_in(const std::vector<Span>& spans) const {
    std::vector<double> places, values(order * spans.size());
    places.reserve(values.size());
    for (const Span& span : spans) {
      const Coefficients of_span = places_of(span.begin, span.end);
      places.insert(places.end(), of_span.begin(), of_span.end());
    }
    function_(places, values.data());
    return values;
  }

  numerics::FunctionValues function_;
  std::vector<double> breakpoints_;
  std::string name_;
  std::function<double(double)> by_differences_;
  std::array<Octave, octaves> positive_, negative_;
};

TabulatedFunction::TabulatedFunction(numerics::FunctionValues function,
                                     const numerics::QuadratureOptions& options)
    : series_{std::make_shared<Series>(std::move(function), options)} {}

double TabulatedFunction::operator()(double x) const { return (*series_)(x); }

double TabulatedFunction::derivative(double x) const { return series_->derivative(x); }

}  // namespace widelimit::python
