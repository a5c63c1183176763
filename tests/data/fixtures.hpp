#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <xtensor/xtensor.hpp>

#include "widelimit/numerics/random_stream.hpp"

/// What several tests of this folder use.
namespace widelimit::data_test {

/// The project's data folder, if the working copy has it beside itself.
inline const std::filesystem::path shared_data =
    std::filesystem::path(WIDELIMIT_SOURCE_DIR) / ".." / "shared" / "data";

/// Uniform in [0, 1).
inline xt::xtensor<float, 4> random_images(std::array<std::size_t, 4> shape, std::uint64_t seed) {
  numerics::RandomStream random(seed);
  auto images = xt::xtensor<float, 4>::from_shape(shape);
  for (float& value : images) value = static_cast<float>(random.uniform());
  return images;
}

}  // namespace widelimit::data_test
