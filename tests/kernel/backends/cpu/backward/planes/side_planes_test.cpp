// What planes read of the inputs of a side, position by position, and the transpose of that.
#include "kernel/backends/cpu/backward/planes/side_planes.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backends/cpu/backward/planes/backward_program.hpp"
#include "kernel/backends/cpu/planes/plane_numbers.hpp"

namespace widelimit::testing::side_planes_test {
namespace {

/// The inputs of a side, and the planes that a network's first run reads of them.
class SideCheck {
 public:
  SideCheck(const std::string& layers, const Shape& left, const Shape& right, PairSide side)
      : engine_(layers, left, right, 2),
        chain_{backward_chain(engine_, 0)},
        side_{side},
        layout_{make_record_layout(engine_.program, node_shapes(engine_.program.graph, of_side(left, right)),
                                   of_side(left, right), 2)},
        tape_(chain_),
        planes_(side, chain_) {
    for (int n = 0; n < 3; ++n) records_.push_back(random_record(engine_.program, layout_, generator_));
    adjoints_.assign(records_.size(), RecordAdjoint<double>(layout_));
    for (std::size_t n = 0; n < records_.size(); ++n) inputs_.push_back({&records_[n], &adjoints_[n]});
    expected_ = adjoints_;
  }

  /// `places`: as many inputs as the stacks of a block read.
  void check(Complements complements, Index places) {
    planes_.begin_block(inputs_);
    for (const PlaneOffsets& offsets : root_offsets(chain_, complements)) {
      tape_.place(offsets);
      planes_.begin_plane(tape_, offsets[2], places);
      for (std::size_t i = 0; i < tape_.size(); ++i) check_instruction(i, std::max<Index>(places, 3));
      planes_.end_plane();
    }
    planes_.flush();
    for (std::size_t n = 0; n < adjoints_.size(); ++n)
      for (std::size_t k = 0; k < adjoints_[n].values.size(); ++k)
        CHECK(adjoints_[n].values[k] == doctest::Approx(expected_[n].values[k]).epsilon(1e-12).scale(1));
  }

 private:
  [[nodiscard]] const Shape& of_side(const Shape& left, const Shape& right) const {
    return side_ == PairSide::left ? left : right;
  }
  [[nodiscard]] Index position(std::size_t i, const Index3& a, const Index3& b) const {
    return side_ == PairSide::left ? position_number(a, chain_.left_sizes(i))
                                   : position_number(b, chain_.right_sizes(i));
  }

  void check_instruction(std::size_t i, Index places) {
    if (chain_.chain.instructions[i].loads || tape_[i].plane.empty()) return;
    const NodeId node = chain_.id(i);
    const Operation& operation = chain_.node(i).operation;
    const bool is_input = std::holds_alternative<InputNode>(operation);
    if (!is_input && !std::holds_alternative<RowNode>(operation)) return;
    for (Index place = 0; place < places; ++place) {
      InputRecord<double>& record = records_[static_cast<std::size_t>(place % 3)];
      for (Index k = 0; k < (is_input ? layout_.channels[node] : layout_.auxiliaries[node] + 1); ++k) {
        const double* from = is_input                         ? record.features(node, k)
                             : k == layout_.auxiliaries[node] ? record.variances(node)
                                                              : record.auxiliary(node, k);
        check_plane(i, planes_.arrays(i, place)[k], from);
      }
    }
    for (Index k = 0; k < (is_input ? layout_.channels[node] : 1); ++k) {
      add(i, k, 2, 1);
      add(i, k, 0, places);
      add(i, k, 1, 1);
    }
  }

  /// Entries are those of the positions, guards are 0.
  void check_plane(std::size_t i, const double* plane, const double* from) {
    const PlacedPlane& at = tape_[i].plane;
    std::vector<double> expected(static_cast<std::size_t>(at.layout.length), 0.0);
    for_each_entry(at, [&](const Index3& a, const Index3& b, Index entry) {
      expected[static_cast<std::size_t>(entry)] = from[position(i, a, b)];
    });
    CHECK(std::equal(expected.begin(), expected.end(), plane));
  }

  /// Gives random adjoints to array k of the inputs of some places.
  void add(std::size_t i, Index k, Index first, Index count) {
    const PlacedPlane& at = tape_[i].plane;
    const std::vector<double> given = normal_numbers(count * at.layout.length, generator_);
    planes_.add(i, k, first, count, given.data());
    const NodeId node = chain_.id(i);
    for (Index n = 0; n < count; ++n) {
      RecordAdjoint<double>& adjoint = expected_[static_cast<std::size_t>((first + n) % 3)];
      double* to = std::holds_alternative<InputNode>(chain_.node(i).operation) ? adjoint.features(node, k)
                                                                               : adjoint.variances(node);
      for_each_entry(at, [&](const Index3& a, const Index3& b, Index entry) {
        to[position(i, a, b)] += given[static_cast<std::size_t>(n * at.layout.length + entry)];
      });
    }
  }

  std::mt19937 generator_{12};
  EngineProgram engine_;
  BackwardChain chain_;
  PairSide side_;
  RecordLayout layout_;
  std::vector<InputRecord<double>> records_;
  std::vector<RecordAdjoint<double>> adjoints_, expected_;
  std::vector<BlockInput<double>> inputs_;
  PlaneTape<double> tape_;
  SidePlanes<double> planes_;
};

const std::string images =
    R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "conv", "filter": [2, 3]},
        {"layer": "erf"}, {"layer": "global_average_pool"}])";

TEST_CASE("SidePlanes: planes of images and the sums of their adjoints, of either side") {
  for (const PairSide side : {PairSide::left, PairSide::right})
    for (const Index places : {0, 4}) {
      SideCheck(images, {4, 5}, {4, 5}, side).check(Complements::together, places);
      SideCheck(images, {4, 5}, {4, 5}, side).check(Complements::apart, places);
      SideCheck(images, {5, 4}, {3, 3}, side).check(Complements::apart, places);
    }
}

TEST_CASE("SidePlanes: sequences") {
  for (const PairSide side : {PairSide::left, PairSide::right})
    SideCheck(R"([{"layer": "conv", "filter": [3]}, {"layer": "gelu"}, {"layer": "global_average_pool"}])",
              {7}, {5}, side)
        .check(Complements::apart, 6);
}

}  // namespace
}  // namespace widelimit::testing::side_planes_test
