#include "layers/homogeneous_adjoint.hpp"

#include <algorithm>
#include <array>

#include "layers/dual_rows.hpp"
#include "numerics/gemm.hpp"

namespace widelimit::layers {
namespace {

/// The backward pass through SumFunctions at a list of nodes. E and D are homogeneous in the variances p and q and
/// the covariance c = r K~, and by Price's theorem dE/dc = D. Euler's relations give everything else. With F = dD/dc,
///
///     E = c D + (pq - c^2) F,   c-bar = E-bar D + D-bar F,
///     p-bar = h / (2 p),   q-bar = h / (2 q),   h = E-bar E - c c-bar,
///
/// where E-bar = b_1 V + b_2 T_V and D-bar = V (b_3 K~ + b_4 T~) for the adjoints b of the node. So everything is a
/// sum of E, D and F over entries or over nodes, with weights that do not depend on what is summed over in the
/// tables: products of matrices. If c^2 = pq up to `rounding`, F counts as 0 (docs/theory/derivatives.md, section 3).
///
/// At -r, E, D and F become E - m c, m - D and F, where m is half the square of the sum of both slopes. The sums at r
/// and those of V K~, T_V K~ and V T~ therefore give those at -r.
class HomogeneousAdjoint {
 public:
  HomogeneousAdjoint(const numerics::Activation& zeta, const EncodedPair& encoded, double rounding,
                     StopRequest stop)
      : zeta_{zeta}, encoded_{encoded}, rounding_{rounding}, stop_{stop} {
    const auto [negative, positive] = *zeta.homogeneous();
    mirror_ = (negative + positive) * (negative + positive) / 2;
    products_[0] = encoded.values.cwiseProduct(encoded.keys).sum();
    if (!with_ntk()) return;
    products_[1] = encoded.value_ntks.cwiseProduct(encoded.keys).sum();
    products_[2] = encoded.values.cwiseProduct(encoded.logit_ntks).sum();
  }

  /// The functions of a node and their slopes at -r.
  [[nodiscard]] NodeSums mirrored(const NodeSums& node) const {
    const double r = node.point;
    const auto [vk, uk, vl] = products_;
    NodeSums result{-r};
    result.functions = Eigen::Array4d(-r * vk, -r * uk, vk, vl) * mirror_ + sides * node.functions;
    result.slopes = Eigen::Array4d(vk, uk, 0, 0) * mirror_ - sides * node.slopes;
    return result;
  }

  /// Fills the nodes' functions and slopes, adds to `bars`, and adds to the adjoints of the variances of the keys.
  void operator()(LogitVariances& left, LogitVariances& right, std::vector<NodeSums>& nodes,
                  EncodedPair& bars) const {
    constexpr Index block = 256;
    const Index columns = encoded_.keys.cols(), entries = encoded_.keys.size();
    const PreparedVariances prepared_left(zeta_, left.keys), prepared_right(zeta_, right.keys);
    const NodeWeights weights(nodes, mirror_);
    Matrix<double> euler = Matrix<double>::Zero(encoded_.keys.rows(), columns);
    for (Index begin = 0; begin < entries; begin += block) {
      stop_.check();
      const Index size = std::min(block, entries - begin);
      DualRows duals(zeta_, size);
      duals.select(prepared_left, prepared_right, columns, begin);
      const Tables tables = tabulate(duals, nodes, products_of(left.keys, right.keys, begin, size), begin);
      add_to_nodes(tables, begin, nodes);
      add_to_entries(tables, weights, begin, bars, euler);
    }
    left.adjoint += half_over(left.keys).cwiseProduct(euler.rowwise().sum());
    right.adjoint += half_over(right.keys).cwiseProduct(euler.colwise().sum().transpose());
  }

 private:
  using Row = Eigen::Array<double, 1, Eigen::Dynamic>;
  /// The signs of the four functions at -r: those with E stay, those with D change.
  inline static const Eigen::Array4d sides{1, 1, -1, -1};

  /// E, D and F of a block of entries at all nodes, [nodes, entries]. F is there with the NTK only.
  struct Tables {
    Matrix<double> values;
    Matrix<double> derivatives;
    Matrix<double> bends;
  };

  /// The weights of sums over nodes.
  struct NodeWeights {
    Matrix<double> of_values;       ///< b_1, b_2
    Matrix<double> of_derivatives;  ///< b_3, b_4, r b_1, r b_2
    Matrix<double> of_bends;        ///< r b_3, r b_4
    /// The terms m of the nodes at -r: what they add to the first two sums, which multiply K~, and to the sums with
    /// D.
    Eigen::Array4d constants = Eigen::Array4d::Zero();

    NodeWeights(const std::vector<NodeSums>& nodes, double mirror)
        : of_values(2, nodes.size()), of_derivatives(4, nodes.size()), of_bends(2, nodes.size()) {
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        const auto column = static_cast<Index>(n);
        const Eigen::Array4d b = nodes[n].behind + sides * nodes[n].mirrored, turned = nodes[n].point * b;
        const double r = nodes[n].point;
        constants += mirror * Eigen::Array4d(-r, -r, 1, 1) * nodes[n].mirrored;
        of_values.col(column) << b[0], b[1];
        of_derivatives.col(column) << b[2], b[3], turned[0], turned[1];
        of_bends.col(column) << turned[2], turned[3];
      }
    }
  };

  [[nodiscard]] bool with_ntk() const { return encoded_.logit_ntks.size() > 0; }

  /// The products p q of a block of entries (i, j).
  static Row products_of(const Vector<double>& left, const Vector<double>& right, Index begin, Index size) {
    Row products(size);
    Index i = begin / right.size(), j = begin % right.size();
    for (Index n = 0; n < size; ++n) {
      products[n] = left[i] * right[j];
      if (++j == right.size()) ++i, j = 0;
    }
    return products;
  }

  /// A block of entries of a matrix; zeros if it is empty, without the NTK.
  static Row part(const Matrix<double>& matrix, Index begin, Index size) {
    if (matrix.size() == 0) return Row::Zero(size);
    return Eigen::Map<const Row>(matrix.data() + begin, size);
  }
  static void add_part(Matrix<double>& matrix, Index begin, const Row& numbers) {
    if (matrix.size() > 0) Eigen::Map<Row>(matrix.data() + begin, numbers.size()) += numbers;
  }

  Tables tabulate(DualRows& duals, const std::vector<NodeSums>& nodes, const Row& products,
                  Index begin) const {
    const Index size = products.size(), count = static_cast<Index>(nodes.size());
    Tables tables{Matrix<double>(count, size), Matrix<double>(count, size),
                  Matrix<double>(with_ntk() ? count : 0, size)};
    const Row keys = part(encoded_.keys, begin, size);
    for (Index n = 0; n < count; ++n) {
      const double r = nodes[static_cast<std::size_t>(n)].point;
      duals.compute(r, encoded_.keys.data() + begin);
      tables.values.row(n) = duals.values().transpose();
      tables.derivatives.row(n) = duals.derivatives().transpose();
      if (!with_ntk()) continue;
      const Row covariances = r * keys, rest = products - covariances.square();
      const Row above =
          duals.values().transpose().array() - covariances * duals.derivatives().transpose().array();
      // F = (E - c D) / (pq - c^2), from the first relation above.
      tables.bends.row(n) = (rest > rounding_ * products).select(above / rest, 0.0);
    }
    return tables;
  }

  /// Sums over a block of entries, for each node with each row of `weights`: [nodes, rows].
  static Matrix<double> sums(const Matrix<double>& table, const Matrix<double>& weights) {
    Matrix<double> result(table.rows(), weights.rows());
    if (table.rows() == 0) return result;
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::yes, table.rows(), weights.rows(),
                   table.cols(), 1.0, {table.data(), table.cols()}, {weights.data(), weights.cols()}, 0.0,
                   result.data(), weights.rows());
    return result;
  }

  void add_to_nodes(const Tables& tables, Index begin, std::vector<NodeSums>& nodes) const {
    const Index size = tables.values.cols();
    const Row values = part(encoded_.values, begin, size), keys = part(encoded_.keys, begin, size),
              value_ntks = part(encoded_.value_ntks, begin, size),
              logit_ntks = part(encoded_.logit_ntks, begin, size);
    Matrix<double> of_values(2, size), of_derivatives(3, size), of_bends(2, size);
    of_values << values.matrix(), value_ntks.matrix();
    of_derivatives << (values * keys).matrix(), (value_ntks * keys).matrix(), (values * logit_ntks).matrix();
    of_bends << (values * keys.square()).matrix(), (values * logit_ntks * keys).matrix();
    const Matrix<double> e = sums(tables.values, of_values), d = sums(tables.derivatives, of_derivatives),
                         f = sums(tables.bends, of_bends);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto n = static_cast<Index>(i);
      nodes[i].functions += Eigen::Array4d(e(n, 0), e(n, 1), d(n, 0), d(n, 2));
      nodes[i].slopes +=
          Eigen::Array4d(d(n, 0), d(n, 1), with_ntk() ? f(n, 0) : 0.0, with_ntk() ? f(n, 1) : 0.0);
    }
  }

  /// Sums over nodes, with each row of `weights`: [rows, entries].
  static Matrix<double> over_nodes(const Matrix<double>& weights, const Matrix<double>& table) {
    Matrix<double> result = Matrix<double>::Zero(weights.rows(), table.cols());
    if (table.rows() == 0) return result;
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::no, weights.rows(), table.cols(),
                   table.rows(), 1.0, {weights.data(), weights.cols()}, {table.data(), table.cols()}, 0.0,
                   result.data(), table.cols());
    return result;
  }

  void add_to_entries(const Tables& tables, const NodeWeights& weights, Index begin, EncodedPair& bars,
                      Matrix<double>& euler) const {
    const Index size = tables.values.cols();
    const Row values = part(encoded_.values, begin, size), keys = part(encoded_.keys, begin, size),
              value_ntks = part(encoded_.value_ntks, begin, size),
              logit_ntks = part(encoded_.logit_ntks, begin, size);
    Matrix<double> e = over_nodes(weights.of_values, tables.values),
                   d = over_nodes(weights.of_derivatives, tables.derivatives),
                   f = over_nodes(weights.of_bends, tables.bends);
    const auto row = [](const Matrix<double>& matrix, Index k) { return matrix.row(k).array(); };
    const Eigen::Array4d& constants = weights.constants;
    e.row(0).array() += constants[0] * keys;
    e.row(1).array() += constants[1] * keys;
    d.array().colwise() += Eigen::Array4d(constants[2], constants[3], constants[0], constants[1]);
    // r c-bar, summed over all nodes. It is the adjoint of K~, since c = r K~, and K~ times it is the sum of c c-bar.
    const Row turned =
        values * row(d, 2) + value_ntks * row(d, 3) + values * (keys * row(f, 0) + logit_ntks * row(f, 1));
    add_part(bars.values, begin, row(e, 0) + keys * row(d, 0) + logit_ntks * row(d, 1));
    add_part(bars.value_ntks, begin, row(e, 1));
    add_part(bars.keys, begin, values * row(d, 0) + turned);
    add_part(bars.logit_ntks, begin, values * row(d, 1));
    add_part(euler, begin, values * row(e, 0) + value_ntks * row(e, 1) - keys * turned);
  }

  const numerics::Activation& zeta_;
  const EncodedPair& encoded_;
  double rounding_;
  StopRequest stop_;
  double mirror_ = 0;                    ///< m
  std::array<double, 3> products_ = {};  ///< Sums of V K~, T_V K~, V T~.
};

}  // namespace

std::vector<NodeSums> homogeneous_adjoint(const numerics::Activation& zeta, const EncodedPair& encoded,
                                          double rounding, LogitVariances& left, LogitVariances& right,
                                          std::vector<NodeSums>& nodes, EncodedPair& bars, StopRequest stop) {
  const HomogeneousAdjoint adjoint(zeta, encoded, rounding, stop);
  adjoint(left, right, nodes, bars);
  std::vector<NodeSums> mirrored;
  for (const NodeSums& node : nodes) mirrored.push_back(adjoint.mirrored(node));
  return mirrored;
}

}  // namespace widelimit::layers
