#pragma once

#include <string>
#include <vector>

#include "widelimit/gp/noise.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/run_control.hpp"

namespace widelimit::gp {

/// The derivatives of a Bayesian model's score by hyperparameters of its network (paths in the network's file), in
/// their order: those of Regression on gram(network, x).nngp with the amplitude that it chooses. With the best noise
/// for the network they are also those of the best score, wherever that has derivatives.
///
/// x       n training inputs
/// y       targets [n, outputs]
///
/// Errors  ArgumentError for a criterion other than evidence and leave_one_out; those of Regression, gram() and
///         gram_number_vjp().
/// Cost    gram(), gram_number_vjp() and 3 n^3 operations.
template <typename Scalar>
[[nodiscard]] std::vector<double> score_gradient(const Network& network, const Inputs<Scalar>& x,
                                                 const Matrix<double>& y, const Noise& noise,
                                                 Criterion criterion, const std::vector<std::string>& numbers,
                                                 const RunControl& run = {});

}  // namespace widelimit::gp
