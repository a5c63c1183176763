// <A x, y> = <x, A^T y>, of convolutions and dense layers between planes.
#include "kernel/backends/cpu/backward/planes/convolution_adjoint.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backends/cpu/backward/planes/backward_program.hpp"
#include "kernel/backends/cpu/backward/planes/plane_tape.hpp"
#include "kernel/backends/cpu/backward/planes/tape_entry.hpp"
#include "kernel/backends/cpu/planes/plane_numbers.hpp"

namespace widelimit::testing::convolution_adjoint_test {
namespace {

constexpr Index stacked = 2;

/// Stacks of planes of both kernels, with zeros around them, which windows reach.
class KernelPlanes {
 public:
  explicit KernelPlanes(const PlacedPlane& plane)
      : length_{plane.layout.length}, margin_{2 * margin_around(plane.layout)}, nngp_(room()), ntk_(room()) {}

  [[nodiscard]] Plane<double> planes(bool with_ntk) {
    const auto first = static_cast<Index>(margin_);
    return {nngp_.data() + first, with_ntk ? ntk_.data() + first : nullptr};
  }
  [[nodiscard]] double nngp(Index n, Index place) const { return nngp_[entry(n, place)]; }
  [[nodiscard]] double ntk(Index n, Index place) const { return ntk_[entry(n, place)]; }

  /// `around`: what stands in guards.
  void draw(const PlacedPlane& plane, double around, std::mt19937& generator) {
    std::normal_distribution<double> normal;
    fill_plane(planes(true), static_cast<std::size_t>(stacked * length_), around, around);
    for (Index n = 0; n < stacked; ++n)
      for_each_entry(plane, [&](const Index3&, const Index3&, Index place) {
        nngp_[entry(n, place)] = normal(generator);
        ntk_[entry(n, place)] = normal(generator);
      });
  }

 private:
  [[nodiscard]] std::size_t room() const { return static_cast<std::size_t>(stacked * length_) + 2 * margin_; }
  [[nodiscard]] std::size_t entry(Index n, Index place) const {
    return margin_ + static_cast<std::size_t>(n * length_ + place);
  }

  Index length_;
  std::size_t margin_;
  std::vector<double> nngp_, ntk_;
};

double inner_product(const PlacedPlane& plane, const KernelPlanes& one, const KernelPlanes& other,
                     bool with_ntk) {
  double sum = 0;
  for (Index n = 0; n < stacked; ++n)
    for_each_entry(plane, [&](const Index3&, const Index3&, Index place) {
      sum += one.nngp(n, place) * other.nngp(n, place);
      if (with_ntk) sum += one.ntk(n, place) * other.ntk(n, place);
    });
  return sum;
}

void check_identity(const ConvolvedPlanes& planes, bool with_ntk, std::mt19937& generator) {
  KernelPlanes x(planes.from), y(planes.to), transformed(planes.to), transposed(planes.from);
  KernelPlanes scratch(planes.from.layout.length > planes.to.layout.length ? planes.from : planes.to);
  const std::array<double*, 2> rows{scratch.planes(true).nngp, scratch.planes(true).ntk};
  x.draw(planes.from, 0, generator);
  const numerics::PlaneWindows windows = strided_windows(planes.affine, planes.from, planes.to);
  convolve(planes, windows, x.planes(with_ntk), transformed.planes(with_ntk), rows);
  // Guards after the convolution hold anything.
  y.draw(planes.to, 7, generator);
  const double expected = inner_product(planes.to, transformed, y, with_ntk);
  ConvolutionAdjoint<double> adjoint;
  adjoint.propagate(planes, y.planes(with_ntk), transposed.planes(with_ntk), rows);
  CHECK(inner_product(planes.from, x, transposed, with_ntk) ==
        doctest::Approx(expected).epsilon(1e-12).scale(1));
}

/// All convolutions and dense layers of a network's first run: those of this kind, of which there must be some.
void check_network(const std::string& layers, const Shape& left, const Shape& right, AffineKind kind,
                   Complements complements) {
  CAPTURE(layers);
  std::mt19937 generator(8);
  const EngineProgram engine(layers, left, right, 2);
  const BackwardChain chain = backward_chain(engine, 0);
  PlaneTape<double> tape(chain);
  int checked = 0;
  for (const PlaneOffsets& offsets : root_offsets(chain, complements)) {
    tape.place(offsets);
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (chain.chain.instructions[i].loads || chain.chain.instructions[i].inputs.empty()) continue;
      auto affine = affine_of(chain.node(i), chain.geometry);
      if (!affine || affine->kind != kind) continue;
      affine->bias = 0;
      const PlacedPlane &from = tape[chain.chain.instructions[i].inputs[0]].plane, &to = tape[i].plane;
      if (from.empty() || to.empty()) continue;
      for (const bool with_ntk : {true, false})
        check_identity({*affine, from, to, stacked}, with_ntk, generator);
      ++checked;
    }
  }
  CHECK(checked > 0);
}

std::string with_layer(const std::string& layer) {
  return R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {)" + layer +
         R"(}, {"layer": "relu"}, {"layer": "global_average_pool"}])";
}

TEST_CASE(
    "ConvolutionAdjoint: shifted copies and dense layers, of complementary offsets together and alone") {
  for (const Complements complements : {Complements::together, Complements::apart}) {
    check_network(with_layer(R"("layer": "conv", "filter": [3, 2], "weight_variance": 1.7)"), {4, 5}, {4, 5},
                  AffineKind::shifted, complements);
    check_network(with_layer(R"("layer": "dense", "weight_variance": 1.7)"), {4, 5}, {4, 5},
                  AffineKind::single_position, complements);
  }
  check_network(with_layer(R"("layer": "conv", "filter": [3, 2])"), {5, 4}, {3, 3}, AffineKind::shifted,
                Complements::apart);
}

TEST_CASE("ConvolutionAdjoint: windows of any stride and padding, of inputs of one size and of two") {
  for (const auto& [left, right] : {std::pair(Shape{6, 5}, Shape{6, 5}), std::pair(Shape{6, 5}, Shape{5, 4})})
    for (const std::string more : {R"("strides": [2, 1])", R"("strides": [2, 3], "padding": "valid")",
                                   R"("strides": [1, 1], "padding": "valid")"})
      check_network(with_layer(R"("layer": "conv", "filter": [3, 2], )" + more), left, right,
                    AffineKind::strided, Complements::apart);
}

TEST_CASE("ConvolutionAdjoint: a selection of positions has no weights, and its ntk goes to the ntk alone") {
  const std::string slice = R"("layer": "slice", "begin": [1, 0], "end": [-1, -1], "step": [2, 1])";
  check_network(with_layer(slice + R"(}, {"layer": "conv", "filter": [3, 3])"), {8, 6}, {8, 6},
                AffineKind::strided, Complements::apart);
}

}  // namespace
}  // namespace widelimit::testing::convolution_adjoint_test
