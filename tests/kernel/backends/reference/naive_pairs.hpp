#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "kernel/backends/reference/naive_check.hpp"
#include "kernel/random_cases.hpp"

/// Kernels of random cases against the naive ones, with the errors that roundings explain.
namespace widelimit::testing {

/// What a kernel's precision is, and beyond which variances nothing is asked of it.
struct Precision {
  double floor;              ///< Errors relative to the two inputs' own kernels that no network explains.
  double epsilon;            ///< Of roundings.
  double largest, smallest;  ///< Variances.
};

inline constexpr Precision in_double{1e-10, 1.1e-16, 1e120, 1e-120};
/// ReLU's variances are within 1e-15 and 1e15 in float.
inline constexpr Precision of_float{5e-5, 6e-8, 1e14, 1e-14};

/// Errors that such roundings explain: those of naive kernels that make them, times this.
inline constexpr double most_roundings = 100;

struct Errors {
  double nngp = 0, ntk = 0;
};

/// The naive kernels of all pairs that are asked for, each once.
class NaivePairs {
 public:
  NaivePairs(const Network& network, std::vector<NaiveInput> inputs)
      : naive_{network}, inputs_{std::move(inputs)} {}

  const NaiveValues& exact(std::size_t i, std::size_t j) {
    const auto found = pairs_.find({i, j});
    if (found != pairs_.end()) return found->second;
    return pairs_[{i, j}] = naive_(inputs_[i], inputs_[j], i == j);
  }

  /// Of K and T, relative to the inputs' own kernels; those of a kernel that vanishes are infinite if it does not.
  Errors relative(std::size_t i, std::size_t j, Real nngp, Real ntk) {
    const NaiveValues pair = exact(i, j), left = exact(i, i), right = exact(j, j);
    const auto ratio = [](Real difference, Real square_of_scale) {
      if (difference == 0) return 0.0;
      return static_cast<double>(std::abs(difference) / std::sqrt(square_of_scale));
    };
    return {ratio(nngp - pair.nngp, left.nngp * right.nngp), ratio(ntk - pair.ntk, left.ntk * right.ntk)};
  }

  /// What roundings make of the pair, at worst of some draws.
  Errors by_roundings(std::size_t i, std::size_t j, double epsilon) {
    Errors worst;
    for (unsigned seed = 1; seed <= 12; ++seed) {
      const NaiveValues rounded = naive_(inputs_[i], inputs_[j], i == j, {epsilon, seed});
      const Errors errors = relative(i, j, rounded.nngp, rounded.ntk);
      worst = {std::max(worst.nngp, errors.nngp), std::max(worst.ntk, errors.ntk)};
    }
    return worst;
  }

 private:
  NaiveKernel naive_;
  std::vector<NaiveInput> inputs_;
  std::map<std::pair<std::size_t, std::size_t>, NaiveValues> pairs_;
};

/// The worst error of a Gram matrix, and its share of what is allowed.
struct Worst {
  double error = 0, share = 0;
  bool loosened = false;  ///< Roundings explain more than the floor.
};

template <typename Scalar>
void compare(NaivePairs& naive, const GramResult<Scalar>& computed, std::size_t second_begins,
             Index quadrature, const Precision& precision, Worst& worst) {
  const double floor = quadrature > 0 ? std::max(precision.floor, 1e-8) : precision.floor;
  for (Index i = 0; i < computed.nngp.rows(); ++i)
    for (Index j = 0; j < computed.nngp.cols(); ++j) {
      const auto left = static_cast<std::size_t>(i), right = second_begins + static_cast<std::size_t>(j);
      const Errors errors = naive.relative(left, right, computed.nngp(i, j), computed.ntk(i, j));
      Errors allowed{floor, floor};
      if (!(errors.nngp < floor && errors.ntk < floor)) {
        const Errors explained = naive.by_roundings(left, right, precision.epsilon);
        allowed = {std::max(floor, most_roundings * explained.nngp),
                   std::max(floor, most_roundings * explained.ntk)};
        worst.loosened = true;
      }
      const double share = std::max(errors.nngp / allowed.nngp, errors.ntk / allowed.ntk);
      worst.error = std::max({worst.error, errors.nngp, errors.ntk});
      if (share > worst.share || std::isnan(share)) worst.share = share;
      if (share < 1) continue;
      CAPTURE(i);
      CAPTURE(right);
      CAPTURE(static_cast<double>(naive.exact(left, right).nngp));
      CAPTURE(static_cast<double>(naive.exact(left, right).ntk));
      CAPTURE(static_cast<double>(naive.exact(left, right).nngp - computed.nngp(i, j)));
      CAPTURE(computed.nngp(i, j));
      CAPTURE(computed.ntk(i, j));
      CHECK(errors.nngp < allowed.nngp);
      CHECK(errors.ntk < allowed.ntk);
    }
}

struct Range {
  Real largest = 0, smallest = std::numeric_limits<Real>::max();
};

inline Range range_of(NaivePairs& naive, std::size_t count) {
  Range range;
  for (std::size_t i = 0; i < count; ++i) {
    const NaiveValues& values = naive.exact(i, i);
    range.largest = std::max({range.largest, values.largest_variance, values.ntk});
    range.smallest = std::min(range.smallest, values.smallest_variance);
    if (!std::isfinite(values.nngp) || !std::isfinite(values.ntk))
      range.largest = std::numeric_limits<Real>::infinity();
  }
  return range;
}

inline std::vector<NaiveInput> inputs_of(const RandomCase& of) {
  std::vector<NaiveInput> inputs;
  for (Index i = 0; i < of.x1.size(); ++i) inputs.push_back(naive_input(of.x1, i));
  for (Index i = 0; i < of.x2.size(); ++i) inputs.push_back(naive_input(of.x2, i));
  return inputs;
}

}  // namespace widelimit::testing
