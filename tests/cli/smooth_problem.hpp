#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <xtensor/xarray.hpp>
#include <xtensor/xbuilder.hpp>

#include "widelimit/data/npy.hpp"

namespace widelimit::testing {

/// A network of erf on one dimension and 600 inputs: the kernel has some 20 eigenvalues above the rounding errors of
/// float, and negative ones beyond them. Returns the options of `gp`.
inline std::string write_smooth_problem(const std::filesystem::path& folder) {
  std::ofstream(folder / "erf.json")
      << R"({"widelimit": 1, "name": "erf", "layers": [{"layer": "dense", "weight_variance": 2, "bias_variance": 0.1},
             {"layer": "erf"}, {"layer": "dense", "weight_variance": 2, "bias_variance": 0.1}, {"layer": "erf"},
             {"layer": "dense", "weight_variance": 1, "bias_variance": 0}]})";
  const auto write = [&folder](const std::string& part, std::size_t n, double shift) {
    xt::xarray<double> x = xt::zeros<double>({n, std::size_t{1}}), y = x;
    for (std::size_t i = 0; i < n; ++i) {
      x(i, 0) = 2 * std::sin(shift + 0.7 * static_cast<double>(i));
      y(i, 0) = std::cos(2 * x(i, 0)) + 1e-4 * std::sin(31.7 * static_cast<double>(i));
    }
    data::write_npy(folder / ("x_" + part + ".npy"), x);
    data::write_npy(folder / ("y_" + part + ".npy"), y);
  };
  write("train", 600, 0);
  write("validation", 80, 0.3);
  write("test", 80, 0.6);
  return "gp --data npy --targets numbers --network " + (folder / "erf.json").string() + " --path " +
         folder.string() + " --amplitude 1 --no-report --no-pictures --criterion mse ";
}

}  // namespace widelimit::testing
