#include "layers/aggregate_stage.hpp"

#include <vector>

#include "layers/common/node_factors.hpp"
#include "network/drawn_graph.hpp"
#include "network/graph_stage.hpp"
#include "network/mask_rule.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit::layers {
namespace {

/// P = L (A^T + s I) R of an input in compressed rows, made of its graph and of the factors L and R that its state
/// has, one after the other.
template <typename Scalar>
class Aggregation {
 public:
  Aggregation(const InputGraph& graph, const Scalar* state, bool self_loops) {
    const Scalar *target = state, *source = state + graph.nodes();
    const auto entries = static_cast<std::size_t>(graph.edges() + (self_loops ? graph.nodes() : 0));
    columns_.reserve(entries);
    weights_.reserve(entries);
    begin_.reserve(static_cast<std::size_t>(graph.nodes()) + 1);
    begin_.push_back(0);
    for (Index node = 0; node < graph.nodes(); ++node) {
      // A node's own value comes first, then those along its incoming edges in the order of the graph, so that sums
      // have one order.
      if (self_loops) add(node, target[node] * source[node]);
      for (const InputGraph::Incoming& edge : graph.incoming(node))
        add(edge.source, target[node] * static_cast<Scalar>(edge.weight) * source[edge.source]);
      begin_.push_back(static_cast<Index>(columns_.size()));
    }
  }

  /// P^T, by counting the entries of each column.
  [[nodiscard]] Aggregation transposed() const {
    const std::size_t nodes = begin_.size() - 1;
    Aggregation result;
    result.begin_.assign(nodes + 1, 0);
    for (const Index column : columns_) ++result.begin_[static_cast<std::size_t>(column) + 1];
    for (std::size_t node = 0; node < nodes; ++node) result.begin_[node + 1] += result.begin_[node];
    result.columns_.resize(columns_.size());
    result.weights_.resize(weights_.size());
    std::vector<Index> next = result.begin_;
    for (std::size_t node = 0; node < nodes; ++node)
      for (auto k = static_cast<std::size_t>(begin_[node]); k < static_cast<std::size_t>(begin_[node + 1]);
           ++k) {
        const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(columns_[k])]++);
        result.columns_[place] = static_cast<Index>(node);
        result.weights_[place] = weights_[k];
      }
    return result;
  }

  /// out = P in, both row-major with `columns` numbers in a row.
  void apply(const Scalar* in, Index columns, Scalar* out) const {
    numerics::linear_rows<Scalar>().sparse_product(
        {begin_.data(), columns_.data(), weights_.data(), begin_.size() - 1}, in,
        static_cast<std::size_t>(columns), out);
  }

 private:
  Aggregation() = default;

  void add(Index column, Scalar weight) {
    columns_.push_back(column);
    weights_.push_back(weight);
  }

  std::vector<Index> begin_;
  std::vector<Index> columns_;
  std::vector<Scalar> weights_;
};

/// target [columns, rows] = transpose of source [rows, columns]. Four rows at a time write four neighbours, which
/// saves most misses of the cache.
template <typename Scalar>
void turn(const Scalar* source, Index rows, Index columns, Scalar* target) {
  Index a = 0;
  for (; a + 4 <= rows; a += 4) {
    const Scalar *first = source + a * columns, *second = first + columns, *third = second + columns,
                 *fourth = third + columns;
    for (Index b = 0; b < columns; ++b) {
      Scalar* to = target + b * rows + a;
      to[0] = first[b];
      to[1] = second[b];
      to[2] = third[b];
      to[3] = fourth[b];
    }
  }
  for (; a < rows; ++a)
    for (Index b = 0; b < columns; ++b) target[b * rows + a] = source[a * columns + b];
}

class AggregateStage final : public PairStageOf<AggregateStage>, public GraphStage, public MaskMapping {
 public:
  explicit AggregateStage(const AggregateOptions& options) : options_{options} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }

  Shape output_shape(const Shape& input) const override { return input; }

  PositionMask mapped(const PositionMask& before) const override { return before; }

  void check_graph(const InputGraph* graph, const Shape& input) const override {
    // This throws for graphs that the normalisation cannot take, such as directed ones under a symmetric one.
    static_cast<void>(node_factors(require_graph(graph, position_count(input)), options_));
  }

  std::size_t state_size(const Shape& input) const override {
    return 2 * static_cast<std::size_t>(position_count(input));
  }

  std::size_t scratch_size(const Shape& left, const Shape& right) const override {
    return 2 * static_cast<std::size_t>(position_count(left) * position_count(right));
  }

  double flops(const PairSize& size) const override {
    // The graphs are not known when costs are estimated. Random graphs, as explain() draws them, stand for them.
    const double products = (drawn_edges_a_node + (options_.self_loops ? 1 : 0)) * 2 * size.entries();
    return size.kernels() * 2 * products;
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    const NodeFactors factors =
        node_factors(require_graph(input.graph, position_count(input.shape)), options_);
    for (const auto* side : {&factors.target, &factors.source})
      for (const double factor : *side) *state++ = static_cast<Scalar>(factor);
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const Aggregation<Scalar> left(*pair.left_graph, pair.left_state, options_.self_loops),
        right(*pair.right_graph, pair.right_state, options_.self_loops);
    sandwich(left, right, pair.nngp, result.scratch, result.nngp.data());
    if (result.ntk.size() > 0) sandwich(left, right, pair.ntk, result.scratch, result.ntk.data());
  }

  /// K-bar += P^T K'-bar P', and T-bar likewise. P depends on the graph alone, so that variances and states have no
  /// adjoints.
  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    const auto left =
        Aggregation<Scalar>(*pair.left_graph, pair.left_state, options_.self_loops).transposed();
    const auto right =
        Aggregation<Scalar>(*pair.right_graph, pair.right_state, options_.self_loops).transposed();
    std::vector<Scalar> scratch(2 * static_cast<std::size_t>(pair.nngp.size()));
    Matrix<Scalar> back(pair.nngp.rows(), pair.nngp.cols());
    const auto add = [&](const auto& behind, auto target) {
      sandwich(left, right, behind, scratch.data(), back.data());
      target += back;
    };
    add(adjoint.nngp_after, adjoint.nngp);
    if (pair.ntk.size() > 0) add(adjoint.ntk_after, adjoint.ntk);
  }

 private:
  /// out = P in P'^T. A sparse product adds whole rows, so the product from the right is one from the left of the
  /// transposed matrix.
  template <typename Scalar>
  static void sandwich(const Aggregation<Scalar>& left, const Aggregation<Scalar>& right,
                       const Eigen::Map<const Matrix<Scalar>>& in, Scalar* scratch, Scalar* out) {
    const Index rows = in.rows(), columns = in.cols();
    Scalar *first = scratch, *second = scratch + in.size();
    turn(in.data(), rows, columns, first);
    right.apply(first, rows, second);
    turn(second, columns, rows, first);
    left.apply(first, columns, out);
  }

  AggregateOptions options_;
};

}  // namespace

std::shared_ptr<const PairStage> aggregate_stage(const AggregateOptions& options) {
  return std::make_shared<AggregateStage>(options);
}

}  // namespace widelimit::layers
