#pragma once

#include "widelimit/matrix.hpp"

namespace widelimit::layers {

/// The four sums that an output entry (a, b) of 1/sqrt(width) attention needs, in the notation of
/// docs/theory/attention.md, section 3; those with T are 0 without the NTK. E and D depend on (a, b, i, j).
struct AttentionSums {
  double values = 0;            ///< sum_ij V_ij E
  double value_ntks = 0;        ///< sum_ij T_V,ij E
  double value_logits = 0;      ///< sum_ij V_ij K~_ij D
  double value_logit_ntks = 0;  ///< sum_ij V_ij T~_ij D
};

/// An output entry (a, b), which attention_entry() computes from its sums: K~_ab and T~_ab are the encoded
/// covariances at (a, b), ov and b the output variances, and qk2 is the square of query_key_std.
struct AttentionEntry {
  double nngp;
  double ntk;
};
inline AttentionEntry attention_entry(const AttentionSums& sums, double encoded_nngp, double encoded_ntk,
                                      double ov, double bias, double qk2) {
  const double s = ov * sums.values;
  // The bracket of docs/theory/attention.md, section 3: its terms are the gradients through the queries' and keys'
  // own weights (2 K~), through the queries (T~ at (a, b)) and through the keys (T~ in the sum).
  const double logits =
      (2 * encoded_nngp + encoded_ntk) * sums.value_logits + encoded_nngp * sums.value_logit_ntks;
  return {s + bias, 2 * s + bias + ov * sums.value_ntks + ov * qk2 * logits};
}

/// The backward pass through attention_entry(), for the adjoints `behind` of its result.
struct AttentionEntryAdjoint {
  AttentionSums sums;
  double encoded_nngp;
  double encoded_ntk;
};
inline AttentionEntryAdjoint attention_entry_adjoint(const AttentionSums& sums, double encoded_nngp,
                                                     double encoded_ntk, double ov, double qk2,
                                                     const AttentionEntry& behind) {
  const double logits = ov * qk2 * behind.ntk;
  return {{.values = ov * (behind.nngp + 2 * behind.ntk),
           .value_ntks = ov * behind.ntk,
           .value_logits = logits * (2 * encoded_nngp + encoded_ntk),
           .value_logit_ntks = logits * encoded_nngp},
          logits * (2 * sums.value_logits + sums.value_logit_ntks),
          logits * sums.value_logits};
}

/// The encoded covariances of a pair in double, with which every 1/sqrt(width) stage begins. Matrices are empty if
/// the NTK is not computed.
struct EncodedPair {
  Matrix<double> values;      ///< V
  Matrix<double> value_ntks;  ///< T_V
  Matrix<double> queries;     ///< K~ plus the variance of the queries' biases.
  Matrix<double> keys;        ///< K~ plus the variance of the keys' biases.
  Matrix<double> logit_ntks;  ///< T~

  /// Zeros of the same sizes, with which adjoints begin.
  [[nodiscard]] EncodedPair zeros() const {
    EncodedPair zeros = *this;
    for (Matrix<double>* matrix :
         {&zeros.values, &zeros.value_ntks, &zeros.queries, &zeros.keys, &zeros.logit_ntks})
      matrix->setZero();
    return zeros;
  }
};

}  // namespace widelimit::layers
