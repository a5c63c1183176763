#pragma once

#include <string>
#include <xtensor/xarray.hpp>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/run_control.hpp"

/// Derivatives of Gram matrices by the inputs, in reverse mode.
namespace widelimit {

/// Derivatives of a number L by the entries of Gram matrices. An empty matrix: L does not depend on that kernel.
template <typename Scalar>
struct KernelCotangents {
  Matrix<Scalar> nngp = {};
  Matrix<Scalar> ntk = {};
};

/// Derivatives of L by the inputs, each [n, spatial..., C]; for ragged batches [n, longest spatial..., C], with 0 after
/// shorter inputs. 0 at masked positions.
template <typename Scalar>
struct GramVjp {
  xt::xarray<Scalar> x1;
  xt::xarray<Scalar> x2;
};

/// The derivatives of L = sum_ij (nngp_ij K_ij + ntk_ij T_ij) by x1 and x2, K and T = gram(network, x1, x2).
///
/// If a kernel has no derivative, or an infinite one, like ReLU's NTK between two inputs that are multiples of each
/// other, that slope counts as 0 (docs/theory/derivatives.md).
///
/// Errors  ArgumentError for cotangents that are both empty, of another shape than [n1, n2] or not finite, and for a
///         network that has a layer without a backward pass, naming it (sampled attention; your own layers without
///         an adjoint); the errors of gram().
/// Cost    3 to 5 times that of gram(), and the digits of float: docs/derivatives.md. Memory: twice what is recorded of
///         the inputs (see GramOptions); a thread keeps the planes of one run, and nodes that poolings and attention
///         need whole;
///         of vectors, a matrix as large as the kernels.
/// Threads results do not depend on their number.
/// Device  where pairs are computed, as GramOptions::device says; inputs with themselves and products of matrices stay
///         on the CPU. DeviceError for networks with positions, and for nonlinearities by quadrature, naming the layer.
///         What is near a tie is computed in double, which the device then must have.
template <typename Scalar>
[[nodiscard]] GramVjp<Scalar> gram_vjp(const Network& network, const Inputs<Scalar>& x1,
                                       const Inputs<Scalar>& x2, const KernelCotangents<Scalar>& cotangents,
                                       const RunControl& run = {}, const std::string& device = {});

/// Why devices do not compute these derivatives for inputs like x, naming layers; empty if they do. Throws the errors
/// of gram_vjp() for such inputs.
template <typename Scalar>
[[nodiscard]] std::string device_vjp_gap(const Network& network, const Inputs<Scalar>& x);

/// The inputs whose derivatives are wanted. Those of the others are not computed, and empty: for vectors this saves
/// a third of the time, for others the backward pass of that batch's variances and attention weights.
enum class VjpInputs { both, x1, x2 };

/// The same for some of the inputs.
template <typename Scalar>
[[nodiscard]] GramVjp<Scalar> gram_vjp(const Network& network, const Inputs<Scalar>& x1,
                                       const Inputs<Scalar>& x2, const KernelCotangents<Scalar>& cotangents,
                                       VjpInputs wanted, const RunControl& run = {},
                                       const std::string& device = {});

/// The same for the symmetric K and T = gram(network, x); cotangents need not be symmetric. Errors as above.
template <typename Scalar>
[[nodiscard]] xt::xarray<Scalar> gram_vjp(const Network& network, const Inputs<Scalar>& x,
                                          const KernelCotangents<Scalar>& cotangents,
                                          const RunControl& run = {}, const std::string& device = {});

/// The same for gram_diagonal(network, x); cotangents [n, 1].
template <typename Scalar>
[[nodiscard]] xt::xarray<Scalar> gram_diagonal_vjp(const Network& network, const Inputs<Scalar>& x,
                                                   const KernelCotangents<Scalar>& cotangents,
                                                   const RunControl& run = {});

}  // namespace widelimit
