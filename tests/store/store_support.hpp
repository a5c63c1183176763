#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "data/temporary_folder.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/store.hpp"

/// What the tests of stores share.
namespace widelimit::testing {

inline Network image_network(double weight_variance = 1.5) {
  using namespace layers;
  return Network(
      {conv({{3, 3}, {}, Padding::same, weight_variance, 0.1}), relu(), global_average_pool(), dense()});
}

template <typename Scalar = float>
Inputs<Scalar> images(Index count, unsigned seed = 1) {
  xt::xarray<Scalar> values = random_inputs(seed, {count, 4, 4, 2});
  return Inputs<Scalar>(std::move(values));
}

template <typename Scalar>
void check_same_kernels(const GramResult<Scalar>& actual, const GramResult<Scalar>& expected) {
  CHECK(actual.nngp == expected.nngp);
  CHECK(actual.ntk == expected.ntk);
  CHECK(actual.nngp_error == expected.nngp_error);
  CHECK(actual.ntk_error == expected.ntk_error);
}

/// Every file of a folder with its bytes, in order.
inline std::vector<std::string> contents(const std::filesystem::path& folder) {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    all.push_back(entry.path().string() + (entry.is_regular_file() ? "\n" + read_bytes(entry.path()) : ""));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace widelimit::testing
