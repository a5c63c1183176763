#pragma once

#include <Eigen/Core>

#include "covariance_sde/network_spec.hpp"
#include "numerics/wishart.hpp"

/// What the chains of m x m matrices draw in place of weights (docs/theory/covariance-sde.md, section 6.1).
namespace widelimit::covariance_sde {

using numerics::chi_squared;
using numerics::draw_normals;
using numerics::draw_wishart_root;

/// product <- R Z' with L R Z' L^T = Y, the logits for V = L L^T; the others are workspace.
template <typename Square>
void draw_query_key(Index key_width, numerics::RandomStream& stream, Square& root, Square& normals,
                    Square& product) {
  const Index m = product.rows();
  if (key_width >= m) {
    draw_wishart_root(key_width, stream, root);
    draw_normals(normals, stream);
    product.noalias() = root * normals;
    return;
  }
  // With fewer keys than tokens Bartlett's factor does not exist, and the queries and keys themselves cost less.
  Eigen::MatrixXd queries(m, key_width), keys(m, key_width);
  draw_normals(queries, stream);
  draw_normals(keys, stream);
  product.noalias() = queries * keys.transpose();
}

/// gram <- the normalised Gram matrix of hidden units that see inputs of this root; `unit` is workspace.
template <typename Square, typename Column>
void draw_hidden_gram(const NetworkSpec& network, const Square& input_root, numerics::RandomStream& stream,
                      Column& unit, Square& gram) {
  const Index m = input_root.rows(), units = hidden_width_of(network);
  const ActivationSlopes slopes = network.feedforward->slopes;
  gram.setZero();
  for (Index i = 0; i < units; ++i) {
    draw_normals(unit, stream);
    // From the last token to the first, because unit(a) takes the place of a normal that only later tokens read.
    for (Index a = m; a-- > 0;) {
      const double pre = input_root.row(a).head(a + 1).dot(unit.head(a + 1));
      unit(a) = pre > 0 ? slopes.plus * pre : slopes.minus * pre;
    }
    for (Index a = 0; a < m; ++a)
      for (Index b = 0; b <= a; ++b) gram(a, b) += unit(a) * unit(b);
  }
  gram *= slopes.normaliser() / static_cast<double>(units);
}

}  // namespace widelimit::covariance_sde
