#include "widelimit/network/finite_activations.hpp"

#include <doctest/doctest.h>

#include <array>
#include <stop_token>

using namespace widelimit;
using widelimit::finite::Activations;
using widelimit::finite::Form;

TEST_CASE("activations: positions and form of vectors and images") {
  const Activations<double> vectors{.values = Matrix<double>::Zero(5, 3), .inputs = 5};
  CHECK(vectors.positions() == 1);
  CHECK(vectors.form() == Form{{}, 3});
  const Activations<float> images{.values = Matrix<float>::Zero(2 * 12, 7), .inputs = 2, .shape = {3, 4}};
  CHECK(images.positions() == 12);
  CHECK(images.form() == Form{{3, 4}, 7});
  CHECK(images.form() != Form{{4, 3}, 7});
  CHECK(images.form() != Form{{3, 4}, 6});
}

TEST_CASE("activations: other values are of the same batch, with all that it carries") {
  std::stop_source source;
  const std::stop_token token = source.get_token();
  const std::array<GraphEdge, 1> first{{{0, 1}}}, second{{{1, 2}}};
  const std::array<InputGraph, 2> graphs{InputGraph(3, first), InputGraph(3, second)};
  const Activations<double> batch{.values = Matrix<double>::Zero(6, 2),
                                  .inputs = 2,
                                  .shape = {3},
                                  .first_input = 17,
                                  .pass = 4,
                                  .graphs = graphs,
                                  .stop = StopRequest(token)};
  const Matrix<double> other = Matrix<double>::Constant(6, 5, 2), pooled = Matrix<double>::Constant(2, 5, 3);
  const auto same = batch.with(other), reshaped = batch.with(pooled, Shape{});
  CHECK(same.values == other);
  CHECK(same.form() == Form{{3}, 5});
  CHECK(reshaped.values == pooled);
  CHECK(reshaped.form() == Form{{}, 5});
  source.request_stop();
  for (const auto* next : {&same, &reshaped}) {
    CHECK(next->inputs == 2);
    CHECK(next->first_input == 17);
    CHECK(next->pass == 4);
    CHECK(next->graphs.data() == graphs.data());
    CHECK(next->graphs.size() == 2);
    CHECK_THROWS_AS(next->stop.check(), Cancelled);
  }
}
