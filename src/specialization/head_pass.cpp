#include "specialization/head_pass.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace widelimit::specialization {

namespace {

/// The terms in their order: Eigen's own sums depend on its vectors' length.
template <typename Left, typename Right>
double ordered_dot(const Left& left, const Right& right) {
  return std::inner_product(left.begin(), left.end(), right.begin(), 0.0);
}

}  // namespace

HeadPass::HeadPass(HeadActivation activation, Index heads, Index tokens)
    : s(heads, tokens),
      rest(Vector<double>::Zero(heads)),
      a(tokens),
      chi_gradient(heads, tokens),
      b_gradient(heads),
      v_gradient(scale_count(activation, heads)),
      activation_{activation} {}

double HeadPass::factor(Index head, const Vector<double>& v) const {
  switch (activation_) {
    case HeadActivation::softmax:
      return 1;
    case HeadActivation::softmaxv:
      return v[head];
    case HeadActivation::softmax1:
      return v[0];
    case HeadActivation::bayes:
      return static_cast<double>(s.rows());
  }
  return 0;
}

/// Scores to weights, for heads that share a normaliser.
void HeadPass::normalise(Index first, Index last, const Vector<double>& b) {
  // The weight of attending to nothing, e^b, takes part in the normaliser of softmax1.
  const bool may_rest = activation_ == HeadActivation::softmax1;
  const std::span<double> weights(&s(first, 0), static_cast<std::size_t>((last - first) * s.cols()));
  double top = *std::max_element(weights.begin(), weights.end());
  if (may_rest) top = std::max(top, b[first]);
  const double idle = may_rest ? std::exp(b[first] - top) : 0;
  double total = idle;
  for (double& weight : weights) total += weight = std::exp(weight - top);
  for (double& weight : weights) weight /= total;
  rest[first] = idle / total;
}

void HeadPass::forward(const Matrix<double>& chi, const Vector<double>& b, const Vector<double>& v) {
  const bool joint = activation_ == HeadActivation::bayes;
  const Index heads = s.rows(), group = joint ? heads : 1;
  s = chi;
  if (joint) s.colwise() += b;
  for (Index h = 0; h < heads; h += group) normalise(h, h + group, b);
  a.setZero();
  for (Index h = 0; h < heads; ++h) a += factor(h, v) / static_cast<double>(heads) * s.row(h).transpose();
}

void HeadPass::backward(const Vector<double>& g, const Vector<double>& v) {
  const bool joint = activation_ == HeadActivation::bayes;
  const double heads = static_cast<double>(s.rows()), joint_mean = ordered_dot(g, a);
  b_gradient.setZero();
  v_gradient.setZero();
  for (Index h = 0; h < s.rows(); ++h) {
    const double own = ordered_dot(g, s.row(h)), share = factor(h, v) / heads;
    // For a normaliser of one head the mean is that of its own weights, for a joint one that of all.
    const double mean = joint ? joint_mean : own;
    // This is the Jacobian of the softmax, applied to g, times the factor of s.
    chi_gradient.row(h) = (share * s.row(h).array()) * (g.transpose().array() - mean);
    if (joint) b_gradient[h] = std::accumulate(chi_gradient.row(h).begin(), chi_gradient.row(h).end(), 0.0);
    // A larger b takes weight from all tokens in the same proportion.
    if (activation_ == HeadActivation::softmax1) b_gradient[h] = -share * rest[h] * own;
    if (has_scale(activation_)) v_gradient[activation_ == HeadActivation::softmaxv ? h : 0] += own / heads;
  }
}

}  // namespace widelimit::specialization
