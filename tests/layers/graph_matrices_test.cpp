// After aggregations of small graphs the matrix of a pair goes through a run as it lies, that of large ones plane by
// plane: against the recursion of the graph neural tangent kernel, written down.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "layers/graph_batch.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

/// Du et al. 2019, section 4: E[phi(u) phi(v)] and E[phi'(u) phi'(v)] of the ReLU, times 2, at all pairs of nodes.
void relu_of_nodes(Matrix<double>& nngp, Matrix<double>& ntk, const Vector<double>& left,
                   const Vector<double>& right) {
  const double pi = std::acos(-1.0);
  for (Index a = 0; a < nngp.rows(); ++a)
    for (Index b = 0; b < nngp.cols(); ++b) {
      const double scale = std::sqrt(left(a) * right(b)),
                   angle = std::acos(std::clamp(nngp(a, b) / scale, -1.0, 1.0));
      ntk(a, b) = (nngp(a, b) + ntk(a, b)) * (pi - angle) / pi;
      nngp(a, b) = scale * (std::sin(angle) + (pi - angle) * std::cos(angle)) / pi;
    }
}

struct NodeKernels {
  Matrix<double> nngp;
  Matrix<double> ntk;
};

/// Blocks of an aggregation, a dense layer and a ReLU between two graphs.
NodeKernels blocks_of(Index count, const GraphBatch& batch, std::size_t i, std::size_t j) {
  const Matrix<double> p = batch.adjacency[i].transpose(), q = batch.adjacency[j].transpose();
  NodeKernels both{batch.features[i] * batch.features[j].transpose() / 3, {}}, left = both, right = both;
  left.nngp = batch.features[i] * batch.features[i].transpose() / 3;
  right.nngp = batch.features[j] * batch.features[j].transpose() / 3;
  both.ntk = Matrix<double>::Zero(both.nngp.rows(), both.nngp.cols());
  for (Index block = 0; block < count; ++block) {
    left.nngp = (p * left.nngp * p.transpose()).eval();
    right.nngp = (q * right.nngp * q.transpose()).eval();
    both = {p * both.nngp * q.transpose(), p * both.ntk * q.transpose()};
    const Vector<double> of_left = left.nngp.diagonal(), of_right = right.nngp.diagonal();
    relu_of_nodes(both.nngp, both.ntk, of_left, of_right);
    left.ntk = Matrix<double>::Zero(left.nngp.rows(), left.nngp.cols());
    right.ntk = Matrix<double>::Zero(right.nngp.rows(), right.nngp.cols());
    relu_of_nodes(left.nngp, left.ntk, of_left, of_left);
    relu_of_nodes(right.nngp, right.ntk, of_right, of_right);
  }
  return both;
}

TEST_CASE("graphs whose matrices go through a run as they are, and larger ones, by plain recursion") {
  const GraphBatch batch = random_graphs(90, {30, 45, 46, 60, 3}, Direction::undirected);
  const Inputs<double> x = batch.inputs();
  const Layers block{aggregate(), dense({2, 0}), relu()};
  const auto found = gram(Network({repeat(3, block), global_sum_pool(), dense()}), x);
  for (std::size_t i = 0; i < batch.features.size(); ++i)
    for (std::size_t j = 0; j < batch.features.size(); ++j) {
      const NodeKernels expected = blocks_of(3, batch, i, j);
      const auto a = static_cast<Index>(i), b = static_cast<Index>(j);
      CHECK(found.nngp(a, b) == doctest::Approx(expected.nngp.sum()).epsilon(1e-12));
      // Correlations of a node with itself that are not exactly 1 cost the plain recursion half its digits.
      CHECK(found.ntk(a, b) ==
            doctest::Approx(expected.nngp.sum() + expected.ntk.sum()).epsilon(i == j ? 1e-7 : 1e-12));
    }
}

TEST_CASE("whatever stands beside a graph, and whatever the threads, its kernels have the same bits") {
  const GraphBatch batch = random_graphs(70, {30, 45, 46, 60, 30, 3}, Direction::undirected);
  // A nonlinearity after the readout reads the recorded variance of each graph.
  const Network network({aggregate(), dense({2, 0.1}), relu(), aggregate(), dense(), erf(), global_sum_pool(),
                         dense({1e-4, 0}), relu(), dense()});
  const Inputs<double> x = batch.inputs();
  GramOptions one_thread;
  one_thread.threads = 1;
  const auto all = gram(network, x), alone = gram(network, x, one_thread);
  CHECK(all.nngp == alone.nngp);
  CHECK(all.ntk == alone.ntk);
  CHECK(gram_diagonal(network, x).ntk == Matrix<double>(all.ntk.diagonal()));
  for (std::size_t i = 0; i < batch.features.size(); ++i) {
    const GraphBatch one{{batch.features[i]}, {batch.adjacency[i]}};
    const auto own = gram(network, one.inputs());
    CHECK(own.nngp(0, 0) == all.nngp(static_cast<Index>(i), static_cast<Index>(i)));
    CHECK(own.ntk(0, 0) == all.ntk(static_cast<Index>(i), static_cast<Index>(i)));
  }
}

}  // namespace
}  // namespace widelimit::testing
