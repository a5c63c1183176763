// Dual activations by the recursion of fully connected networks, against the reference cases of tests/reference.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "numerics/relative.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/kinds.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/activations.hpp"

// Fully connected reference networks, whose recursion fits in a few lines: the activations are the only code
// under test. Skipped, with a message, where the shared reference folder is not beside the sources.

using namespace widelimit;
using namespace widelimit::numerics;
using nlohmann::json;

namespace {

const std::filesystem::path reference_folder =
    std::filesystem::path(WIDELIMIT_SOURCE_DIR) / ".." / "shared" / "reference" / "kernels";

json read_json(const std::filesystem::path& path) { return json::parse(std::ifstream(path)); }

/// Null for a layer of another group.
ActivationPtr activation_of(const json& layer) {
  const layers::LayerKind* kind = layers::builtin_kind(layer.at("layer").get<std::string>());
  if (kind == nullptr || kind->group != layers::KindGroup::activation) return nullptr;
  const json network{{"widelimit", 1}, {"layers", json::array({layer})}};
  return layers::activation_of(parse_network(network.dump()).layers().front());
}

struct Entry {
  double p;
  double q;
  double c;
  double ntk = 0;
};

void propagate(const json& layers, Entry& entry) {
  for (const json& layer : layers) {
    if (layer.at("layer") == "repeat") {
      for (int i = 0; i < layer.at("times").get<int>(); ++i) propagate(layer.at("layers"), entry);
    } else if (layer.at("layer") == "dense") {
      const double weight = layer.value("weight_variance", 1.0);
      const double bias = layer.value("bias_variance", 0.0);
      entry = {weight * entry.p + bias, weight * entry.q + bias, weight * entry.c + bias,
               weight * entry.c + bias + weight * entry.ntk};
    } else {
      const ActivationPtr activation = activation_of(layer);
      REQUIRE(activation);
      const auto [value, derivative] = activation->dual(entry.p, entry.q, entry.c);
      entry = {activation->dual(entry.p, entry.p, entry.p).value,
               activation->dual(entry.q, entry.q, entry.q).value, value, entry.ntk * derivative};
    }
  }
}

double mean_product(const xt::xarray<double>& x, std::size_t i, const xt::xarray<double>& y, std::size_t j) {
  double sum = 0;
  for (std::size_t channel = 0; channel < x.shape(1); ++channel) sum += x(i, channel) * y(j, channel);
  return sum / static_cast<double>(x.shape(1));
}

TEST_CASE("reference kernels: fully connected networks of every activation") {
  if (!std::filesystem::exists(reference_folder / "index.json")) {
    MESSAGE("skipped: no reference kernels beside the sources");
    return;
  }
  int cases = 0;
  for (const json& item : read_json(reference_folder / "index.json")) {
    const std::string name = item.at("case");
    if (!name.starts_with("fcn-")) continue;
    ++cases;
    CAPTURE(name);
    const auto folder = reference_folder / name;
    const double tolerance = item.at("tolerance");
    const json network = read_json(folder / "network.json");
    const auto x1 = data::read_npy<double>(folder / "x1.npy");
    const auto x2 =
        std::filesystem::exists(folder / "x2.npy") ? data::read_npy<double>(folder / "x2.npy") : x1;
    const auto nngp = data::read_npy<double>(folder / "nngp.npy");
    const auto ntk = data::read_npy<double>(folder / "ntk.npy");
    for (std::size_t i = 0; i < x1.shape(0); ++i)
      for (std::size_t j = 0; j < x2.shape(0); ++j) {
        Entry entry{mean_product(x1, i, x1, i), mean_product(x2, j, x2, j), mean_product(x1, i, x2, j)};
        propagate(network.at("layers"), entry);
        CHECK(entry.c == testing::relative(nngp(i, j), tolerance));
        CHECK(entry.ntk == testing::relative(ntk(i, j), tolerance));
      }
  }
  CHECK(cases >= 17);
}

}  // namespace
