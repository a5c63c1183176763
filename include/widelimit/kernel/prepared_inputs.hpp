#pragma once

#include <memory>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/inputs.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit {

/// A batch of inputs whose states under a network (features, variances, attention weights: what pairs need of each
/// side) are computed once and kept, for Gram matrices with one batch after another. The kernels of a single new
/// input with n kept ones then cost only their n pairs, not n states again.
///
/// Results     those of gram(), bit for bit.
/// States      are made at the first Gram matrix. Inputs beyond half of GramOptions::state_memory_bytes are taken in
///             blocks, again at each call, as gram() does. Sequences of a new length may change the network's plan so
///             that states are made again; those of two plans are kept.
/// Threads     may share an object; a call may wait for another one that makes states.
/// Copies      are cheap: they share inputs and states.
template <typename Scalar>
class PreparedInputs {
 public:
  /// Copies the inputs. The options `state_memory_bytes`, `demand` and `exact_attention` apply to all Gram matrices;
  /// the device is that of each call. Throws the errors of gram() for such inputs, before any work.
  PreparedInputs(const Network& network, const Inputs<Scalar>& x, const GramOptions& options = {});

  [[nodiscard]] const Network& network() const;
  /// The copy.
  [[nodiscard]] const Inputs<Scalar>& inputs() const;

  /// The kernels of all pairs of the kept inputs, [n, n]: gram(network, x).
  [[nodiscard]] GramResult<Scalar> gram(const GramOptions& options = {}) const;

  /// The kernels of other inputs (rows) with the kept ones (columns), [n1, n]: gram(network, x1, x). Errors are those
  /// of gram().
  [[nodiscard]] GramResult<Scalar> gram_with(const Inputs<Scalar>& x1, const GramOptions& options = {}) const;

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

}  // namespace widelimit
