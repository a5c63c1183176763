#include "widelimit/numerics/quadrature_activation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "numerics/adjoint_entry.hpp"
#include "numerics/cusps.hpp"
#include "numerics/deep_series.hpp"
#include "numerics/energy_window.hpp"
#include "numerics/gauss_legendre.hpp"
#include "numerics/mehler_slopes.hpp"
#include "numerics/mehler_table.hpp"
#include "numerics/pair_quadrature.hpp"
#include "numerics/quadrature_parts.hpp"
#include "numerics/rows/series_rows.hpp"
#include "numerics/smooth_mesh.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/numerical_derivative.hpp"

namespace widelimit::numerics {
namespace {

/// Largest rest relative to the root mean squares: the series' own rounding is a hundred times smaller.
template <typename Scalar>
constexpr double log_tolerance = -27.6;  // log(1e-12)
template <>
constexpr double log_tolerance<float> = -16.1;  // log(1e-7)

/// Terms of slopes exceed those of the dual by factors up to their order, so that the series must
/// leave a hundredth of the rest.
constexpr double slope_margin = 4.6;

/// Entries that no series serves are few: their places are kept for so many at a time.
constexpr std::size_t part_size = 256;

FunctionValues values_of(const std::function<double(double)>& function) {
  return [&function](std::span<const double> x, double* values) {
    for (const double at : x) *values++ = function(at);
  };
}

/// phi' with the mean of both sides at 0 if phi has a kink there, which is what a variance of 0 takes for phi'(0). The
/// mean at two small distances is extrapolated to distance 0.
std::function<double(double)> with_mean_at_zero(std::function<double(double)> derivative,
                                                const std::vector<double>& breakpoints) {
  if (std::ranges::find(breakpoints, 0.0) == breakpoints.end()) return derivative;
  constexpr double near = 1e-6;
  const auto mean = [&](double distance) { return (derivative(distance) + derivative(-distance)) / 2; };
  const double at_zero = 2 * mean(near) - mean(2 * near);
  return [derivative = std::move(derivative), at_zero](double x) { return x == 0 ? at_zero : derivative(x); };
}

/// Options that know the kinks of all functions, if those are to be found.
QuadratureOptions completed(std::initializer_list<const std::function<double(double)>*> functions,
                            QuadratureOptions options) {
  options.breakpoints = sorted_breakpoints(std::move(options.breakpoints), options.name);
  if (options.finds_kinks)
    for (const auto* function : functions) options = with_kinks(values_of(*function), std::move(options));
  return options;
}

}  // namespace

/// All that a QuadratureActivation has: the function, its mesh, and the tables and rules of its dual. Threads share it;
/// only its tables are completed on demand, each piece by one thread.
class QuadratureActivation::Implementation {
 public:
  Implementation(const Function& value, Function derivative, const QuadratureOptions& options)
      // The order of the members matters: the mesh reads phi, the window both, and the tables all of them.
      : phi{value, with_mean_at_zero(std::move(derivative), options.breakpoints),
            cusps_among(options.breakpoints, value, options.name), options.name},
        mesh{phi, options.breakpoints, options.reach},
        window{phi, mesh},
        table{phi, mesh, window, series_truncations.back(), series_truncations},
        series_slopes{table},
        deep{phi, mesh, window},
        pairs{phi, mesh, window},
        second_derivative{[this](double x) { return second_difference(x); }} {}

  [[nodiscard]] std::size_t auxiliary_count() const {
    return SeriesArrays::coefficients + table.stride() - MehlerTable::first_coefficient;
  }

  template <typename Scalar>
  void prepare(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) const {
    std::vector<double> numbers(table.stride());
    std::array<double, series_truncations.size()> tails{};
    for (std::size_t i = 0; i < size; ++i) {
      const auto p = static_cast<double>(variance[i]);
      table.coefficients(p, numbers);
      auxiliary[SeriesArrays::variance][i] = variance[i];
      auxiliary[SeriesArrays::inverse_deviation][i] = static_cast<Scalar>(p > 0 ? 1 / std::sqrt(p) : 0);
      auxiliary[SeriesArrays::mean][i] = static_cast<Scalar>(numbers[0]);
      table.log_tails(p, numbers, series_truncations, tails);
      // |rho|^order times both shares must stay below the tolerance: each position allows its half of the logarithm.
      for (std::size_t t = 0; t < tails.size(); ++t)
        auxiliary[SeriesArrays::reach + t][i] = static_cast<Scalar>(
            std::exp((log_tolerance<Scalar> / 2 - tails[t]) / order_of(series_truncations[t])));
      for (std::size_t k = MehlerTable::first_coefficient; k < numbers.size(); ++k)
        auxiliary[SeriesArrays::coefficients + k - MehlerTable::first_coefficient][i] =
            static_cast<Scalar>(numbers[k]);
    }
  }

  template <typename Scalar>
  void apply(const DualRow<Scalar>& row) const {
    if (row.ntk != nullptr) require_derivative_dual("the NTK");
    // Neighbouring entries often share a variance, so caches of interpolated coefficients live as long as the row.
    Caches caches;
    std::array<std::size_t, part_size> hard;
    for (std::size_t begin = 0; begin < row.size; begin += part_size) {
      const SeriesPart part{begin, std::min(part_size, row.size - begin)};
      const std::size_t count = series_rows<Scalar>().apply(series<Scalar>(), row, part, hard.data());
      // The vectorised series has left out the entries that need more orders; these are computed one by one.
      for (std::size_t i = 0; i < count; ++i) apply_hard(row, hard[i], caches);
    }
  }

  /// ArgumentError naming what needs E[phi' phi'].
  void require_derivative_dual(const char* needing) const {
    if (phi.has_derivative_dual()) return;
    throw ArgumentError(fmt::format(
        "{}: {} needs E phi'^2, which is infinite or too close to a cusp of phi to be computed: "
        "near {:.6g} phi is steeper than |x - {:.6g}|^{:g}; ask for the NNGP alone, give the dual "
        "itself, or round the cusp off",
        phi.name, needing, phi.cusps.front(), phi.cusps.front(), steepest_exponent));
  }

  SmoothFunction phi;
  SmoothMesh mesh;
  EnergyWindow window;
  MehlerTable table;
  MehlerSlopes series_slopes;
  DeepSeries deep;
  PairQuadrature pairs;
  std::function<double(double)> second_derivative;

  struct Caches {
    DeepSeries::Cache left;
    DeepSeries::Cache right;
  };

  /// The slopes at entry `at` of a row, from what is prepared of it; nothing where no series converges.
  template <typename Scalar>
  [[nodiscard]] std::optional<DualSlopes> slopes(const AdjointRow<Scalar>& row, std::size_t at,
                                                 Caches& caches) const {
    const auto p = static_cast<double>(row.left_variance[at]),
               q = static_cast<double>(row.right_variance[at]);
    const auto c = static_cast<double>(row.nngp[at]);
    const double rho = c * static_cast<double>(row.left[SeriesArrays::inverse_deviation][at]) *
                       static_cast<double>(row.right[SeriesArrays::inverse_deviation][at]);
    // The short series, whose coefficients are prepared, is tried first.
    const std::size_t level = needed_level(row, at, std::clamp(rho, -1.0, 1.0), slope_margin);
    if (level == series_truncations.size())
      return hard_slopes(p, q, c, log_tolerance<Scalar> - slope_margin, caches);
    std::array<double, most_numbers> left{}, right{};
    gather(row.left, at, series_truncations[level], left);
    gather(row.right, at, series_truncations[level], right);
    return series_slopes.at(left, right, p, q, c, series_truncations[level]);
  }

 private:
  static constexpr std::size_t most_numbers = MehlerTable::first_coefficient + 2 * series_truncations.back();

  /// Of phi'. Half a panel away phi' is as smooth as within it.
  [[nodiscard]] double second_difference(double x) const {
    if (!(std::abs(x) < mesh.reach())) return 0;
    return extrapolated_difference(phi.derivative, x, mesh.width(mesh.find(x)) / 2);
  }

  /// By the deep series, or the nested rules where phi is smooth.
  [[nodiscard]] std::optional<DualSlopes> hard_slopes(double p, double q, double c, double tolerance,
                                                      Caches& caches) const {
    if (auto slopes = deep.slopes(p, q, c, tolerance, caches.left, caches.right)) return slopes;
    // Functions with kinks have no phi'' that differences of phi' could give; the caller then
    // takes differences of the dual.
    if (!mesh.breakpoints().empty()) return std::nullopt;
    return pairs.slopes(p, q, c, gauss_legendre_15(), second_derivative);
  }

  /// The numbers of a position in the order of MehlerTable.
  template <typename Scalar>
  void gather(const Scalar* const* prepared, std::size_t at, std::size_t orders,
              std::array<double, most_numbers>& numbers) const {
    numbers[0] = static_cast<double>(prepared[SeriesArrays::mean][at]);
    // The numbers are coefficients of phi', followed by the rises where they differ.
    for (std::size_t first = 0; first < (table.has_own_rises() ? 2 : 1) * series_truncations.back();
         first += series_truncations.back())
      for (std::size_t k = first; k < first + orders; ++k)
        numbers[MehlerTable::first_coefficient + k] =
            static_cast<double>(prepared[SeriesArrays::coefficients + k][at]);
  }

  template <typename Scalar>
  void apply_hard(const DualRow<Scalar>& row, std::size_t at, Caches& caches) const {
    if (std::isnan(row.nngp[at])) return;  // NaN stays NaN.
    const Dual<double> entry = hard_entry<Scalar>(static_cast<double>(row.left[SeriesArrays::variance][at]),
                                                  static_cast<double>(row.right[SeriesArrays::variance][at]),
                                                  static_cast<double>(row.nngp[at]), caches);
    row.nngp[at] = static_cast<Scalar>(entry.value);
    if (row.ntk != nullptr) row.ntk[at] *= static_cast<Scalar>(entry.derivative);
  }

  template <typename Scalar>
  [[nodiscard]] Dual<double> hard_entry(double p, double q, double c, Caches& caches) const {
    if (const auto entry = deep.dual(p, q, c, log_tolerance<Scalar>, caches.left, caches.right))
      return *entry;
    return pairs.dual(p, q, c, gauss_legendre_15());
  }

  [[nodiscard]] double order_of(std::size_t terms) const { return static_cast<double>(table.order(terms)); }

  /// The first truncation whose rest is exp(-margin) of what apply() allows; series_truncations.size() if none. What is
  /// not a number counts as converged: it stays so.
  template <typename Scalar>
  [[nodiscard]] std::size_t needed_level(const AdjointRow<Scalar>& row, std::size_t at, double rho,
                                         double margin) const {
    std::size_t level = 0;
    for (; level < series_truncations.size(); ++level) {
      const double reach = static_cast<double>(row.left[SeriesArrays::reach + level][at]) *
                           static_cast<double>(row.right[SeriesArrays::reach + level][at]);
      // reach^order is what the truncation allows: the entry is served if (|rho| /
      // reach)^order is at most exp(-margin).
      if (!(order_of(series_truncations[level]) * std::log(std::abs(rho) / reach) > -margin)) break;
    }
    return level;
  }

  template <typename Scalar>
  [[nodiscard]] const SeriesDual<Scalar>& series() const {
    if constexpr (sizeof(Scalar) == sizeof(float))
      return narrow_series_;
    else
      return wide_series_;
  }

  template <typename Scalar>
  [[nodiscard]] SeriesDual<Scalar> make_series() const {
    SeriesDual<Scalar> dual{};
    for (std::size_t j = 0; j < dual.inverse_orders.size(); ++j)
      dual.inverse_orders[j] = static_cast<Scalar>(1 / static_cast<double>(table.order(j) + 1));
    dual.first_skips = table.order(1) - table.order(0) == 2;
    dual.others_skip = table.order(2) - table.order(1) == 2;
    dual.rises = table.has_own_rises();
    return dual;
  }

  // Members are initialised in the order of their declaration: these read the table and stand after it.
  SeriesDual<float> narrow_series_ = make_series<float>();
  SeriesDual<double> wide_series_ = make_series<double>();
};

QuadratureActivation::QuadratureActivation(Function phi, Function phi_derivative,
                                           const QuadratureOptions& options) {
  if (!phi || !phi_derivative)
    throw ArgumentError(options.name + ": phi and phi_derivative must be callable, one of them is empty");
  const QuadratureOptions all = completed({&phi, &phi_derivative}, options);
  implementation_ = std::make_unique<const Implementation>(phi, std::move(phi_derivative), all);
}

QuadratureActivation::QuadratureActivation(Function phi, const QuadratureOptions& options) {
  if (!phi) throw ArgumentError(options.name + ": phi must be callable, got an empty function");
  const QuadratureOptions all = completed({&phi}, options);
  auto derivative = numerical_derivative(phi, all.breakpoints);
  implementation_ = std::make_unique<const Implementation>(phi, std::move(derivative), all);
}

QuadratureActivation::~QuadratureActivation() = default;

double QuadratureActivation::value(double x) const { return implementation_->phi.value(x); }

double QuadratureActivation::derivative(double x) const { return implementation_->phi.derivative(x); }

/// Lets dual() and slopes() of single entries run through the code of rows, so that both have the same bits.
namespace {

/// What is prepared of the two positions of one entry.
struct PreparedEntry {
  PreparedEntry(const QuadratureActivation& activation, double p, double q)
      : numbers(2 * activation.auxiliary_count()) {
    const std::size_t count = activation.auxiliary_count();
    for (std::size_t k = 0; k < count; ++k) {
      left.push_back(numbers.data() + k);
      right.push_back(numbers.data() + count + k);
    }
    activation.prepare(&p, left.data(), 1);
    activation.prepare(&q, right.data(), 1);
  }
  std::vector<double> numbers;
  std::vector<double*> left, right;
};

}  // namespace

Dual<double> QuadratureActivation::dual(double p, double q, double c) const {
  const PreparedEntry entry(*this, p, q);
  const bool differentiates = implementation_->phi.has_derivative_dual();
  double derivative = differentiates ? 1 : std::numeric_limits<double>::quiet_NaN();
  apply(
      DualRow<double>{&c, differentiates ? &derivative : nullptr, entry.left.data(), entry.right.data(), 1});
  return {c, derivative};
}

DualSlopes QuadratureActivation::slopes(double p, double q, double c) const {
  implementation_->require_derivative_dual("a slope of the dual");
  const PreparedEntry entry(*this, p, q);
  AdjointRow<double> row{};
  row.nngp = &c;
  row.left_variance = &p;
  row.right_variance = &q;
  row.left = entry.left.data();
  row.right = entry.right.data();
  Implementation::Caches caches;
  const auto slopes = implementation_->slopes(row, 0, caches);
  return slopes ? *slopes : Activation::slopes(p, q, c);
}

SelfSlopes QuadratureActivation::self_slopes(double p) const {
  implementation_->require_derivative_dual("a slope of the dual");
  return implementation_->table.energies(p);
}

template <typename Scalar>
void QuadratureActivation::apply_adjoint_row(const AdjointRow<Scalar>& row) const {
  implementation_->require_derivative_dual("a slope of the dual");
  Implementation::Caches caches;
  for (std::size_t i = 0; i < row.size; ++i) {
    const auto slopes = implementation_->slopes(row, i, caches);
    write_checked_adjoint(row, i,
                          slopes ? *slopes
                                 : Activation::slopes(static_cast<double>(row.left_variance[i]),
                                                      static_cast<double>(row.right_variance[i]),
                                                      static_cast<double>(row.nngp[i])));
  }
}

void QuadratureActivation::apply_adjoint(const AdjointRow<float>& row) const { apply_adjoint_row(row); }

void QuadratureActivation::apply_adjoint(const AdjointRow<double>& row) const { apply_adjoint_row(row); }

// The error takes the larger of two differences: result against the fine rule, and fine against coarse rule.
DualEstimate QuadratureActivation::estimate(double p, double q, double c) const {
  const Dual<double> result = dual(p, q, c);
  const Dual<double> fine = implementation_->pairs.dual(p, q, c, gauss_legendre_15());
  const Dual<double> coarse = implementation_->pairs.dual(p, q, c, gauss_legendre_10());
  return {result,
          {std::max(std::abs(result.value - fine.value), std::abs(fine.value - coarse.value)),
           std::max(std::abs(result.derivative - fine.derivative),
                    std::abs(fine.derivative - coarse.derivative))}};
}

QuadratureParts QuadratureActivation::parts() const {
  const Implementation& all = *implementation_;
  return {all.phi, all.mesh, all.window, all.table, all.deep.table()};
}

void QuadratureActivation::require_derivative_dual(const char* needing) const {
  implementation_->require_derivative_dual(needing);
}

std::size_t QuadratureActivation::auxiliary_count() const { return implementation_->auxiliary_count(); }

void QuadratureActivation::prepare(const float* variance, float* const* auxiliary, std::size_t size) const {
  implementation_->prepare(variance, auxiliary, size);
}

void QuadratureActivation::prepare(const double* variance, double* const* auxiliary, std::size_t size) const {
  implementation_->prepare(variance, auxiliary, size);
}

void QuadratureActivation::apply(const DualRow<float>& row) const { implementation_->apply(row); }

void QuadratureActivation::apply(const DualRow<double>& row) const { implementation_->apply(row); }

std::shared_ptr<const QuadratureActivation> quadrature_activation(
    QuadratureActivation::Function phi, QuadratureActivation::Function phi_derivative,
    const QuadratureOptions& options) {
  return std::make_shared<const QuadratureActivation>(std::move(phi), std::move(phi_derivative), options);
}

std::shared_ptr<const QuadratureActivation> quadrature_activation(QuadratureActivation::Function phi,
                                                                  const QuadratureOptions& options) {
  return std::make_shared<const QuadratureActivation>(std::move(phi), options);
}

}  // namespace widelimit::numerics
