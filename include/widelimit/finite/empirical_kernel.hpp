#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>

#include "widelimit/finite/finite_network.hpp"

namespace widelimit::finite {

/// Empirical NNGP of a finite network: products of the outputs of x1 [n1] and x2 [n2], averaged over outputs,
/// [n1, n2]. For dropout, the inputs of x2 are numbered after those of x1, in the pass numbered `pass`.
/// ArgumentError for inputs that do not fit the network; Cancelled once a stop is requested.
template <typename Scalar>
[[nodiscard]] Matrix<Scalar> empirical_nngp(const FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x1,
                                            const Inputs<Scalar>& x2, const std::stop_token& stop = {},
                                            std::uint64_t pass = 0);

/// The same for all pairs of one batch, in which dropout draws once for each input.
template <typename Scalar>
[[nodiscard]] Matrix<Scalar> empirical_nngp(const FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x,
                                            const std::stop_token& stop = {}, std::uint64_t pass = 0);

/// Methods for an empirical NTK (Novak, Sohl-Dickstein, Schoenholz 2022, arXiv:2206.08720): the sum over parameters of
/// products of gradients. The costs are for n inputs on each side, O outputs, P parameters, and for every affine map d
/// positions, C channels in and C' out:
enum class NtkMethod {
  /// The cheaper of the two below, for each affine map.
  automatic,
  /// Gradients of all parameters of a map, then one matrix product: 2 n O backward passes, n^2 O P; memory
  /// for a slice of the gradients of a map.
  jacobian_contraction,
  /// Inputs and gradients of affine maps contracted without ever forming their product: 2 n O
  /// backward passes, n^2 O d^2 (C + C') instead of n^2 O P = n^2 O C C'. Best for few positions.
  structured,
  /// A Jacobian-vector product of all of x1 with every gradient of x2: n O backward and n^2 O forward passes.
  /// Memory for one vector of parameters only; the slowest for more than a few inputs, as weights that
  /// positions share are passed once for every position.
  vector_products,
};

/// Which method empirical_ntk() uses, and over which outputs it averages.
struct NtkOptions {
  NtkMethod method = NtkMethod::automatic;
  /// The NTK is averaged over this many of the first outputs; 0: all.
  Index outputs = 0;
  /// Memory for what is kept of the inputs of a block; inputs are taken in blocks that fit, at least one.
  std::size_t memory_bytes = std::size_t{1} << 28;
  std::stop_token stop = {};  ///< Cancelled is thrown once a stop was asked for.
  std::uint64_t pass = 0;     ///< Numbers the draws of dropout.
};

/// Empirical NTK, averaged over outputs, [n1, n2]. Sums over parameters run in Scalar. All methods give the same
/// up to rounding. ArgumentError for inputs that do not fit the network or options out of range.
template <typename Scalar>
[[nodiscard]] Matrix<Scalar> empirical_ntk(const FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x1,
                                           const Inputs<Scalar>& x2, const NtkOptions& options = {});

template <typename Scalar>
[[nodiscard]] Matrix<Scalar> empirical_ntk(const FiniteNetwork<Scalar>& network, const Inputs<Scalar>& x,
                                           const NtkOptions& options = {});

}  // namespace widelimit::finite
