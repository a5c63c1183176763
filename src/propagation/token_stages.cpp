#include "propagation/token_stages.hpp"

#include <algorithm>

namespace widelimit::propagation {

bool is_of_equal_tokens(const Matrix<double>& gram) {
  constexpr double rounding = 1e-9;
  const double norm = gram.diagonal().mean();
  return (gram.array() - norm).abs().maxCoeff() <= rounding * norm;
}

bool TokenTap::equalise(Matrix<double>& gram) {
  if (!is_of_equal_tokens(gram)) return false;
  gram.setConstant(gram.diagonal().mean());
  return true;
}

void TokenTap::take_means_away(Matrix<double>& tangent) {
  tangent.rowwise() -= tangent.colwise().mean().eval();
  tangent.colwise() -= tangent.rowwise().mean().eval();
}

int TokenTap::taken_out(const Matrix<double>& tangent) const {
  if (rule_ == TokenRule::as_they_are) return 0;
  const double largest = tangent.cwiseAbs().maxCoeff();
  // The largest entry comes back to the scale of the start.
  return largest > 0 && std::isfinite(largest) ? std::ilogb(largest) - std::ilogb(tangent_scale) : 0;
}

}  // namespace widelimit::propagation
