// The backward pass after the positions, against differences of its forward pass.
#include "kernel/backends/cpu/backward/pair_rows/pair_row_backward_pass.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backends/cpu/backward/planes/backward_program.hpp"
#include "kernel/backends/cpu/backward/slope_check.hpp"
#include "widelimit/error.hpp"

namespace widelimit::testing::point_backward_pass_test {
namespace {

/// A left input with some right ones, after the positions of a network of vectors.
class PointCheck {
 public:
  /// `same`: the place of the left input itself among the right ones, or -1.
  PointCheck(const std::string& layers, Index same)
      : engine_(layers, Shape{}, 4),
        layout_{make_record_layout(engine_.program, node_shapes(engine_.program.graph, {}), {}, 4)},
        same_{same},
        pass_(engine_.program, true) {
    for (int n = 0; n < 4; ++n) records_.push_back(random_record(engine_.program, layout_, generator_));
    adjoints_.assign(4, RecordAdjoint<double>(layout_));
    for (std::size_t n = 1; n < 4; ++n) {
      right_.push_back(&records_[n]);
      right_adjoints_.push_back(&adjoints_[n]);
    }
    if (same >= 0) right_[static_cast<std::size_t>(same)] = &records_[0];
    REQUIRE(pass_.sources().size() == 1);
    // Covariances that are possible between variances of 2 and more, whatever layers make of them.
    std::uniform_real_distribution<double> covariance(-0.3, 0.4);
    for (std::size_t j = 0; j < 3; ++j) {
      source_nngp_.push_back(covariance(generator_));
      source_ntk_.push_back(covariance(generator_));
    }
    if (same >= 0) source_nngp_[static_cast<std::size_t>(same)] = record_left();
    nngp_weights_ = normal_numbers(3, generator_);
    ntk_weights_ = normal_numbers(3, generator_);
  }

  /// By the sources' values and by the left input's variances before row stages.
  void check() {
    static_cast<void>(loss());
    pass_.begin_backward();
    std::copy(nngp_weights_.begin(), nngp_weights_.end(), pass_.result().nngp_adjoint.data());
    std::copy(ntk_weights_.begin(), ntk_weights_.end(), pass_.result().ntk_adjoint.data());
    pass_.backward({.left = &records_[0], .left_adjoint = &adjoints_[0], .same = same_});
    pass_.end_tile(right_adjoints_);
    TapeEntry<double>& source = pass_.entry(pass_.sources()[0]);
    const std::vector<double> of_nngp(source.nngp_adjoint.begin(), source.nngp_adjoint.end()),
        of_ntk(source.ntk_adjoint.begin(), source.ntk_adjoint.end());
    for (std::size_t j = 0; j < 3; ++j) {
      // Covariance and variance of the input with itself are one number, which stages count as the former.
      if (static_cast<Index>(j) != same_) check_slope(of_nngp[j], source_nngp_[j], [] {});
      check_slope(of_ntk[j], source_ntk_[j], [] {});
    }
    if (same_ >= 0) return;
    for (std::size_t n = 0; n < 4; ++n) check_variances(n);
  }

 private:
  /// Records the left input with itself, so that its variances are its covariances with itself. Returns the first.
  double record_left() {
    constexpr double variance = 1.7;
    InputRecord<double>* left = &records_[0];
    PairRowBackwardPass<double> itself(engine_.program, false);
    itself.begin_tile({&left, 1});
    itself.entry(itself.sources()[0]).nngp[0] = variance;
    itself.forward({.left = left, .same = 0, .recording = true});
    return variance;
  }

  void check_variances(std::size_t n) {
    const auto& nodes = engine_.program.graph.nodes;
    for (NodeId id = 0; id < nodes.size(); ++id)
      if (const auto* row = std::get_if<RowNode>(&nodes[id].operation)) {
        double found = adjoints_[n].variances(id)[0];
        row->stage->prepare_adjoint(&found, 1);
        check_slope(found, records_[n].variances(id)[0],
                    [&] { prepare_row_stage(records_[n], id, *row->stage); });
      }
  }

  /// The weighted sum of a row's results.
  double loss() {
    pass_.begin_tile(right_);
    TapeEntry<double>& source = pass_.entry(pass_.sources()[0]);
    std::copy(source_nngp_.begin(), source_nngp_.end(), source.nngp.data());
    std::copy(source_ntk_.begin(), source_ntk_.end(), source.ntk.data());
    pass_.forward({.left = &records_[0], .same = same_});
    double sum = 0;
    for (std::size_t j = 0; j < 3; ++j)
      sum += nngp_weights_[j] * pass_.result().nngp[j] + ntk_weights_[j] * pass_.result().ntk[j];
    return sum;
  }

  template <typename Update>
  void check_slope(double found, double& number, const Update& update) {
    testing::check_slope(
        found, number, [this] { return loss(); }, update);
  }

  std::mt19937 generator_{17};
  EngineProgram engine_;
  RecordLayout layout_;
  Index same_;
  PairRowBackwardPass<double> pass_;
  std::vector<InputRecord<double>> records_;
  std::vector<RecordAdjoint<double>> adjoints_;
  std::vector<InputRecord<double>*> right_;
  std::vector<RecordAdjoint<double>*> right_adjoints_;
  std::vector<double> source_nngp_, source_ntk_, nngp_weights_, ntk_weights_;
};

const std::string branches = R"([
  {"layer": "dense", "weight_variance": 1.2, "bias_variance": 0.1},
  {"layer": "sum", "branches": [{"layers": []}, {"scale": 0.6, "layers": [{"layer": "relu"}, {"layer": "dense"}]}]},
  {"layer": "product", "branches": [{"layers": [{"layer": "erf"}]},
                                    {"layers": [{"layer": "gelu"}, {"layer": "dense"}]}]},
  {"layer": "dense", "weight_variance": 0.8}])";

TEST_CASE("PairRowBackwardPass: derivatives by sources and variances") {
  PointCheck(branches, -1).check();
  PointCheck(R"([{"layer": "dense"}, {"layer": "layer_norm", "epsilon": 0.2}, {"layer": "erf"}])", -1)
      .check();
}

TEST_CASE("PairRowBackwardPass: a row with the left input itself") {
  for (const Index same : {0, 1, 2}) PointCheck(branches, same).check();
}

TEST_CASE("PairRowBackwardPass: errors of the recorded input name the layer once") {
  const EngineProgram engine(R"([{"layer": "dense", "weight_variance": 1e-300}, {"layer": "relu"}])", Shape{},
                             4);
  const RecordLayout layout =
      make_record_layout(engine.program, node_shapes(engine.program.graph, {}), {}, 4);
  InputRecord<double> record(layout);
  InputRecord<double>* right = &record;
  PairRowBackwardPass<double> pass(engine.program, false);
  pass.begin_tile({&right, 1});
  pass.entry(pass.sources()[0]).nngp[0] = 1e-15;
  std::string message;
  try {
    pass.forward({.left = &record, .same = 0, .recording = true});
  } catch (const NumericalError& error) {
    message = error.what();
  }
  CHECK(message.find("layers[1]") == 0);
  CHECK(message.rfind("layers[1]") == 0);
}

TEST_CASE("PairRowBackwardPass: linear networks read no values") {
  const EngineProgram linear(R"([{"layer": "dense"}, {"layer": "dense"}])", Shape{}, 4),
      curved(R"([{"layer": "dense"}, {"layer": "relu"}])", Shape{}, 4);
  CHECK(PairRowBackwardPass<double>(linear.program, true).is_linear());
  CHECK_FALSE(PairRowBackwardPass<double>(curved.program, true).is_linear());
}

}  // namespace
}  // namespace widelimit::testing::point_backward_pass_test
