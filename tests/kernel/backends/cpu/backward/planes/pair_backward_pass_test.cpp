// Pairs of inputs from their features to readouts and back, against the kernels straight from their formulas.
#include "kernel/backends/cpu/backward/planes/pair_backward_pass.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <random>

#include "kernel/backends/cpu/backward/run/backward_plan.hpp"
#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/backends/reference/naive_kernel.hpp"

namespace widelimit::testing::pair_backward_pass_test {
namespace {

constexpr Index channels = 2;
using Pass = PairBackwardPass<double>;

/// Inputs of one shape on both sides, or of two; networks that end with their readout.
class PairCase {
 public:
  PairCase(const std::string& layers, const Shape& left, const Shape& right, bool with_ntk = true)
      : network_{parse_network(R"({"widelimit": 1, "layers": )" + layers + "}")},
        naive_(network_),
        plan_{make_backward_plan(
            network_, {{{left, "left"}}, {{right, "right"}}, channels, InputMasks::absent}, with_ntk)},
        pass_(plan_.program, plan_.pairs.at({left, right}), {with_ntk, false}),
        self_left_(plan_.program, plan_.selves.at(left), {false, false}),
        self_right_(plan_.program, plan_.selves.at(right), {false, false}) {
    const auto& nodes = plan_.program.graph.nodes;
    for (NodeId id = 0; id < nodes.size(); ++id)
      if (std::holds_alternative<ReadoutNode>(nodes[id].operation)) readout_ = id;
    for (int i = 0; i < 2; ++i) left_.push_back(random_input(left));
    for (int j = 0; j < 3; ++j) right_.push_back(random_input(right));
  }
  PairCase(const PairCase&) = delete;
  PairCase& operator=(const PairCase&) = delete;

  [[nodiscard]] const Program& program() const { return plan_.program; }

  /// All pairs of both sides but one.
  void check() {
    std::vector<TilePair> pairs;
    for_each_pair(2, 3, [&](Index i, Index j) {
      if (i != 1 || j != 2) pairs.push_back({i, j, false});
    });
    record_all();
    check_pairs(pairs, false);
  }

  /// The pairs of the left inputs with each other and with themselves.
  void check_same() {
    right_.clear();
    record_all();
    check_pairs({{0, 0, true}, {1, 1, true}}, true);
    check_pairs({{0, 1, false}}, true);
  }

  /// Readouts of the NNGP without the NTK.
  [[nodiscard]] std::vector<double> nngp_readouts() {
    record_all();
    PairBlock<double> block = block_of({{0, 0, false}, {1, 1, false}}, false);
    pass_.forward(block, Pass::Readouts::wanted, {});
    CHECK((plan_.with_ntk || pass_.readout(0, readout_).ntk == 0));
    return {pass_.readout(0, readout_).nngp, pass_.readout(1, readout_).nngp};
  }

 private:
  struct Input {
    NaiveInput naive;
    InputRecord<double> record;
    RecordAdjoint<double> adjoint, as_right;
  };

  Input random_input(const Shape& shape) {
    const Index positions = position_count(shape);
    const std::vector<double> numbers = normal_numbers(positions * channels, generator_);
    const RecordLayout& layout = plan_.records.at(shape);
    return {{shape, Eigen::Map<const Matrix<double>>(numbers.data(), positions, channels).cast<Real>()},
            InputRecord<double>(layout),
            RecordAdjoint<double>(layout),
            RecordAdjoint<double>(layout)};
  }

  static PairBlock<double> itself(Input& input) {
    return {.left = {{&input.record, &input.adjoint}},
            .right = {{&input.record, &input.adjoint}},
            .pairs = {{0, 0, true}},
            .recording = true};
  }

  void record(Input& input, Pass& pass) {
    const NodeId node = plan_.sources[0].node;
    for (Index c = 0; c < channels; ++c)
      for (Index a = 0; a < input.naive.features.rows(); ++a)
        input.record.features(node, c)[a] = static_cast<double>(input.naive.features(a, c));
    // Stages of a chain that ends at a readout are recorded only while that run is evaluated.
    pass.forward(itself(input), Pass::Readouts::wanted, {});
  }
  void record_all() {
    for (Input& input : left_) record(input, self_left_);
    for (Input& input : right_) record(input, self_right_);
  }

  PairBlock<double> block_of(const std::vector<TilePair>& pairs, bool same) {
    PairBlock<double> block;
    for (Input& input : left_) block.left.push_back({&input.record, &input.adjoint});
    for (Input& input : same ? left_ : right_) block.right.push_back({&input.record, &input.as_right});
    block.pairs = pairs;
    return block;
  }

  /// The naive kernel of a pair times the pair's weights.
  [[nodiscard]] Real loss(const TilePair& pair, std::size_t number, bool same) const {
    const Input& right = (same ? left_ : right_)[static_cast<std::size_t>(pair.right)];
    const NaiveValues values =
        naive_(left_[static_cast<std::size_t>(pair.left)].naive, right.naive, pair.same_input);
    return nngp_weights_[number] * values.nngp + ntk_weights_[number] * values.ntk;
  }

  void check_pairs(const std::vector<TilePair>& pairs, bool same) {
    const auto count = static_cast<Index>(pairs.size());
    nngp_weights_ = normal_numbers(count, generator_);
    ntk_weights_ = normal_numbers(count, generator_);
    const PairBlock<double> block = block_of(pairs, same);
    pass_.forward(block, Pass::Readouts::wanted, {});
    for (std::size_t number = 0; number < pairs.size(); ++number) {
      const KernelValues<double>& found = pass_.readout(number, readout_);
      const double sum = nngp_weights_[number] * found.nngp + ntk_weights_[number] * found.ntk;
      CHECK(sum ==
            doctest::Approx(static_cast<double>(loss(pairs[number], number, same))).epsilon(1e-11).scale(1));
      pass_.set_readout_adjoint(number, readout_, {nngp_weights_[number], ntk_weights_[number]});
    }
    clear_adjoints();
    pass_.forward(block, Pass::Readouts::skipped, {});
    pass_.backward(block, {});
    for (Input& input : left_) finish(input, self_left_);
    for (Input& input : right_) finish(input, self_right_);
    for (Input& input : left_) check_features(input, pairs, same);
    for (Input& input : right_) check_features(input, pairs, same);
  }

  void clear_adjoints() {
    for (std::vector<Input>* side : {&left_, &right_})
      for (Input& input : *side)
        for (RecordAdjoint<double>* adjoint : {&input.adjoint, &input.as_right})
          std::fill(adjoint->values.begin(), adjoint->values.end(), 0.0);
  }

  /// From the adjoints of what was recorded to those of the features.
  void finish(Input& input, Pass& pass) {
    for (std::size_t k = 0; k < input.adjoint.values.size(); ++k)
      input.adjoint.values[k] += input.as_right.values[k];
    const PairBlock<double> block = itself(input);
    pass.set_readout_adjoint(0, readout_, {0, 0});
    pass.forward(block, Pass::Readouts::skipped, {});
    pass.backward(block, {});
  }

  void check_features(Input& input, const std::vector<TilePair>& pairs, bool same) {
    constexpr Real step = 1e-6L;
    const auto total = [&] {
      Real sum = 0;
      for (std::size_t number = 0; number < pairs.size(); ++number) sum += loss(pairs[number], number, same);
      return sum;
    };
    for (Index a = 0; a < input.naive.features.rows(); ++a)
      for (Index c = 0; c < channels; ++c) {
        Real& feature = input.naive.features(a, c);
        const Real value = feature;
        feature = value + step;
        const Real above = total();
        feature = value - step;
        const auto slope = static_cast<double>((above - total()) / (2 * step));
        feature = value;
        CHECK(input.adjoint.features(plan_.sources[0].node, c)[a] ==
              doctest::Approx(slope).epsilon(1e-8).scale(1));
      }
  }

  std::mt19937 generator_{41};
  Network network_;
  NaiveKernel naive_;
  BackwardPlan plan_;
  Pass pass_, self_left_, self_right_;
  NodeId readout_ = 0;
  std::vector<Input> left_, right_;
  std::vector<double> nngp_weights_, ntk_weights_;
};

const std::string convolutions =
    R"([{"layer": "conv", "filter": [3], "weight_variance": 1.5, "bias_variance": 0.1}, {"layer": "erf"},
        {"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"}])";
const std::string pooled =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "erf"}, {"layer": "average_pool", "window": [2], "strides": [2]},
        {"layer": "dense", "bias_variance": 0.2}, {"layer": "erf"}, {"layer": "flatten"}])";
const std::string attentive =
    R"([{"layer": "attention", "scaling": "inverse_width", "weights": "softmax"}, {"layer": "dense"},
        {"layer": "erf"}, {"layer": "attention", "scaling": "inverse_width", "weights": "softmax"},
        {"layer": "global_average_pool"}])";

TEST_CASE("PairBackwardPass: readouts and derivatives by all features of sequences") {
  PairCase(convolutions, {5}, {5}).check();
  PairCase(convolutions, {5}, {3}).check();
  PairCase(pooled, {6}, {6}).check();
}

TEST_CASE("PairBackwardPass: attention, to which inputs are multiplied as one matrix") {
  PairCase chain(attentive, {4}, {3});
  const auto& steps = chain.program().steps;
  CHECK(std::any_of(steps.begin(), steps.end(),
                    [](const Step& step) { return std::holds_alternative<InputStep>(step); }));
  CHECK(std::any_of(steps.begin(), steps.end(),
                    [](const Step& step) { return std::holds_alternative<PairStep>(step); }));
  chain.check();
}

TEST_CASE("PairBackwardPass: images through strides and a circular convolution") {
  PairCase(R"([{"layer": "conv", "filter": [3, 3], "strides": [2, 1]}, {"layer": "erf"},
               {"layer": "conv", "filter": [2, 2], "padding": "circular"}, {"layer": "erf"},
               {"layer": "global_average_pool"}])",
           {4, 3}, {4, 3})
      .check();
}

TEST_CASE("PairBackwardPass: inputs with themselves, whose covariances at offset 0 are their variances") {
  for (const std::string& layers : {convolutions, attentive}) PairCase(layers, {4}, {4}).check_same();
}

TEST_CASE("PairBackwardPass: the NNGP has the same bits without the NTK") {
  for (const std::string& layers : {convolutions, pooled, attentive})
    CHECK(PairCase(layers, {6}, {6}, true).nngp_readouts() ==
          PairCase(layers, {6}, {6}, false).nngp_readouts());
}

TEST_CASE("PairBackwardPass: a stop is heeded in both directions") {
  std::stop_source source;
  const std::stop_token token = source.get_token();
  const BackwardPlan plan =
      make_backward_plan(parse_network(R"({"widelimit": 1, "layers": )" + convolutions + "}"),
                         {{{Shape{4}, "x"}}, {{Shape{4}, "x"}}, channels, InputMasks::absent}, true);
  InputRecord<double> record(plan.records.at({4}));
  RecordAdjoint<double> adjoint(plan.records.at({4}));
  std::fill(record.values.begin(), record.values.end(), 1.0);
  const PairBlock<double> block{
      .left = {{&record, &adjoint}}, .right = {{&record, &adjoint}}, .pairs = {{0, 0, false}}};
  Pass pass(plan.program, plan.pairs.at({{4}, {4}}), {true, false});
  pass.forward(block, Pass::Readouts::wanted, StopRequest(token));
  source.request_stop();
  CHECK_THROWS_AS(pass.forward(block, Pass::Readouts::wanted, StopRequest(token)), Cancelled);
  CHECK_THROWS_AS(pass.backward(block, StopRequest(token)), Cancelled);
}

}  // namespace
}  // namespace widelimit::testing::pair_backward_pass_test
