#include "widelimit/kernel/gram_gradient.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "numerics/central_slope.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_numbers.hpp"

namespace widelimit {
namespace {

/// A place on the line along the direction, in steps, with its weights in a difference of eighth order and in one of
/// fourth, which tells whether both mean a derivative.
struct Place {
  double steps;
  double weight;
  double coarse_weight;
};
using Stencil = std::vector<Place>;

Stencil central_stencil() {
  constexpr std::array<double, 4> coarse = {2.0 / 3, -1.0 / 12, 0, 0};
  Stencil places;
  for (std::size_t k = 0; k < coarse.size(); ++k)
    for (const double sign : {1.0, -1.0})
      places.push_back(
          {sign * static_cast<double>(k + 1), sign * numerics::central_weights[k], sign * coarse[k]});
  return places;
}

/// From 0 to one side.
Stencil one_sided_stencil(double side) {
  constexpr std::array<double, 9> fine = {-761.0 / 280, 8,         -14,     56.0 / 3, -35.0 / 2,
                                          56.0 / 5,     -14.0 / 3, 8.0 / 7, -1.0 / 8};
  constexpr std::array<double, 9> coarse = {-25.0 / 12, 4, -3, 4.0 / 3, -1.0 / 4, 0, 0, 0, 0};
  Stencil places;
  for (std::size_t k = 0; k < fine.size(); ++k)
    places.push_back({side * static_cast<double>(k), side * fine[k], side * coarse[k]});
  return places;
}

/// Differences of one kernel.
struct KernelDifference {
  Matrix<double> fine;
  Matrix<double> coarse;
  double largest = 0;  ///< Entry of the kernel.

  void add(const Matrix<double>& kernel, const Place& place) {
    if (kernel.size() == 0) return;
    if (fine.size() == 0) {
      fine = Matrix<double>::Zero(kernel.rows(), kernel.cols());
      coarse = fine;
    }
    fine += place.weight * kernel;
    coarse += place.coarse_weight * kernel;
    largest = std::max(largest, kernel.cwiseAbs().maxCoeff());
  }
};

/// The line of networks through one along a direction of its numbers.
class NumberLine {
 public:
  NumberLine(const Network& network, const NumberDirection& direction)
      : name_{fmt::format("{}", fmt::join(paths_of(direction), ", "))},
        numbers_(network, paths_of(direction)) {
    for (const auto& [path, change] : direction) {
      if (!std::isfinite(change))
        throw ArgumentError(fmt::format("gram_jvp: the change of '{}' must be finite, got {}", path, change));
      changes_.push_back(change);
    }
    if (std::none_of(changes_.begin(), changes_.end(), [](double change) { return change != 0; }))
      throw ArgumentError("gram_jvp: expected a direction along which a number changes, got none");
    step_ = step();
    stencil_ = stencil();
  }

  /// `kernels_of`: Gram matrices of a network of the line, with the number of those that were computed before.
  [[nodiscard]] GramResult<double> derivative(
      const std::function<GramResult<double>(const Network&, std::size_t, std::size_t)>& kernels_of) const {
    KernelDifference nngp, ntk;
    for (std::size_t i = 0; i < stencil_.size(); ++i) {
      const GramResult<double> kernels = kernels_of(at(stencil_[i].steps), i, stencil_.size());
      nngp.add(kernels.nngp, stencil_[i]);
      ntk.add(kernels.ntk, stencil_[i]);
    }
    return {finished(std::move(nngp), "nngp"), finished(std::move(ntk), "ntk"), {}, {}};
  }

 private:
  static std::vector<std::string> paths_of(const NumberDirection& direction) {
    std::vector<std::string> paths;
    for (const auto& [path, change] : direction) paths.push_back(path);
    return paths;
  }

  /// Small against every number, but not against how closely kernels follow numbers near 0.
  [[nodiscard]] double step() const {
    constexpr double relative = 0x1p-12, least_size = 0x1p-6;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < changes_.size(); ++i)
      if (changes_[i] != 0)
        least = std::min(
            least, relative * std::max(std::abs(numbers_.values()[i]), least_size) / std::abs(changes_[i]));
    return least;
  }

  [[nodiscard]] Network at(double steps) const {
    std::vector<double> values = numbers_.values();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += steps * step_ * changes_[i];
    return numbers_.with(values);
  }

  [[nodiscard]] bool is_in_range(double steps) const {
    try {
      static_cast<void>(at(steps));
      return true;
    } catch (const NetworkError&) {
      return false;
    }
  }

  [[nodiscard]] Stencil stencil() const {
    constexpr double central_reach = 4, one_sided_reach = 8;
    if (is_in_range(central_reach) && is_in_range(-central_reach)) return central_stencil();
    for (const double side : {1.0, -1.0})
      if (is_in_range(side * one_sided_reach)) return one_sided_stencil(side);
    throw NumericalError(
        fmt::format("gram_jvp: {}: the numbers' ranges leave no room for differences of {:.3g}", name_,
                    one_sided_reach * step_));
  }

  [[nodiscard]] Matrix<double> finished(KernelDifference difference, const char* kernel) const {
    if (difference.fine.size() == 0) return {};
    // A jump gives both of them the size of the kernel over the step; a kink, that of its change.
    constexpr double agreement = 1e-4, rounding = 1e-9;
    const double gap = (difference.fine - difference.coarse).cwiseAbs().maxCoeff(),
                 size = difference.fine.cwiseAbs().maxCoeff();
    if (!(gap <= agreement * size + rounding * difference.largest))
      throw NumericalError(fmt::format(
          "gram_jvp: {}: the {} has no derivative there: differences of eighth and of fourth order differ "
          "by {:.3g} where the largest is {:.3g}",
          name_, kernel, gap / step_, size / step_));
    return difference.fine / step_;
  }

  std::string name_;
  NetworkNumbers numbers_;
  std::vector<double> changes_;
  double step_ = 0;
  Stencil stencil_;
};

/// x2 null: of x1 with itself.
GramResult<double> along(const Network& network, const Inputs<double>& x1, const Inputs<double>* x2,
                         const NumberDirection& direction, Kernels kernels, const RunControl& run) {
  return NumberLine(network, direction)
      .derivative([&](const Network& changed, std::size_t before, std::size_t all) {
        GramOptions options{.kernels = kernels, .threads = run.threads, .stop = run.stop};
        if (run.progress)
          options.progress = [&](const GramProgress& progress) {
            run.progress(static_cast<Index>(before) * progress.total + progress.done,
                         static_cast<Index>(all) * progress.total);
          };
        return x2 == nullptr ? gram(changed, x1, options) : gram(changed, x1, *x2, options);
      });
}

std::vector<GramResult<double>> by_each(const Network& network, const Inputs<double>& x1,
                                        const Inputs<double>* x2, const std::vector<std::string>& numbers,
                                        Kernels kernels, const RunControl& run) {
  static_cast<void>(NetworkNumbers(network, numbers));
  std::vector<GramResult<double>> results;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    RunControl part = run;
    if (run.progress)
      part.progress = [&run, i, all = numbers.size()](Index done, Index total) {
        run.progress(static_cast<Index>(i) * total + done, static_cast<Index>(all) * total);
      };
    results.push_back(along(network, x1, x2, {{numbers[i], 1}}, kernels, part));
  }
  return results;
}

}  // namespace

GramResult<double> gram_jvp(const Network& network, const Inputs<double>& x, const NumberDirection& direction,
                            Kernels kernels, const RunControl& run) {
  return along(network, x, nullptr, direction, kernels, run);
}

GramResult<double> gram_jvp(const Network& network, const Inputs<double>& x1, const Inputs<double>& x2,
                            const NumberDirection& direction, Kernels kernels, const RunControl& run) {
  return along(network, x1, &x2, direction, kernels, run);
}

std::vector<GramResult<double>> gram_gradient(const Network& network, const Inputs<double>& x,
                                              const std::vector<std::string>& numbers, Kernels kernels,
                                              const RunControl& run) {
  return by_each(network, x, nullptr, numbers, kernels, run);
}

std::vector<GramResult<double>> gram_gradient(const Network& network, const Inputs<double>& x1,
                                              const Inputs<double>& x2,
                                              const std::vector<std::string>& numbers, Kernels kernels,
                                              const RunControl& run) {
  return by_each(network, x1, &x2, numbers, kernels, run);
}

}  // namespace widelimit
