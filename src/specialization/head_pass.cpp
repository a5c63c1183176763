#include "head_pass.hpp"

#include <algorithm>
#include <cmath>

namespace widelimit::specialization {

HeadPass::HeadPass(HeadActivation activation, Index heads, Index tokens)
    : s(static_cast<std::size_t>(heads * tokens)),
      rest(static_cast<std::size_t>(heads)),
      a(static_cast<std::size_t>(tokens)),
      chi_gradient(s.size()),
      b_gradient(rest.size()),
      v_gradient(static_cast<std::size_t>(scale_count(activation, heads))),
      activation_{activation},
      heads_{rest.size()},
      tokens_{a.size()} {}

double HeadPass::factor(Index head, const double* v) const {
  switch (activation_) {
    case HeadActivation::softmax:
      return 1;
    case HeadActivation::softmaxv:
      return v[head];
    case HeadActivation::softmax1:
      return v[0];
    case HeadActivation::bayes:
      return static_cast<double>(heads_);
  }
  return 0;
}

void HeadPass::normalise_per_head(const double* chi, const double* b) {
  const bool may_rest = activation_ == HeadActivation::softmax1;
  for (std::size_t h = 0; h < heads_; ++h) {
    const double* score = chi + h * tokens_;
    double* weight = s.data() + h * tokens_;
    double top = *std::max_element(score, score + tokens_);
    if (may_rest) top = std::max(top, b[h]);
    const double idle = may_rest ? std::exp(b[h] - top) : 0;
    double total = idle;
    for (std::size_t l = 0; l < tokens_; ++l) total += weight[l] = std::exp(score[l] - top);
    for (std::size_t l = 0; l < tokens_; ++l) weight[l] /= total;
    rest[h] = idle / total;
  }
}

void HeadPass::normalise_jointly(const double* chi, const double* b) {
  double top = chi[0] + b[0];
  for (std::size_t h = 0; h < heads_; ++h)
    for (std::size_t l = 0; l < tokens_; ++l) top = std::max(top, chi[h * tokens_ + l] + b[h]);
  double total = 0;
  for (std::size_t h = 0; h < heads_; ++h)
    for (std::size_t l = 0; l < tokens_; ++l)
      total += s[h * tokens_ + l] = std::exp(chi[h * tokens_ + l] + b[h] - top);
  for (double& weight : s) weight /= total;
}

void HeadPass::forward(const double* chi, const double* b, const double* v) {
  if (activation_ == HeadActivation::bayes) {
    normalise_jointly(chi, b);
  } else {
    normalise_per_head(chi, b);
  }
  std::fill(a.begin(), a.end(), 0.0);
  for (std::size_t h = 0; h < heads_; ++h) {
    const double share = factor(static_cast<Index>(h), v) / static_cast<double>(heads_);
    for (std::size_t l = 0; l < tokens_; ++l) a[l] += share * s[h * tokens_ + l];
  }
}

void HeadPass::backward(const double* g, const double* v) {
  double joint = 0;
  for (std::size_t l = 0; l < tokens_; ++l) joint += g[l] * a[l];
  std::fill(v_gradient.begin(), v_gradient.end(), 0.0);
  const double heads = static_cast<double>(heads_);
  for (std::size_t h = 0; h < heads_; ++h) {
    const double* weight = s.data() + h * tokens_;
    double own = 0;
    for (std::size_t l = 0; l < tokens_; ++l) own += g[l] * weight[l];
    const double share = factor(static_cast<Index>(h), v) / heads;
    const double mean = activation_ == HeadActivation::bayes ? joint : own;
    double sum = 0;
    for (std::size_t l = 0; l < tokens_; ++l)
      sum += chi_gradient[h * tokens_ + l] = share * weight[l] * (g[l] - mean);
    b_gradient[h] = activation_ == HeadActivation::bayes      ? sum
                    : activation_ == HeadActivation::softmax1 ? -share * rest[h] * own
                                                              : 0;
    if (activation_ == HeadActivation::softmaxv) v_gradient[h] = own / heads;
    if (activation_ == HeadActivation::softmax1) v_gradient[0] += own / heads;
  }
}

}  // namespace widelimit::specialization
