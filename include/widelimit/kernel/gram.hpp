#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// Which kernels to compute. The NTK needs the NNGP anyway; asking for one only saves the other's memory.
enum class Kernels { nngp, ntk, both };

/// Called with the pairs done so far, and the total.
struct GramProgress {
  Index done;
  Index total;
};

/// The NNGP of every input of the first and second batch with itself, [n] and [n']; for a single batch only the first.
struct InputVariances {
  Vector<double> first = {};
  Vector<double> second = {};
};

/// The inputs whose attention before flatten was computed from few combinations of its outputs (see
/// GramOptions::exact_attention), those of both batches together.
struct ShortenedAttention {
  Index inputs = 0;
  Index largest_rank = 0;   ///< The most combinations that an input took.
  double largest_tail = 0;  ///< The largest share of an input's own NNGP or NTK that is left out, a bound.
};

struct GramOptions {
  Kernels kernels = Kernels::both;
  /// Worker threads; 0: one for each core. Results do not depend on it.
  int threads = 0;
  /// Memory for what is kept of the inputs between pairs, at least one input on each side; more inputs are taken in
  /// blocks.
  std::size_t state_memory_bytes = std::size_t{1} << 30;
  /// Largest number of inputs on a side of a tile of pairs; 0: the library chooses. Results do not depend on it.
  Index tile_size = 0;
  /// Whether to compute only those covariance entries that the output needs, or all of them (to check the
  /// former).
  enum class Demand { minimal, everything } demand = Demand::minimal;
  /// Whether attention before flatten takes the product of both inputs' weights. Otherwise an input of 256 positions or
  /// more is computed from the leading combinations of its outputs, if few hold all but 1e-7 of it (1e-13 in double):
  /// about twice as fast.
  bool exact_attention = false;
  /// If not null, receives how many inputs were computed in this way. Tiles and kept states do not fill it.
  ShortenedAttention* shortened_attention = nullptr;
  /// If not null, receives the variances of all inputs.
  InputVariances* variances = nullptr;
  /// Called now and then, from one thread at a time.
  std::function<void(const GramProgress&)> progress = {};
  /// Requests a stop: Cancelled is thrown within milliseconds, from within tiles and built-in stages too.
  std::stop_token stop = {};
  /// If not null, receives the seconds that each line of the plan (see explain()) took for the pairs, summed
  /// over threads; the time for the inputs themselves is not included. Timing costs about 50 ns for each step and
  /// stack of planes.
  std::vector<double>* seconds_per_line = nullptr;
  /// Where kernels are computed: "cpu", or empty; "gpu"; or part of the name of a device or its platform
  /// (widelimit/kernel/devices.hpp), case aside. Of several that answer, NAME:1 is the second; NAME:0,NAME:1 and
  /// NAME:all share the tiles, if they are equal. DeviceError if there is none, or if it cannot compute the network.
  std::string device = {};
};

/// Gram matrices [n, n']; those not asked for are empty.
template <typename Scalar>
struct GramResult {
  Matrix<Scalar> nngp;
  Matrix<Scalar> ntk;
  /// Standard errors of every entry, for networks with sampled layers (softmax attention with 1/sqrt(width));
  /// otherwise empty. Such networks are run in up to 16 replicates that share the layers' samples; the results are
  /// the means. With a single sample the error is NaN.
  Matrix<Scalar> nngp_error;
  Matrix<Scalar> ntk_error;
};

/// The kernels of all pairs of one batch, exactly symmetric: one triangle is computed. Scalar is float or double.
///
/// Errors  NetworkError if the network cannot be applied to such inputs (flatten needs equal lengths); ArgumentError
///         for inputs that are not finite (naming the first) or options out of range; NumericalError if a result is
///         not finite (naming the pair); Cancelled.
/// Cost    n (n + 1) / 2 pairs. The time of a pair is proportional to its demanded covariance entries (at most the
///         product of the two true lengths) times layers; attention adds matrix products of d x d. Memory: the result,
///         the state (see GramOptions), and workspaces of a few MB for each thread.
/// Source  docs/theory/kernel-recursion.md and attention.md.
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x,
                                      const GramOptions& options = {});

/// The kernels between two batches with equal channels, [n1, n2]. Shapes may differ if the network allows it:
/// sequences of different length. Errors as above, and ArgumentError for different channels.
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x1,
                                      const Inputs<Scalar>& x2, const GramOptions& options = {});

/// The same for sequences of different length, padded to one length: input i is x[i, :lengths[i]], the rest
/// is never read. This is short for Inputs(x, lengths).
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x,
                                      std::span<const Index> lengths, const GramOptions& options = {}) {
  return gram(network, Inputs<Scalar>(x, lengths), options);
}
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x1,
                                      std::span<const Index> lengths1, const Inputs<Scalar>& x2,
                                      std::span<const Index> lengths2, const GramOptions& options = {}) {
  return gram(network, Inputs<Scalar>(x1, lengths1), Inputs<Scalar>(x2, lengths2), options);
}

/// The kernels of every input with itself, [n, 1]: the diagonal of gram(network, x), bit for bit.
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> gram_diagonal(const Network& network, const Inputs<Scalar>& x,
                                               const GramOptions& options = {});

}  // namespace widelimit
