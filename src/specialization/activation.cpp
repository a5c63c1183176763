#include "widelimit/specialization/activation.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "specialization/checks.hpp"
#include "specialization/head_pass.hpp"

namespace widelimit::specialization {

namespace {

constexpr std::array<std::pair<std::string_view, HeadActivation>, 4> names = {
    {{"softmax", HeadActivation::softmax},
     {"softmaxv", HeadActivation::softmaxv},
     {"softmax1", HeadActivation::softmax1},
     {"bayes", HeadActivation::bayes}}};

HeadPass forward_pass(HeadActivation activation, const Matrix<double>& chi, const Vector<double>& b,
                      const Vector<double>& v) {
  if (chi.rows() < 1 || chi.cols() < 1)
    throw ArgumentError(
        fmt::format("head activation: chi must have at least one head and one token, got {} x {}", chi.rows(),
                    chi.cols()));
  require_offsets("head activation", activation, chi.rows(), b, v);
  require_finite("head activation", "chi", chi);
  HeadPass pass(activation, chi.rows(), chi.cols());
  pass.forward(chi, b, v);
  return pass;
}

}  // namespace

void require_offsets(std::string_view where, HeadActivation activation, Index heads, const Vector<double>& b,
                     const Vector<double>& v) {
  if (b.size() != heads)
    throw ArgumentError(fmt::format("{}: b must have one entry a head ({}), got {}", where, heads, b.size()));
  const Index scales = scale_count(activation, heads);
  if (v.size() != scales)
    throw ArgumentError(fmt::format("{}: v of {} must have {} entries for {} heads, got {}", where,
                                    head_activation_name(activation), scales, heads, v.size()));
  require_finite(where, "b", b);
  require_finite(where, "v", v);
}

HeadActivation head_activation_from_name(std::string_view name) {
  for (const auto& [known, activation] : names)
    if (known == name) return activation;
  throw ArgumentError(
      fmt::format("activation: expected softmax, softmaxv, softmax1 or bayes, got \"{}\"", name));
}

std::string_view head_activation_name(HeadActivation activation) {
  for (const auto& [name, known] : names)
    if (known == activation) return name;
  throw ArgumentError("activation: not one of the named values");
}

Index scale_count(HeadActivation activation, Index heads) {
  return activation == HeadActivation::softmaxv ? heads : 1;
}

bool has_bias(HeadActivation activation) {
  return activation == HeadActivation::softmax1 || activation == HeadActivation::bayes;
}

bool has_scale(HeadActivation activation) {
  return activation == HeadActivation::softmax1 || activation == HeadActivation::softmaxv;
}

Matrix<double> head_activation(HeadActivation activation, const Matrix<double>& chi, const Vector<double>& b,
                               const Vector<double>& v) {
  HeadPass pass = forward_pass(activation, chi, b, v);
  for (Index h = 0; h < chi.rows(); ++h) pass.s.row(h) *= pass.factor(h, v);
  return pass.s;
}

Vector<double> aggregate(const Matrix<double>& sigma) { return sigma.colwise().mean().transpose(); }

ActivationJacobians head_activation_jacobians(HeadActivation activation, const Matrix<double>& chi,
                                              const Vector<double>& b, const Vector<double>& v) {
  const HeadPass pass = forward_pass(activation, chi, b, v);
  const Index heads = chi.rows(), tokens = chi.cols(), entries = heads * tokens;
  ActivationJacobians jacobians{Matrix<double>::Zero(entries, entries), Matrix<double>::Zero(entries, heads),
                                Matrix<double>::Zero(entries, scale_count(activation, heads))};
  // Entry h L + l of the flattened weights is that of head h and token l. The derivatives are those of
  // docs/theory/head-specialization.md, section 1.
  const auto s = pass.s.reshaped<Eigen::RowMajor>();
  const bool joint = activation == HeadActivation::bayes;
  for (Index row = 0; row < entries; ++row) {
    const Index h = row / tokens;
    const double sigma = pass.factor(h, v) * s(row);
    for (Index column = 0; column < entries; ++column)
      // Heads see each other in the joint softmax of `bayes` only.
      if (joint || column / tokens == h)
        jacobians.chi(row, column) = sigma * ((row == column ? 1 : 0) - s(column));
    if (activation == HeadActivation::softmax1) {
      jacobians.b(row, h) = -sigma * pass.rest[h];
      jacobians.v(row, 0) = s(row);
    }
    if (activation == HeadActivation::softmaxv) jacobians.v(row, h) = s(row);
    if (!joint) continue;
    // In the joint softmax a bias raises its head's weights and lowers all by the share that the head has.
    for (Index other = 0; other < heads; ++other) {
      double share = 0;
      for (Index l = 0; l < tokens; ++l) share += s(other * tokens + l);
      jacobians.b(row, other) = sigma * ((other == h ? 1 : 0) - share);
    }
  }
  return jacobians;
}

TokenLoss token_loss(HeadActivation activation, const Matrix<double>& chi, const Vector<double>& b,
                     const Vector<double>& v, Index eps) {
  HeadPass pass = forward_pass(activation, chi, b, v);
  require_index("token_loss", "eps", eps, chi.cols());
  Vector<double> residual = pass.a;
  residual[eps] -= 1;
  pass.backward(2 * residual, v);
  return {residual.squaredNorm(), pass.a, pass.chi_gradient, pass.b_gradient, pass.v_gradient};
}

}  // namespace widelimit::specialization
