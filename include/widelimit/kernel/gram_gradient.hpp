#pragma once

#include <map>
#include <string>
#include <vector>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/run_control.hpp"

/// Derivatives of Gram matrices by hyperparameters: variances, scales, slopes, or any other number in a network's file.
namespace widelimit {

/// How fast hyperparameters change, by their paths in the network's file: {"layers[0].weight_variance", 1}.
using NumberDirection = std::map<std::string, double>;

/// The derivatives of K and T = gram(network, x) along a direction of numbers, [n, n]; those not asked for are empty.
///
/// They are central differences of eighth order of K and T, in double, and one-sided ones if a number is at the end
/// of its range (a bias variance of 0). Their step is the one that serves four inputs best, from the smallest to the
/// largest. The error is 1e-9 of the largest entry or less (one-sided ones 1e-8), but at least 1e-13 of the kernel's
/// largest entry over the number (or over 1, for smaller ones): smaller derivatives are lost in the kernel's
/// rounding. Sampled layers draw the same for all differences; their
/// estimates jump where the covariance of positions is singular.
///
/// Errors  ArgumentError, naming the path, for one that leads to no number or to an integer, and for a direction
///         that is empty or not finite; NumericalError, naming the direction, if kernels jump or no derivative is
///         found; NetworkError for a number of a layer that files do not know; the errors of gram().
/// Cost    8 times that of gram(), 9 at the end of a range, and some hundred times that of four inputs; memory: three
///         times the result.
[[nodiscard]] GramResult<double> gram_jvp(const Network& network, const Inputs<double>& x,
                                          const NumberDirection& direction, Kernels kernels = Kernels::both,
                                          const RunControl& run = {});

/// The same for gram(network, x1, x2), [n1, n2].
[[nodiscard]] GramResult<double> gram_jvp(const Network& network, const Inputs<double>& x1,
                                          const Inputs<double>& x2, const NumberDirection& direction,
                                          Kernels kernels = Kernels::both, const RunControl& run = {});

/// The derivatives by each of several numbers, in the order of their paths. Cost and errors are as above, for each.
[[nodiscard]] std::vector<GramResult<double>> gram_gradient(const Network& network, const Inputs<double>& x,
                                                            const std::vector<std::string>& numbers,
                                                            Kernels kernels = Kernels::both,
                                                            const RunControl& run = {});
[[nodiscard]] std::vector<GramResult<double>> gram_gradient(const Network& network, const Inputs<double>& x1,
                                                            const Inputs<double>& x2,
                                                            const std::vector<std::string>& numbers,
                                                            Kernels kernels = Kernels::both,
                                                            const RunControl& run = {});

/// The derivatives of L = sum_ij (nngp_ij K_ij + ntk_ij T_ij) by each of several numbers, K and T = gram(network, x),
/// in the order of their paths: the products of cotangents with the results of gram_gradient(), without its matrices.
///
/// One backward pass (gram_vjp()) serves all numbers on which only variances of dense and convolutional layers, and
/// factors of branches, depend; others, of activations, attention and norms, take differences for each.
///
/// Errors  ArgumentError for cotangents that are both empty, of another shape or not finite; otherwise those of
/// gram_jvp().
/// Cost    3 to 9 times that of gram() for all numbers of the first kind, 8 to 9 times in double for each other one.
template <typename Scalar>
[[nodiscard]] std::vector<double> gram_number_vjp(const Network& network, const Inputs<Scalar>& x,
                                                  const KernelCotangents<Scalar>& cotangents,
                                                  const std::vector<std::string>& numbers,
                                                  const RunControl& run = {});

/// The same for gram(network, x1, x2).
template <typename Scalar>
[[nodiscard]] std::vector<double> gram_number_vjp(const Network& network, const Inputs<Scalar>& x1,
                                                  const Inputs<Scalar>& x2,
                                                  const KernelCotangents<Scalar>& cotangents,
                                                  const std::vector<std::string>& numbers,
                                                  const RunControl& run = {});

}  // namespace widelimit
