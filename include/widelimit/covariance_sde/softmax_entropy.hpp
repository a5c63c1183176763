#pragma once

#include <cstdint>
#include <vector>

#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/run_control.hpp"

namespace widelimit::covariance_sde {

/// Entropy in nats of the softmax rows (without identity and centring) of the attention in the next layer, with logits
/// drawn for the covariance of each network of the ensemble: m means with standard errors. Stopped networks are
/// left out; NaN if all have stopped. For Pre-LN networks the ensemble
/// holds the inputs of branches (NetworkOptions::kept).
///
/// Errors  ArgumentError unless the network attends, and the ensemble is of valid size, time and content.
[[nodiscard]] std::vector<numerics::Estimate> softmax_entropy(const NetworkSpec& network,
                                                              const CovarianceEnsemble& ensemble, Index time,
                                                              std::uint64_t seed, const RunControl& run = {});

/// The same to first order in 1 / n for one covariance, for Pre-LN networks that of the branch's inputs (to first order
/// in the variance of the logits if that is not small):
///     ln m_a - V^aa tr(J_a V) s / 2,  s = n_k / tau^2,
/// with m_a the tokens that row a sees, J_a the centring among them; tau^2 = tau_0^2 n n_k of shaped attention gives
/// the ln m - V^aa tr(C) / (2 m tau_0^2 n) of docs/theory/covariance-sde.md, section 6.2. Errors as above.
[[nodiscard]] Vector<double> softmax_entropy_expansion(const NetworkSpec& network, const Matrix<double>& v);

}  // namespace widelimit::covariance_sde
