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

#include "kernel/backward/plan/hyperparameter_stencil.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_numbers.hpp"

namespace widelimit {
namespace {

/// Differences of one kernel.
struct KernelDifference {
  Matrix<double> fine;
  Matrix<double> coarse;
  double largest = 0;  ///< Entry of the kernel.

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

/// Gram matrices of a network, with the number of those that were computed before and that of all.
using KernelsOf = std::function<GramResult<double>(const Network&, std::size_t, std::size_t)>;

struct BothDifferences {
  KernelDifference nngp, ntk;
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
  }

  /// The step whose derivatives of a few kernels agree best with those of a quarter of it: longer ones miss how kernels
  /// bend, shorter ones drown in their rounding. How closely kernels follow a number depends on the inputs too. Of
  /// steps that tell nothing, as of a number that nothing hangs on, the longest.
  [[nodiscard]] double best_step(const KernelsOf& kernels_of) const {
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

  /// Small against every number, and against 1 for small ones.
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

  /// Nothing where the numbers' ranges leave no room.
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

  /// What the rounding of kernels of size 1 can make of a difference.
  [[nodiscard]] static double rounding_of(const Stencil& stencil) {
    double sum = 0;
    for (const StencilPlace& place : stencil) sum += std::abs(place.weight);
    return sum * std::numeric_limits<double>::epsilon() / 2;
  }

  struct StepError {
    double step;
    double noise;  ///< What rounding makes of the derivative of a kernel of size 1.
  };

  /// Of two derivatives, relative to their size: how far the one of the longer step may be from the right one. Two
  /// differences that vanished agree, and say nothing: what rounding can hide counts as disagreement, and no derivative
  /// as smaller than it.
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
    // A jump gives both of them the size of the kernel over the step.
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

/// Some of a batch, which tell how closely kernels follow a number: from the smallest to the largest, as the size of
/// the inputs decides where nonlinearities bend. The first ones of a batch may be alike.
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

/// x2 null: of x1 with itself.
GramResult<double> along(const Network& network, const Inputs<double>& x1, const Inputs<double>* x2,
                         const NumberDirection& direction, Kernels kernels, const RunControl& run) {
  GramOptions options{.kernels = kernels, .threads = run.threads, .stop = run.stop};
  const auto gram_of = [&](const Network& changed, const Inputs<double>& first,
                           const Inputs<double>* second) {
    return second == nullptr ? gram(changed, first, options) : gram(changed, first, *second, options);
  };
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
