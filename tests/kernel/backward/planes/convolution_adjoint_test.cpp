// <A x, y> = <x, A^T y>, of convolutions and dense layers between planes.
#include "kernel/backward/planes/convolution_adjoint.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backward/planes/backward_program.hpp"
#include "kernel/backward/planes/plane_tape.hpp"
#include "kernel/planes/plane_numbers.hpp"

namespace widelimit::testing::convolution_adjoint_test {
namespace {

constexpr Index stacked = 2;

/// Stacks of planes of both kernels.
struct KernelPlanes {
  StackOfPlanes nngp, ntk;

  explicit KernelPlanes(const PlacedPlane& plane) : nngp(plane, stacked), ntk(plane, stacked) {}
  [[nodiscard]] Plane<double> planes(bool with_ntk) {
    return {nngp.planes(), with_ntk ? ntk.planes() : nullptr};
  }
  /// Entries alone: guards stay.
  void draw(const PlacedPlane& plane, std::mt19937& generator) {
    std::normal_distribution<double> normal;
    for_each(plane, [&](double& entry) { entry = normal(generator); });
  }
  template <typename Body>
  void for_each(const PlacedPlane& plane, const Body& body) {
    for (Index n = 0; n < stacked; ++n)
      for_each_entry(plane, [&](const Index3&, const Index3&, Index place) {
        body(nngp.planes()[n * plane.layout.length + place]);
        body(ntk.planes()[n * plane.layout.length + place]);
      });
  }
};

double inner_product(const PlacedPlane& plane, const KernelPlanes& one, const KernelPlanes& other,
                     bool with_ntk) {
  double sum = 0;
  for (Index n = 0; n < stacked; ++n)
    for_each_entry(plane, [&](const Index3&, const Index3&, Index place) {
      sum += one.nngp.at(n, place) * other.nngp.at(n, place);
      if (with_ntk) sum += one.ntk.at(n, place) * other.ntk.at(n, place);
    });
  return sum;
}

void check_identity(const ConvolvedPlanes& planes, bool with_ntk, std::mt19937& generator) {
  KernelPlanes x(planes.from), y(planes.to), transformed(planes.to), transposed(planes.from);
  KernelPlanes scratch(planes.from.layout.length > planes.to.layout.length ? planes.from : planes.to);
  const std::array<double*, 2> rows{scratch.nngp.planes(), scratch.ntk.planes()};
  x.draw(planes.from, generator);
  const numerics::PlaneWindows windows = strided_windows(planes.affine, planes.from, planes.to);
  convolve(planes, windows, x.planes(with_ntk), transformed.planes(with_ntk), rows);
  // Guards after the convolution hold anything.
  y.nngp.fill_with(7);
  y.ntk.fill_with(7);
  y.draw(planes.to, generator);
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
  const BackwardRun run = backward_run(engine, 0);
  PlaneTape<double> tape(run);
  int checked = 0;
  for (const PlaneOffsets& offsets : root_offsets(run, complements)) {
    tape.place(offsets);
    for (std::size_t i = 0; i < tape.size(); ++i) {
      if (run.run.instructions[i].loads || run.run.instructions[i].inputs.empty()) continue;
      auto affine = affine_of(run.node(i), run.geometry);
      if (!affine || affine->kind != kind) continue;
      affine->bias = 0;
      const PlacedPlane &from = tape[run.run.instructions[i].inputs[0]].plane, &to = tape[i].plane;
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
  check_network(with_layer(R"("layer": "slice", "begin": [1, 0], "end": [-1, -1], "step": [2, 1])"), {8, 6},
                {8, 6}, AffineKind::strided, Complements::apart);
}

}  // namespace
}  // namespace widelimit::testing::convolution_adjoint_test
