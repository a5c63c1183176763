#include "widelimit/covariance_sde/coefficients.hpp"

#include <cmath>
#include <functional>
#include <vector>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/network_spec.hpp"
#include "covariance_sde/relu_drift.hpp"
#include "covariance_sde/unchecked_drift.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::covariance_sde {

namespace {

using Dense = Matrix<double>;

/// arccos(rho) from half the angle, which keeps its digits near rho = 1.
double angle_of(double rho) { return 2 * std::asin(std::sqrt((1 - std::clamp(rho, -1.0, 1.0)) / 2)); }

double unit_correlation_drift(double rho) {
  const double clamped = std::clamp(rho, -1.0, 1.0);
  return sine_minus_theta_cosine(angle_of(rho), std::sqrt((1 - clamped) * (1 + clamped)), clamped);
}

/// C = P V P, the covariance of centred tokens.
Dense centred(const Dense& v) {
  const Eigen::VectorXd means = v.rowwise().mean();
  Dense c = v.colwise() - means;
  c.rowwise() -= means.transpose();
  c.array() += means.mean();
  return c;
}

/// s^d = C^dd - tr C / m.
Vector<double> centred_excess(const Dense& c) { return c.diagonal().array() - c.diagonal().mean(); }

/// Theorem 4.2 in closed form (docs/theory/covariance-sde.md, section 3).
Dense full_attention_drift(const Dense& v) {
  const double m = static_cast<double>(v.rows());
  const Dense c = centred(v);
  const Vector<double> u = v * centred_excess(c), q = v.diagonal();
  return c.squaredNorm() / (m * m) * v + (q * u.transpose() + u * q.transpose()) / (2 * m);
}

/// J_a = diag(p_a) - p_a p_a^T of the causal row a, p_a uniform on tokens 0 .. a.
Dense causal_centring(Index m, Index a) {
  Vector<double> p = Vector<double>::Zero(m);
  p.head(a + 1).setConstant(1 / static_cast<double>(a + 1));
  Dense j = -p * p.transpose();
  j.diagonal() += p;
  return j;
}

std::vector<Dense> causal_products(const Dense& v) {
  std::vector<Dense> products;  // J_a V
  products.reserve(static_cast<std::size_t>(v.rows()));
  for (Index a = 0; a < v.rows(); ++a) products.emplace_back(causal_centring(v.rows(), a) * v);
  return products;
}

/// The drift under a causal mask (docs/theory/covariance-sde.md, section 3.1).
Dense causal_attention_drift(const Dense& v) {
  const Index m = v.rows();
  const std::vector<Dense> jv = causal_products(v);
  Dense tilt(m, m);  // row a: V h_a
  for (Index a = 0; a < m; ++a) {
    Vector<double> p = Vector<double>::Zero(m);
    p.head(a + 1).setConstant(1 / static_cast<double>(a + 1));
    // r has the variance of every token about the mean of what a sees, and h its excess over
    // the average, weighted by p.
    const Vector<double> vp = v * p;
    const Vector<double> r = v.diagonal().array() - 2 * vp.array() + p.dot(vp);
    const Vector<double> h = p.array() * (r.array() - p.dot(r));
    tilt.row(a) = (v * h).transpose();
  }
  Dense b(m, m);
  for (Index a = 0; a < m; ++a)
    for (Index c = 0; c < m; ++c) {
      // tr(J_a V J_c V)
      const double trace =
          jv[static_cast<std::size_t>(a)].cwiseProduct(jv[static_cast<std::size_t>(c)].transpose()).sum();
      b(a, c) = v(a, c) * trace + (v(a, a) * tilt(a, c) + v(c, c) * tilt(c, a)) / 2;
    }
  return b;
}

/// S_1: V^ab times the covariance of token d, centred over what a sees, with token w, centred over what b sees.
double first_moment(const Dense& v, Index a, Index d, Index b, Index w, AttentionMask mask) {
  const Index first = visible_tokens(mask, a, v.rows()), second = visible_tokens(mask, b, v.rows());
  if (d >= first || w >= second) return 0;
  return v(a, b) * (v(d, w) - v.col(w).head(first).mean() - v.row(d).head(second).mean() +
                    v.topLeftCorner(first, second).mean());
}

/// The D x D matrix with the given entry for every pair of coordinates; `entry` must be symmetric in them.
Dense assemble(Index m, const std::function<double(Index, Index, Index, Index)>& entry) {
  const Index size = m * (m + 1) / 2;
  const auto numbers = static_cast<double>(size) * static_cast<double>(size);
  numerics::require_memory("diffusion", fmt::format("the coefficients of {} tokens", m),
                           numbers * sizeof(double), "take fewer tokens");
  Dense result(size, size);
  // Coordinates are the entries on and above the diagonal, row by row (upper_triangle()).
  Index row = 0;
  for (Index a = 0; a < m; ++a)
    for (Index b = a; b < m; ++b, ++row) {
      Index column = 0;
      for (Index d = 0; d < m; ++d)
        for (Index w = d; w < m; ++w, ++column)
          if (column >= row) result(column, row) = result(row, column) = entry(a, b, d, w);
    }
  return result;
}

}  // namespace

double correlation_drift(double rho, ShapedSlopes slopes) {
  return relu_drift_scale(slopes) * unit_correlation_drift(rho);
}

double relu_correlation_map(double rho, ActivationSlopes slopes) {
  // This is the normalised dual activation of a leaky ReLU at unit variances: the linear part, and the arc-cosine
  // kernel of order 1 (Cho and Saul 2009) for the kink.
  const double gap = slopes.plus - slopes.minus;
  return rho + slopes.normaliser() * gap * gap / (2 * std::numbers::pi) * unit_correlation_drift(rho);
}

Vector<double> upper_triangle(const Dense& symmetric) {
  const Index m = symmetric.rows();
  Vector<double> coordinates(m * (m + 1) / 2);
  Index i = 0;
  for (Index a = 0; a < m; ++a)
    for (Index b = a; b < m; ++b) coordinates(i++) = symmetric(a, b);
  return coordinates;
}

double first_softmax_moment(const Dense& v, Index a, Index d, Index b, Index w, AttentionMask mask) {
  require_covariance("first_softmax_moment", v);
  return first_moment(v, a, d, b, w, mask);
}

Dense first_softmax_moments(const Dense& v, AttentionMask mask) {
  require_covariance("first_softmax_moments", v);
  const Index m = v.rows();
  return Dense::NullaryExpr(m * m, m * m, [&](Index row, Index column) {
    return first_moment(v, row / m, row % m, column / m, column % m, mask);
  });
}

Dense second_softmax_moment(const Dense& v, AttentionMask mask) {
  require_covariance("second_softmax_moment", v);
  Dense moments = Dense::Zero(v.rows(), v.cols());
  for (Index a = 0; a < v.rows(); ++a) {
    const Index seen = visible_tokens(mask, a, v.rows());
    moments.row(a).head(seen) = v(a, a) * centred_excess(centred(v.topLeftCorner(seen, seen))).transpose();
  }
  return moments;
}

Dense drift(const SdeModel& model, const Dense& v) {
  require_model("drift", model);
  require_covariance("drift", v);
  return unchecked_drift(model, v);
}

Dense unchecked_drift(const SdeModel& model, const Dense& v) {
  const Index m = v.rows();
  Dense b = Dense::Zero(m, m);
  if (model.attention_drift != 0)
    b = model.attention_drift *
        (model.mask == AttentionMask::full ? full_attention_drift(v) : causal_attention_drift(v));
  const double scale = model.relu_drift * relu_drift_scale(model.slopes);
  // The normaliser preserves variances, so that the diagonal does not drift.
  for (Index a = 0; a < m; ++a)
    for (Index c = 0; c < m; ++c)
      if (a != c) b(a, c) += scale * scaled_correlation_drift(v(a, a), v(c, c), v(a, c));
  return b;
}

Dense linear_diffusion(const Dense& v) {
  require_covariance("linear_diffusion", v);
  return assemble(v.rows(),
                  [&](Index a, Index b, Index d, Index w) { return v(a, d) * v(b, w) + v(a, w) * v(b, d); });
}

Dense attention_diffusion(const Dense& v, AttentionMask mask) {
  require_covariance("attention_diffusion", v);
  const Index m = v.rows();
  // M / m^2 of section 3; the other factor of each product is V.
  if (mask == AttentionMask::full) {
    const Dense product = v * centred(v) * v / static_cast<double>(m * m);
    return assemble(m, [&](Index a, Index b, Index d, Index w) {
      return v(a, d) * product(b, w) + v(a, w) * product(b, d) + product(a, d) * v(b, w) +
             product(a, w) * v(b, d);
    });
  }
  const std::vector<Dense> jv = causal_products(v);
  std::vector<Dense> products;  // V J_a V J_b V at a m + b
  products.reserve(static_cast<std::size_t>(m * m));
  for (Index a = 0; a < m; ++a)
    for (Index b = 0; b < m; ++b)
      products.emplace_back(v * jv[static_cast<std::size_t>(a)] * jv[static_cast<std::size_t>(b)]);
  const auto between = [&](Index a, Index b) -> const Dense& {
    return products[static_cast<std::size_t>(a * m + b)];
  };
  return assemble(m, [&](Index a, Index b, Index d, Index w) {
    return v(b, w) * between(b, w)(a, d) + v(b, d) * between(b, d)(a, w) + v(a, w) * between(a, w)(b, d) +
           v(a, d) * between(a, d)(b, w);
  });
}

Dense diffusion(const SdeModel& model, const Dense& v) {
  require_model("diffusion", model);
  require_covariance("diffusion", v);
  Dense sigma = model.linear_noise * linear_diffusion(v);
  if (model.attention_noise != 0) sigma += model.attention_noise * attention_diffusion(v, model.mask);
  return sigma;
}

}  // namespace widelimit::covariance_sde
