// One chain, plane by plane: values against dense formulas, adjoints against differences of the values.
#include "kernel/backends/cpu/backward/planes/chain_backward_pass.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backends/cpu/backward/planes/backward_program.hpp"
#include "kernel/backends/cpu/backward/slope_check.hpp"
#include "kernel/backends/cpu/planes/plane_numbers.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::testing::run_backward_pass_test {
namespace {

constexpr Index lefts = 2, rights = 3;
constexpr std::size_t pair_count = lefts * rights;

/// Pairs of some random inputs, their kept nodes, and one chain of a network.
class ChainCase {
 public:
  ChainCase(const std::string& layers, const Shape& left, const Shape& right, std::size_t step)
      : engine_(layers, left, right, 2),
        left_layout_{layout_of(left)},
        right_layout_{layout_of(right)},
        pass_(engine_.program, engine_.pair.geometry, step, {true, false}) {
    fill(left_layout_, lefts, left_records_);
    fill(right_layout_, rights, right_records_);
    clear_adjoints();
    for (std::size_t i = 0; i < lefts; ++i) block_.left.push_back({&left_records_[i], &left_adjoints_[i]});
    for (std::size_t j = 0; j < rights; ++j)
      block_.right.push_back({&right_records_[j], &right_adjoints_[j]});
    for_each_pair(lefts, rights, [&](Index i, Index j) { block_.pairs.push_back({i, j, false}); });
    make_kept();
    const NodeId root = engine_.plane_step(step).chain.root;
    for (int kernel = 0; kernel < 2; ++kernel)
      weights_.emplace_back(geometry().left_sizes[root], geometry().right_sizes[root],
                            static_cast<Index>(pair_count), generator_);
    root_ = root;
  }
  ChainCase(const ChainCase&) = delete;
  ChainCase& operator=(const ChainCase&) = delete;

  [[nodiscard]] const PairGeometry& geometry() const { return engine_.pair.geometry; }
  [[nodiscard]] NodeId root() const { return root_; }
  [[nodiscard]] PairBlock<double>& block() { return block_; }
  [[nodiscard]] const std::vector<RecordAdjoint<double>>& left_adjoints() const { return left_adjoints_; }
  [[nodiscard]] const std::vector<RecordAdjoint<double>>& right_adjoints() const { return right_adjoints_; }
  [[nodiscard]] const std::vector<ChainBackwardPass<double>::RootPlane>& planes(bool recording) const {
    return pass_.planes(recording);
  }

  /// body(pair, left position, right position, nngp, ntk) for all entries of the root that somebody reads.
  template <typename Body>
  void for_each_value(const Body& body) {
    pass_.begin_block(block_, kept_);
    for (const auto& plane : pass_.planes(false)) {
      pass_.begin_plane(plane.offsets);
      const PlacedPlane& at = pass_.root().plane;
      for (const Stack& stack : pass_.stacks()) {
        pass_.forward(stack, {});
        if (at.empty()) continue;
        for (Index n = 0; n < stack.count; ++n) {
          const Plane<double> value = pass_.root().value + n * at.layout.length;
          for_each_entry(at, [&](const Index3& a, const Index3& b, Index entry) {
            body(stack.first_pair + n, a, b, value.nngp[entry], value.ntk[entry]);
          });
        }
      }
    }
  }

  /// The sum of all of the root's values times random weights.
  double loss() {
    double sum = 0;
    for_each_value([&](Index pair, const Index3& a, const Index3& b, double nngp, double ntk) {
      sum += weights_[0].at(pair, a, b) * nngp + weights_[1].at(pair, a, b) * ntk;
    });
    return sum;
  }

  /// The derivatives of the loss.
  void backward() {
    clear_adjoints();
    for (std::vector<KeptNode<double>>& of_pair : kept_)
      for (KeptNode<double>& node : of_pair) node.clear_adjoint();
    pass_.begin_block(block_, kept_);
    for (const auto& plane : pass_.planes(false)) {
      pass_.begin_plane(plane.offsets);
      const PlacedPlane& at = pass_.root().plane;
      for (const Stack& stack : pass_.stacks()) {
        pass_.forward(stack, {});
        pass_.begin_backward();
        if (!at.empty()) put_weights(at, stack, pass_.begin_root());
        pass_.backward({});
      }
      pass_.end_plane();
    }
    pass_.end_block();
  }

  /// By all features, variances and kept numbers.
  void check_derivatives() {
    backward();
    for (std::size_t i = 0; i < lefts; ++i) check_record(left_records_[i], left_adjoints_[i]);
    for (std::size_t j = 0; j < rights; ++j) check_record(right_records_[j], right_adjoints_[j]);
    for (std::vector<KeptNode<double>>& of_pair : kept_)
      for (KeptNode<double>& node : of_pair)
        for (std::size_t k = 0; k < node.nngp.size(); ++k) {
          check_slope(node.nngp_adjoint[k], node.nngp[k], [] {});
          check_slope(node.ntk_adjoint[k], node.ntk[k], [] {});
        }
  }

 private:
  [[nodiscard]] RecordLayout layout_of(const Shape& shape) const {
    return make_record_layout(engine_.program, node_shapes(engine_.program.graph, shape), shape, 2);
  }

  /// Features so small that covariances are possible beside variances of 2 and more.
  void fill(const RecordLayout& layout, Index count, std::vector<InputRecord<double>>& records) {
    const auto& nodes = engine_.program.graph.nodes;
    for (Index i = 0; i < count; ++i) {
      records.push_back(random_record(engine_.program, layout, generator_));
      for (NodeId id = 0; id < nodes.size(); ++id)
        for (Index k = 0; k < layout.channels[id]; ++k)
          for (Index a = 0; a < layout.positions[id]; ++a) records.back().features(id, k)[a] *= 0.3;
    }
  }

  void make_kept() {
    const Program& program = engine_.program;
    for (std::size_t pair = 0; pair < pair_count; ++pair) {
      std::vector<KeptNode<double>>& nodes = kept_.emplace_back(program.graph.nodes.size());
      for (NodeId id = 0; id < nodes.size(); ++id) {
        if (!program.kept[id]) continue;
        nodes[id].rows = product(geometry().left_sizes[id]);
        nodes[id].columns = product(geometry().right_sizes[id]);
        nodes[id].clear(true);
        for (std::vector<double>* values : {&nodes[id].nngp, &nodes[id].ntk})
          for (double& value : *values) value = 0.2 * normal_numbers(1, generator_)[0];
      }
    }
  }

  void clear_adjoints() {
    left_adjoints_.assign(lefts, RecordAdjoint<double>(left_layout_));
    right_adjoints_.assign(rights, RecordAdjoint<double>(right_layout_));
  }

  void put_weights(const PlacedPlane& at, const Stack& stack, const Plane<double>& adjoint) const {
    fill_plane(adjoint, static_cast<std::size_t>(stack.count * at.layout.length), 0.0, 0.0);
    for (Index n = 0; n < stack.count; ++n)
      for_each_entry(at, [&](const Index3& a, const Index3& b, Index entry) {
        const Index place = n * at.layout.length + entry;
        adjoint.nngp[place] = weights_[0].at(stack.first_pair + n, a, b);
        adjoint.ntk[place] = weights_[1].at(stack.first_pair + n, a, b);
      });
  }

  void check_record(InputRecord<double>& record, RecordAdjoint<double> adjoint) {
    const auto& nodes = engine_.program.graph.nodes;
    for (NodeId id = 0; id < nodes.size(); ++id) {
      const Index positions = record.layout->positions[id];
      for (Index k = 0; k < record.layout->channels[id]; ++k)
        for (Index a = 0; a < positions; ++a)
          check_slope(adjoint.features(id, k)[a], record.features(id, k)[a], [] {});
      const auto* row = std::get_if<RowNode>(&nodes[id].operation);
      if (row == nullptr) continue;
      row->stage->prepare_adjoint(adjoint.variances(id), static_cast<std::size_t>(positions));
      for (Index a = 0; a < positions; ++a)
        check_slope(adjoint.variances(id)[a], record.variances(id)[a],
                    [&] { prepare_row_stage(record, id, *row->stage); });
    }
  }

  template <typename Update>
  void check_slope(double found, double& number, const Update& update) {
    testing::check_slope(
        found, number, [this] { return loss(); }, update);
  }

  std::mt19937 generator_{23};
  EngineProgram engine_;
  RecordLayout left_layout_, right_layout_;
  ChainBackwardPass<double> pass_;
  NodeId root_ = 0;
  std::vector<InputRecord<double>> left_records_, right_records_;
  std::vector<RecordAdjoint<double>> left_adjoints_, right_adjoints_;
  PairBlock<double> block_;
  KeptNodes<double> kept_;
  std::vector<PairCovariances> weights_;
};

/// Every chain of a network.
void check_chains(const std::string& layers, const Shape& left, const Shape& right) {
  CAPTURE(layers);
  const EngineProgram engine(layers, left, right, 2);
  std::size_t chains = 0;
  for (std::size_t step = 0; step < engine.program.steps.size(); ++step) {
    if (!std::holds_alternative<PlaneStep>(engine.program.steps[step])) continue;
    CAPTURE(step);
    ChainCase(layers, left, right, step).check_derivatives();
    ++chains;
  }
  CHECK(chains > 0);
}

TEST_CASE("ChainBackwardPass: two convolutions of sequences are sums along diagonals") {
  const Index left_size = 6, right_size = 4;
  ChainCase chain(
      R"([{"layer": "conv", "filter": [3], "weight_variance": 1.5, "bias_variance": 0.2},
          {"layer": "conv", "filter": [3], "weight_variance": 0.7}, {"layer": "global_average_pool"}])",
      {left_size}, {right_size}, 0);
  PairBlock<double>& block = chain.block();
  /// The sum of three neighbours on a diagonal, without those that lie outside.
  const auto neighbours = [&](const Matrix<double>& k) {
    Matrix<double> sum = Matrix<double>::Zero(left_size, right_size);
    for (Index a = 0; a < left_size; ++a)
      for (Index b = 0; b < right_size; ++b)
        for (Index o = -1; o <= 1; ++o)
          if (a + o >= 0 && b + o >= 0 && a + o < left_size && b + o < right_size)
            sum(a, b) += k(a + o, b + o) / 3;
    return sum;
  };
  std::vector<Matrix<double>> nngp, ntk;
  for (std::size_t pair = 0; pair < block.pairs.size(); ++pair) {
    InputRecord<double>&left = *block.left_of(pair).record, &right = *block.right_of(pair).record;
    Matrix<double> k = Matrix<double>::Zero(left_size, right_size);
    for (Index a = 0; a < left_size; ++a)
      for (Index b = 0; b < right_size; ++b)
        for (Index c = 0; c < 2; ++c) k(a, b) += left.features(0, c)[a] * right.features(0, c)[b] / 2;
    const Matrix<double> first = (1.5 * neighbours(k).array() + 0.2).matrix();
    nngp.emplace_back(0.7 * neighbours(first));
    ntk.emplace_back(nngp.back() + 0.7 * neighbours(first));
  }
  std::vector<Index> entries(block.pairs.size(), 0);
  chain.for_each_value([&](Index pair, const Index3& a, const Index3& b, double of_nngp, double of_ntk) {
    const auto number = static_cast<std::size_t>(pair);
    CHECK(of_nngp == doctest::Approx(nngp[number](a[2], b[2])).epsilon(1e-13).scale(1));
    CHECK(of_ntk == doctest::Approx(ntk[number](a[2], b[2])).epsilon(1e-13).scale(1));
    ++entries[number];
  });
  for (const Index count : entries) CHECK(count == left_size * right_size);
}

TEST_CASE("ChainBackwardPass: derivatives of chains of shifted copies, with complementary offsets together") {
  const std::string sequences =
      R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"},
          {"layer": "sum", "branches": [{"layers": []}, {"scale": 0.7, "layers": [{"layer": "conv", "filter": [3]}]}]},
          {"layer": "dense", "bias_variance": 0.2}, {"layer": "erf"}, {"layer": "global_average_pool"}])";
  check_chains(sequences, {5}, {5});
  check_chains(sequences, {5}, {3});
  check_chains(
      R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "conv", "filter": [2, 3]},
                 {"layer": "erf"}, {"layer": "global_average_pool"}])",
      {3, 3}, {3, 3});
}

TEST_CASE(
    "ChainBackwardPass: derivatives through strides, circular windows, products and what poolings keep") {
  check_chains(R"([{"layer": "conv", "filter": [3], "strides": [2], "padding": "valid"}, {"layer": "erf"},
                 {"layer": "conv", "filter": [2]}, {"layer": "flatten"}])",
               {9}, {9});
  check_chains(R"([{"layer": "conv", "filter": [3], "padding": "circular"}, {"layer": "relu"},
                 {"layer": "conv", "filter": [3], "padding": "circular"}, {"layer": "global_average_pool"}])",
               {4}, {4});
  check_chains(R"([{"layer": "conv", "filter": [3]}, {"layer": "average_pool", "window": [2], "strides": [2]},
                 {"layer": "product", "branches": [{"layers": [{"layer": "erf"}]},
                                                   {"layers": [{"layer": "conv", "filter": [3]}]}]},
                 {"layer": "global_average_pool"}])",
               {6}, {4});
  check_chains(R"([{"layer": "conv", "filter": [3]}, {"layer": "erf"},
                 {"layer": "local_conv", "filter": [2], "bias_variance": 0.3}, {"layer": "erf"}, {"layer": "flatten"}])",
               {5}, {5});
}

TEST_CASE("ChainBackwardPass: offset 0 comes first, and is there for recording even if nobody reads it") {
  const std::string read = R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "flatten"}])";
  const ChainCase chain(read, {5}, {5}, 0);
  REQUIRE(chain.planes(true).size() == chain.planes(false).size());
  for (const auto& planes : {chain.planes(false), chain.planes(true)}) {
    CHECK(planes.front().is_demanded);
    for (const AxisOffsets& axis : planes.front().offsets) CHECK(axis == AxisOffsets{{0, 0}, 1});
  }
  // Every offset once.
  ChainCase all(R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"}])",
                {4}, {3}, 0);
  std::set<std::array<Index, 3>> seen;
  all.for_each_value([&](Index pair, const Index3& a, const Index3& b, double, double) {
    CHECK(seen.insert({pair, a[2], b[2]}).second);
  });
  CHECK(seen.size() == pair_count * 4 * 3);
}

TEST_CASE("ChainBackwardPass: a side whose derivatives are not wanted gets none, the other the same bits") {
  const std::string layers =
      R"([{"layer": "conv", "filter": [3]}, {"layer": "erf"}, {"layer": "conv", "filter": [3]}, {"layer": "relu"},
          {"layer": "global_average_pool"}])";
  ChainCase both(layers, {5}, {4}, 0), left(layers, {5}, {4}, 0), right(layers, {5}, {4}, 0);
  left.block().right_wanted = false;
  right.block().left_wanted = false;
  for (ChainCase* chain : {&both, &left, &right}) chain->backward();
  const auto all_zero = [](const std::vector<RecordAdjoint<double>>& adjoints) {
    return std::all_of(adjoints.begin(), adjoints.end(), [](const RecordAdjoint<double>& adjoint) {
      return std::all_of(adjoint.values.begin(), adjoint.values.end(), [](double x) { return x == 0; });
    });
  };
  CHECK(all_zero(left.right_adjoints()));
  CHECK(all_zero(right.left_adjoints()));
  for (std::size_t i = 0; i < lefts; ++i)
    CHECK(left.left_adjoints()[i].values == both.left_adjoints()[i].values);
  for (std::size_t j = 0; j < rights; ++j)
    CHECK(right.right_adjoints()[j].values == both.right_adjoints()[j].values);
}

}  // namespace
}  // namespace widelimit::testing::run_backward_pass_test
