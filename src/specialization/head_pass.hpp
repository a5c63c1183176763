#pragma once

#include <vector>

#include "widelimit/specialization/activation.hpp"

namespace widelimit::specialization {

/// Forward and backward pass of the heads over one sequence, in double precision and without allocation.
///
/// The normalised weights s satisfy sigma[h][l] = factor(h) s[h][l] with factor 1, v[h], v or H.
class HeadPass {
 public:
  HeadPass(HeadActivation activation, Index heads, Index tokens);

  /// From scores chi[h * L + l] to s and a.
  void forward(const double* chi, const double* b, const double* v);

  /// From g[l] = dLoss/da[l] to the gradients below; after forward with the same b and v.
  void backward(const double* g, const double* v);

  double factor(Index head, const double* v) const;

  std::vector<double> s;             ///< H x L.
  std::vector<double> rest;          ///< softmax1: 1 - sum_l s[h][l], without cancellation; 0 otherwise.
  std::vector<double> a;             ///< L.
  std::vector<double> chi_gradient;  ///< H x L.
  std::vector<double> b_gradient;    ///< H.
  std::vector<double> v_gradient;    ///< scale_count.

 private:
  void normalise_per_head(const double* chi, const double* b);
  void normalise_jointly(const double* chi, const double* b);

  HeadActivation activation_;
  std::size_t heads_;
  std::size_t tokens_;
};

}  // namespace widelimit::specialization
