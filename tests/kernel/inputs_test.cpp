#include "widelimit/kernel/inputs.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

xt::xarray<float> made_array() {
  auto array = xt::xarray<float>::from_shape({3, 200, 4});
  std::iota(array.begin(), array.end(), 1.0F);
  return array;
}

/// Memory that was just freed is handed out again and overwritten.
void reuse_memory() {
  const std::vector<float> other(3 * 200 * 4, -1.0F);
  CHECK(other.back() == -1);
}

template <typename Batch>
void check_values(const Batch& batch, Index input, float first) {
  reuse_memory();
  CHECK(batch[input][0] == first);
  CHECK(batch[input].back() == first + static_cast<float>(batch[input].size()) - 1);
}

TEST_CASE("inputs: temporary containers live as long as the batch and its copies") {
  const Inputs<float> array = made_array();
  check_values(array, 2, 1601);
  const Inputs<float> tensor = xt::xtensor<float, 3>(made_array());
  check_values(tensor, 1, 801);
  const Inputs<float> matrix = Matrix<float>{{1, 2, 3}, {4, 5, 6}};
  check_values(matrix, 1, 4);
  const Inputs<float> columns = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>{{1, 2, 3}, {4, 5, 6}};
  check_values(columns, 1, 4);
  const Inputs<float> ragged = std::vector<xt::xarray<float>>{{{1, 2}, {3, 4}}, {{5, 6}}};
  check_values(ragged, 1, 5);
  const Inputs<float> matrices = std::vector<Matrix<float>>{Matrix<float>{{1, 2}}, Matrix<float>{{5, 6}}};
  check_values(matrices, 1, 5);

  Inputs<float> copy = Matrix<float>{{0.0F}};
  {
    const Inputs<float> short_lived = made_array();
    copy = short_lived;
  }
  check_values(copy, 1, 801);
  const Index lengths[] = {200, 3, 1};
  const Inputs<float> cut(Inputs<float>(made_array()), lengths);
  check_values(cut, 1, 801);
}

TEST_CASE("inputs: named containers are viewed, not copied") {
  const xt::xarray<float> array = made_array();
  CHECK(Inputs<float>(array)[1].data() == array.data() + 800);
  const Matrix<float> matrix{{1, 2}, {3, 4}};
  CHECK(Inputs<float>(matrix)[1].data() == matrix.data() + 2);
  const std::vector<xt::xarray<float>> arrays{{{1, 2}, {3, 4}}, {{5, 6}}};
  CHECK(Inputs<float>(arrays)[1].data() == arrays[1].data());
}

TEST_CASE("inputs: a temporary array as an argument of gram") {
  using namespace layers;
  const Network network("gap", {conv({.filter = {3}}), global_average_pool(), dense()});
  const xt::xarray<float> named = made_array() / 1000;
  const Inputs<float> temporary = xt::xarray<float>(made_array() / 1000);
  reuse_memory();
  CHECK(gram(network, temporary).ntk == gram(network, Inputs<float>(named)).ntk);
}

}  // namespace
}  // namespace widelimit::testing
