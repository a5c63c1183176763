// The backward passes of maps of positions, aggregation and norms over axes against differences of sixth order.
#include "layers/stage_adjoints.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/positions.hpp"
#include "widelimit/network/input_graph.hpp"

namespace widelimit::layers {
namespace {

using testing::AdjointTolerances;
using testing::check_adjoint;
using testing::PairSide;
using testing::stage_of;

constexpr AdjointTolerances linear{1e-11, 1e-5};

TEST_CASE("adjoints of maps of positions: sequences") {
  const PairSide six{{6}}, four{{4}};
  for (const Layer& layer :
       {conv_transpose({.filter = {3}, .strides = {2}}),
        conv_transpose({.filter = {2}, .padding = Padding::valid}), conv({.filter = {2}, .pads = {3, 0}}),
        conv({.filter = {2}, .padding = Padding::circular, .dilations = {3}}), slice({{.step = -1}}),
        slice({{.begin = -3, .end = -1}}), image_resize({.size = {3}}),
        image_resize({.size = {7}, .method = ResizeMethod::cubic})})
    check_adjoint(stage_of(layer, {6}), six, four, linear);
  Matrix<double> matrix(2, 6);
  matrix << 1, 0, -2, 0.5, 0, 0, 0, 0, 1, 0, 3, 0;
  check_adjoint(stage_of(positions_map(matrix), {6}), six, {{6}}, linear);
}

TEST_CASE("adjoints of maps of positions: images") {
  const PairSide left{{3, 2}}, right{{2, 3}};
  for (const Layer& layer :
       {conv_transpose({.filter = {3, 2}, .strides = {1, 2}}), index_position(1, -1),
        image_resize({.size = {-1, 4}}), image_resize({.size = {2, 3}, .method = ResizeMethod::nearest})})
    check_adjoint(stage_of(layer, {3, 2}), left, right, linear);
}

TEST_CASE("adjoints of aggregation over graphs") {
  const InputGraph path(
      5,
      std::vector<GraphEdge>{{0, 1, 2}, {1, 0, 2}, {1, 2}, {2, 1}, {2, 3, 0.5}, {3, 2, 0.5}, {3, 4}, {4, 3}});
  const InputGraph star(4, std::vector<GraphEdge>{{0, 1}, {1, 0}, {0, 2}, {2, 0}, {0, 3}, {3, 0}});
  const InputGraph one_way(4, std::vector<GraphEdge>{{0, 1, 1.5}, {1, 2}, {3, 2, 0.25}, {2, 0}, {0, 3}});
  const InputGraph lonely(4, std::vector<GraphEdge>{{0, 3}, {3, 0}, {0, 2, 0.5}, {2, 0, 0.5}});
  const PairSide left{{5}, {}, &path}, right{{4}, {}, &star}, directed{{4}, {}, &one_way},
      isolated{{4}, {}, &lonely};
  for (const GraphNormalisation normalise :
       {GraphNormalisation::none, GraphNormalisation::mean, GraphNormalisation::symmetric})
    for (const bool self_loops : {false, true})
      for (const PairSide& other : {right, isolated})
        check_adjoint(stage_of(aggregate({normalise, self_loops}), {5}), left, other, linear);
  for (const GraphNormalisation normalise : {GraphNormalisation::none, GraphNormalisation::mean})
    check_adjoint(stage_of(aggregate({normalise, true}), {5}), left, directed, linear);
}

TEST_CASE("adjoints of norms over some axes") {
  const AdjointTolerances rational{1e-10, 1e-5};
  const PairSide left{{3, 2}}, right{{2, 3}};
  for (const std::vector<Index>& axes :
       {std::vector<Index>{0}, std::vector<Index>{1}, std::vector<Index>{0, 1}})
    for (const double epsilon : {1e-12, 0.3}) {
      check_adjoint(stage_of(layer_norm({.epsilon = epsilon, .spatial_axes = axes}), {3, 2}), left, right,
                    rational);
      const PairSide masked{{3, 2}, {1, 1, 0, 0, 1, 0}};
      check_adjoint(stage_of(rms_norm({.epsilon = epsilon, .spatial_axes = axes}), {3, 2}), masked, right,
                    rational);
    }
}

}  // namespace
}  // namespace widelimit::layers
