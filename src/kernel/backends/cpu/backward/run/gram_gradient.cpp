#include "widelimit/kernel/gram_gradient.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernel/backends/cpu/backward/plan/hyperparameter_stencil.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_numbers.hpp"

namespace widelimit {
namespace {

/// The two differences of one kernel, not yet divided by the step, and the size of the kernel, on which their
/// rounding depends.
struct KernelDifference {
  Matrix<double> fine;
  Matrix<double> coarse;
  double largest = 0;  ///< The largest absolute entry of the kernels.

  void add(const Matrix<double>& kernel, const StencilPlace& place) {
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

/// Computes the Gram matrices of a network. The other arguments are how many networks came before it and how many
/// there are, for reports of progress.
using KernelsOf = std::function<GramResult<double>(const Network&, std::size_t, std::size_t)>;

struct BothDifferences {
  KernelDifference nngp, ntk;
};

/// The line of networks through one network along a direction of its numbers, with differences of kernels along it.
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
  }

  /// The step of which derivatives of a few kernels agree best with those of a quarter of it. Longer steps miss how
  /// the kernels bend, shorter ones drown in rounding. How closely kernels follow a number depends on the inputs as
  /// well as on the network. If no step tells anything, since nothing depends on the number, the longest one is
  /// taken.
  [[nodiscard]] double best_step(const KernelsOf& kernels_of) const {
    // The shortest step is 2^-24 = 6e-8 of the longest one, where rounding leaves about seven digits of a difference.
    constexpr int most_quarters = 12;
    const double longest = longest_step();
    std::optional<BothDifferences> longer;
    double longer_noise = 0;
    double best = 0, least = std::numeric_limits<double>::infinity();
    for (int quarters = 0; quarters <= most_quarters; ++quarters) {
      const double step = std::ldexp(longest, -2 * quarters);
      const auto stencil = stencil_of(step);
      if (!stencil) continue;
      BothDifferences shorter = differences(*stencil, step, kernels_of);
      const double noise = rounding_of(*stencil) / step;
      if (longer) {
        const auto gap_of = [&](const KernelDifference& one, const KernelDifference& other) {
          return disagreement(one, {4 * step, longer_noise}, other, {step, noise});
        };
        const double gap = gap_of(longer->nngp, shorter.nngp) + gap_of(longer->ntk, shorter.ntk);
        if (gap < least) {
          least = gap;
          best = 4 * step;
        }
      }
      longer = std::move(shorter);
      longer_noise = noise;
    }
    if (best > 0) return best;
    throw NumericalError(
        fmt::format("gram_jvp: {}: the numbers' ranges leave no room for differences of {:.3g} and more",
                    name_, std::ldexp(longest, -2 * most_quarters)));
  }

  [[nodiscard]] GramResult<double> derivative(double step, const KernelsOf& kernels_of) const {
    BothDifferences both = differences(stencil_of(step).value(), step, kernels_of);
    return {finished(std::move(both.nngp), "nngp", step), finished(std::move(both.ntk), "ntk", step), {}, {}};
  }

 private:
  static std::vector<std::string> paths_of(const NumberDirection& direction) {
    std::vector<std::string> paths;
    for (const auto& [path, change] : direction) paths.push_back(path);
    return paths;
  }

  /// The longest step that is small against every number that changes. Numbers below 1 are compared with 1.
  [[nodiscard]] double longest_step() const {
    constexpr double share = 0x1p-5;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < changes_.size(); ++i)
      if (changes_[i] != 0)
        least =
            std::min(least, share * std::max(std::abs(numbers_.values()[i]), 1.0) / std::abs(changes_[i]));
    return least;
  }

  [[nodiscard]] Network at(double shift) const {
    std::vector<double> values = numbers_.values();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += shift * changes_[i];
    return numbers_.with(values);
  }

  [[nodiscard]] bool is_in_range(double shift) const {
    try {
      static_cast<void>(at(shift));
      return true;
    } catch (const NetworkError&) {
      return false;
    }
  }

  /// The stencil of a step; nothing if the numbers' ranges leave no room for it.
  [[nodiscard]] std::optional<Stencil> stencil_of(double step) const {
    return stencil_in_range(step, [this](double shift) { return is_in_range(shift); });
  }

  [[nodiscard]] BothDifferences differences(const Stencil& stencil, double step,
                                            const KernelsOf& kernels_of) const {
    BothDifferences both;
    for (std::size_t i = 0; i < stencil.size(); ++i) {
      const GramResult<double> kernels = kernels_of(at(stencil[i].steps * step), i, stencil.size());
      both.nngp.add(kernels.nngp, stencil[i]);
      both.ntk.add(kernels.ntk, stencil[i]);
    }
    return both;
  }

  /// A bound for what the rounding of kernels of size 1 contributes to a difference.
  [[nodiscard]] static double rounding_of(const Stencil& stencil) {
    double sum = 0;
    for (const StencilPlace& place : stencil) sum += std::abs(place.weight);
    return sum * std::numeric_limits<double>::epsilon() / 2;
  }

  struct StepError {
    double step;
    double noise;  ///< What rounding makes of the derivative of a kernel of size 1.
  };

  /// How far the derivative of the longer step may be from the exact one, relative to the size of the two derivatives
  /// that are given. Two differences that both vanished agree without saying anything. What rounding can hide
  /// therefore counts as disagreement, and no derivative counts as smaller than it.
  [[nodiscard]] static double disagreement(const KernelDifference& one, const StepError& at,
                                           const KernelDifference& other, const StepError& other_at) {
    if (one.fine.size() == 0) return 0;
    const double largest = std::max(one.largest, other.largest);
    const double size =
        std::max({one.fine.cwiseAbs().maxCoeff() / at.step, other.fine.cwiseAbs().maxCoeff() / other_at.step,
                  other_at.noise * largest});
    if (!(size > 0)) return 0;
    const double gap = (one.fine / at.step - other.fine / other_at.step).cwiseAbs().maxCoeff();
    return (gap + at.noise * largest) / size;
  }

  [[nodiscard]] Matrix<double> finished(KernelDifference difference, const char* kernel, double step) const {
    if (difference.fine.size() == 0) return {};
    // A jump of the kernel gives both differences the size of the jump, but with different factors, so that they
    // disagree by a share of it.
    constexpr double agreement = 1e-3, rounding = 1e-9;
    const double gap = (difference.fine - difference.coarse).cwiseAbs().maxCoeff(),
                 size = difference.fine.cwiseAbs().maxCoeff();
    if (!(gap <= agreement * size + rounding * difference.largest))
      throw NumericalError(fmt::format(
          "gram_jvp: {}: no derivative of the {} was found: differences of eighth and of fourth order, of "
          "steps {:.3g}, differ by {:.3g} where the largest is {:.3g}",
          name_, kernel, step, gap / step, size / step));
    return difference.fine / step;
  }

  std::string name_;
  NetworkNumbers numbers_;
  std::vector<double> changes_;
};

/// A few inputs that tell how closely kernels follow a number. They are chosen by size, from the smallest to the
/// largest, because the size of an input decides where nonlinearities bend. The first inputs of a batch could be
/// alike.
Inputs<double> probe_of(const Inputs<double>& x) {
  constexpr Index most = 4;
  if (x.size() <= most) return x;
  std::vector<std::pair<double, Index>> sizes;
  for (Index i = 0; i < x.size(); ++i) {
    double largest = 0;
    for (const double value : x[i]) largest = std::max(largest, std::abs(value));
    sizes.emplace_back(largest, i);
  }
  std::ranges::sort(sizes);
  std::vector<Inputs<double>> chosen;
  for (Index k = 0; k < most; ++k)
    chosen.push_back(x.single(sizes[static_cast<std::size_t>(k * (x.size() - 1) / (most - 1))].second));
  return copied_inputs<double, double>({&chosen[0], &chosen[1], &chosen[2], &chosen[3]});
}

/// The derivative of the kernels of x1 with x2 along a direction, or of x1 with itself if x2 is null. The step is
/// chosen with the kernels of a few inputs, so that all pairs are only computed for one stencil.
GramResult<double> along(const Network& network, const Inputs<double>& x1, const Inputs<double>* x2,
                         const NumberDirection& direction, Kernels kernels, const RunControl& run) {
  GramOptions options{.kernels = kernels, .threads = run.threads, .stop = run.stop};
  const auto gram_of = [&](const Network& changed, const Inputs<double>& first,
                           const Inputs<double>* second) {
    return second == nullptr ? gram(changed, first, options) : gram(changed, first, *second, options);
  };
  // The line checks the direction, so that errors come even if there are no pairs.
  const NumberLine line(network, direction);
  // Kernels without entries have derivatives without entries.
  if (x1.size() == 0 || (x2 != nullptr && x2->size() == 0)) return gram_of(network, x1, x2);
  const Inputs<double> left = probe_of(x1);
  std::optional<Inputs<double>> right;
  if (x2 != nullptr) right = probe_of(*x2);
  const double step = line.best_step([&](const Network& changed, std::size_t, std::size_t) {
    return gram_of(changed, left, right ? &*right : nullptr);
  });
  return line.derivative(step, [&](const Network& changed, std::size_t before, std::size_t all) {
    if (run.progress)
      options.progress = [&run, before, all](const GramProgress& progress) {
        run.progress(static_cast<Index>(before) * progress.total + progress.done,
                     static_cast<Index>(all) * progress.total);
      };
    return gram_of(changed, x1, x2);
  });
}

std::vector<GramResult<double>> by_each(const Network& network, const Inputs<double>& x1,
                                        const Inputs<double>* x2, const std::vector<std::string>& numbers,
                                        Kernels kernels, const RunControl& run) {
  // This checks all paths before the first derivative is computed.
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
