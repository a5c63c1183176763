// What random networks of every layer must not notice, and their derivatives by the inputs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/backends/reference/naive_check.hpp"
#include "kernel/random_cases.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/kinds.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

using Json = nlohmann::json;

Json layers_of(const Network& network) { return Json::parse(to_json(network))["layers"]; }

/// Whether `holds` does of all layers, in branches and repeats too.
template <typename Holds>
bool all_layers(const Json& layers, const Holds& holds) {
  return std::all_of(layers.begin(), layers.end(), [&](const Json& layer) {
    if (!holds(layer)) return false;
    if (layer.contains("layers") && !all_layers(layer["layers"], holds)) return false;
    if (!layer.contains("branches")) return true;
    return std::all_of(layer["branches"].begin(), layer["branches"].end(),
                       [&](const Json& branch) { return all_layers(branch["layers"], holds); });
  });
}

bool is_one_of(const Json& layer, const std::set<std::string>& kinds) {
  return kinds.contains(layer["layer"]);
}

Layer layer_of(const Json& layer) {
  return parse_network(Json{{"widelimit", 1}, {"layers", Json::array({layer})}}.dump()).layers().front();
}

/// K(a x, b y) = ab K(x, y), and the same of T.
bool is_homogeneous(const Json& layer) {
  if (layer.value("bias_variance", 0.0) != 0 || layer.value("zero_biases", false)) return false;
  if (is_one_of(layer, {"recurrent"})) {
    const Json& phi = layer["nonlinearity"];
    return is_homogeneous(phi.is_string() ? Json{{"layer", phi}} : phi);
  }
  if (const auto* kind = layers::builtin_kind(layer["layer"].get<std::string>());
      kind->dual != layers::DualForm::none && kind->name != "exp_normalized")
    return layers::activation_of(layer_of(layer))->homogeneous().has_value();
  return !is_one_of(layer, {"rms_norm", "layer_norm", "product", "attention"});
}

/// Positions read backwards give what stands at them backwards.
bool keeps_mirror_images(const Json& layer) {
  if (is_one_of(layer, {"slice", "index", "positions_map", "conv_transpose", "image_resize", "aggregate",
                        "recurrent"}))
    return false;
  if (layer["layer"] == "concat" && layer.contains("axis")) return false;
  const Json& window = layer.contains("filter")                                 ? layer["filter"]
                       : layer.contains("window") && layer["window"].is_array() ? layer["window"]
                                                                                : Json();
  for (std::size_t axis = 0; axis < window.size(); ++axis)
    if (window[axis].get<Index>() % 2 == 0 || layer["strides"][axis] != 1) return false;
  if (layer["layer"] != "attention") return true;
  if (layer["causal"] == true || layer.contains("mask")) return false;
  return !layer.contains("positions") || layer["positions"]["kind"] == "identity" ||
         layer["positions"]["kind"] == "decay";
}

bool same_bits(const Matrix<double>& left, const Matrix<double>& right) {
  return left.rows() == right.rows() && left.cols() == right.cols() && (left.array() == right.array()).all();
}

/// A case with its network's text for failures, of which kernels exist; others are passed over.
template <typename Check>
bool with_kernels(unsigned seed, const RandomCase& of, const Check& check) {
  CAPTURE(seed);
  std::ostringstream printed;
  printed << of.network;
  CAPTURE(printed.str());
  try {
    const auto kernels = gram<double>(of.network, of.x1, of.x2);
    check(kernels);
    return true;
  } catch (
      const NumericalError&) {     // Beyond the range of double: random_cases_test.cpp asks whether rightly.
  } catch (const NetworkError&) {  // A mask that leaves nothing, as well.
  }
  return false;
}

/// Calls check(case, kernels) for cases that fit, until `wanted` have been checked.
template <typename Fits, typename Check>
void check_cases(unsigned first_seed, int wanted, const Fits& fits, const Check& check) {
  int checked = 0;
  for (unsigned seed = first_seed; checked < wanted; ++seed) {
    REQUIRE(seed < first_seed + 400 * static_cast<unsigned>(wanted));
    const RandomCase of = random_case(seed);
    if (fits(of) && with_kernels(seed, of, [&](const GramResult<double>& kernels) { check(of, kernels); }))
      ++checked;
  }
}

bool any(const RandomCase&) { return true; }

bool is_plain(const RandomCase& of) {
  return of.x1.graphs().empty() && !of.x1.is_masked() && !of.x2.is_masked() && !of.x1.is_ragged();
}

TEST_CASE("random inputs in another order have the same bits") {
  check_cases(1, 60, is_plain, [](const RandomCase& of, const GramResult<double>& kernels) {
    const auto backwards = [](const Inputs<double>& x) {
      return with_numbers<double>(
          x, [&](Index i, Index entry) { return x[x.size() - 1 - i][static_cast<std::size_t>(entry)]; });
    };
    const auto found = gram<double>(of.network, backwards(of.x1), backwards(of.x2));
    CHECK(same_bits(found.nngp.reverse(), kernels.nngp));
    CHECK(same_bits(found.ntk.reverse(), kernels.ntk));
  });
}

TEST_CASE("one kernel alone, one thread, all offsets: the same bits") {
  check_cases(1, 60, any, [](const RandomCase& of, const GramResult<double>& kernels) {
    CHECK(same_bits(gram<double>(of.network, of.x1, of.x2, {.kernels = Kernels::nngp}).nngp, kernels.nngp));
    CHECK(same_bits(gram<double>(of.network, of.x1, of.x2, {.kernels = Kernels::ntk}).ntk, kernels.ntk));
    const auto everything = gram<double>(
        of.network, of.x1, of.x2, {.threads = 1, .tile_size = 1, .demand = GramOptions::Demand::everything});
    CHECK(same_bits(everything.nngp, kernels.nngp));
    CHECK(same_bits(everything.ntk, kernels.ntk));
  });
}

TEST_CASE("equal random inputs have equal bits") {
  check_cases(300, 60, is_plain, [](const RandomCase& of, const GramResult<double>&) {
    const Inputs<double> twice = with_numbers<double>(of.x1, [&](Index, Index entry) {
      return of.x1[0][static_cast<std::size_t>(entry) % of.x1[0].size()];
    });
    const auto one = gram<double>(of.network, twice, of.x2);
    CHECK(same_bits(one.nngp.row(0), one.nngp.row(1)));
    CHECK(same_bits(one.ntk.row(0), one.ntk.row(1)));
  });
}

TEST_CASE("homogeneous random networks scale with powers of two, bit for bit") {
  const auto fits = [](const RandomCase& of) { return all_layers(layers_of(of.network), is_homogeneous); };
  check_cases(1, 15, fits, [](const RandomCase& of, const GramResult<double>& kernels) {
    const auto scaled = [](const Inputs<double>& x, double factor) {
      return with_numbers<double>(
          x, [&](Index i, Index entry) { return factor * x[i][static_cast<std::size_t>(entry)]; });
    };
    const auto larger = gram<double>(of.network, scaled(of.x1, 8), scaled(of.x2, 0.25));
    CHECK(same_bits(larger.nngp, 2 * kernels.nngp));
    CHECK(same_bits(larger.ntk, 2 * kernels.ntk));
  });
}

TEST_CASE("random networks without a direction treat mirror images alike") {
  const auto fits = [](const RandomCase& of) {
    return of.x1.axes() > 0 && is_plain(of) && all_layers(layers_of(of.network), keeps_mirror_images);
  };
  check_cases(1, 30, fits, [](const RandomCase& of, const GramResult<double>& kernels) {
    const auto mirrored = [](const Inputs<double>& x) {
      return with_numbers<double>(x, [&](Index i, Index entry) {
        const Index channels = x.channels(), last = static_cast<Index>(x[i].size()) / channels - 1;
        const Index at = (last - entry / channels) * channels + entry % channels;
        return x[i][static_cast<std::size_t>(at)];
      });
    };
    const auto found = gram<double>(of.network, mirrored(of.x1), mirrored(of.x2));
    const auto first = gram_diagonal<double>(of.network, of.x1),
               second = gram_diagonal<double>(of.network, of.x2);
    for (Index i = 0; i < kernels.nngp.rows(); ++i)
      for (Index j = 0; j < kernels.nngp.cols(); ++j) {
        CHECK(std::abs(found.nngp(i, j) - kernels.nngp(i, j)) <=
              1e-7 * std::sqrt(first.nngp(i, 0) * second.nngp(j, 0)));
        CHECK(std::abs(found.ntk(i, j) - kernels.ntk(i, j)) <=
              1e-6 * std::sqrt(first.ntk(i, 0) * second.ntk(j, 0)));
      }
  });
}

/// sum_ij (nngp_ij K_ij + ntk_ij T_ij) of naive kernels.
Real naive_sum(const NaiveKernel& naive, const std::vector<NaiveInput>& left,
               const std::vector<NaiveInput>& right, const KernelCotangents<double>& weights) {
  Real sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t j = 0; j < right.size(); ++j) {
      const NaiveValues values = naive(left[i], right[j], false);
      const auto row = static_cast<Index>(i), column = static_cast<Index>(j);
      sum += weights.nngp(row, column) * values.nngp + weights.ntk(row, column) * values.ntk;
    }
  return sum;
}

/// Where an input's number stands in a batch of derivatives, which is as large as the largest input.
double derivative_at(const xt::xarray<double>& gradient, const NaiveInput& input, Index i, Index position,
                     Index channel) {
  std::vector<std::size_t> at{static_cast<std::size_t>(i)};
  for (const Index place : position_of(position, input.shape)) at.push_back(static_cast<std::size_t>(place));
  at.push_back(static_cast<std::size_t>(channel));
  return gradient.element(at.begin(), at.end());
}

/// Smooth where the inputs are: nothing is perfectly correlated, vanishes or jumps.
bool has_derivatives(const RandomCase& of, const std::vector<NaiveInput>& left,
                     const std::vector<NaiveInput>& right) {
  const InputKinds& kinds = of.kinds;
  if (kinds.zeros || kinds.constant || kinds.symmetric || kinds.duplicates || kinds.multiples ||
      kinds.repeated)
    return false;
  const NaiveKernel naive(of.network);
  for (const NaiveInput& x : left)
    for (const NaiveInput& y : right) {
      const NaiveValues values = naive(x, y, false);
      if (values.perfectly_correlated > 0 || values.tangent_at_zero || values.largest_variance > 1e4)
        return false;
    }
  return true;
}

bool has_way_back(const Json& layer) {
  return !is_one_of(layer, {"sign"}) && !(layer["layer"] == "rectified_monomial" && layer["degree"] == 0) &&
         layers::builtin_kind(layer["layer"].get<std::string>())->dual != layers::DualForm::quadrature;
}

/// Differences of fourth order, in the naive kernel's precision.
void check_derivatives(const RandomCase& of, const std::vector<NaiveInput>& left,
                       const std::vector<NaiveInput>& right) {
  constexpr Real step = 1e-4L;
  KernelCotangents<double> weights{Matrix<double>(of.x1.size(), of.x2.size()),
                                   Matrix<double>(of.x1.size(), of.x2.size())};
  for (Index i = 0; i < weights.nngp.size(); ++i) {
    weights.nngp(i) = std::cos(static_cast<double>(i + 1));
    weights.ntk(i) = std::sin(static_cast<double>(2 * i + 1));
  }
  const GramVjp<double> gradient = gram_vjp<double>(of.network, of.x1, of.x2, weights);
  const NaiveKernel naive(of.network);
  double largest = 0;
  for (const double entry : gradient.x1) largest = std::max(largest, std::abs(entry));
  for (Index i = 0; i < of.x1.size(); ++i) {
    const NaiveInput& input = left[static_cast<std::size_t>(i)];
    const Index position = (7 * i + 3) % input.features.rows(), channel = (5 * i + 1) % input.features.cols();
    if (!input.mask.empty() && !input.mask[static_cast<std::size_t>(position)]) continue;
    const auto at = [&](Real shift) {
      std::vector<NaiveInput> shifted = left;
      shifted[static_cast<std::size_t>(i)].features(position, channel) += shift;
      return naive_sum(naive, shifted, right, weights);
    };
    const Real near = (at(step) - at(-step)) / (2 * step), far = (at(2 * step) - at(-2 * step)) / (4 * step);
    const auto expected = static_cast<double>((4 * near - far) / 3);
    CAPTURE(i);
    CAPTURE(position);
    CAPTURE(expected);
    CHECK(std::abs(derivative_at(gradient.x1, input, i, position, channel) - expected) <=
          1e-6 * std::max(largest, std::abs(expected)) + 1e-12);
  }
}

void check_derivatives_of_cases(unsigned first_seed, int wanted) {
  int checked = 0;
  for (unsigned seed = first_seed; checked < wanted; ++seed) {
    REQUIRE(seed < first_seed + 40 * static_cast<unsigned>(wanted));
    const RandomCase of = random_case(seed);
    if (!all_layers(layers_of(of.network), has_way_back)) continue;
    std::vector<NaiveInput> left, right;
    for (Index i = 0; i < of.x1.size(); ++i) left.push_back(naive_input(of.x1, i));
    for (Index j = 0; j < of.x2.size(); ++j) right.push_back(naive_input(of.x2, j));
    try {
      if (!has_derivatives(of, left, right)) continue;
    } catch (const NoPositionLeft&) {
      continue;
    } catch (const BeyondNaive&) {
      continue;
    }
    if (with_kernels(seed, of, [&](const GramResult<double>&) { check_derivatives(of, left, right); }))
      ++checked;
  }
}

TEST_CASE("derivatives of random networks by their inputs are those of the naive kernel") {
  check_derivatives_of_cases(1, 30);
}

TEST_CASE("derivatives of many random networks by their inputs are those of the naive kernel [slow]") {
  check_derivatives_of_cases(10'000, 300);
}

}  // namespace
}  // namespace widelimit::testing
