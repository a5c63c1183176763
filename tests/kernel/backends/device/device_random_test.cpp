// Random networks of every layer on inputs of every kind, as random_cases_test.cpp has them: what a device computes,
// against plain loops over positions; and networks with every option of windows and every nonlinearity, against the
// CPU. A failure prints its seed; WIDELIMIT_CASES=FIRST-LAST runs other seeds. PoCL is asked for two devices.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/backends/device/device_comparison.hpp"
#include "kernel/backends/reference/naive_pairs.hpp"
#include "kernel/random_networks.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::testing::device_random_test {
namespace {

/// Relative to the geometric mean of both inputs' own kernels.
constexpr double most_in_double = 1e-11, most_in_float = 1e-4;

/// One of the devices, or all of those that share tiles.
GramOptions on(const std::string& device) {
  GramOptions options = on_device();
  options.device = device;
  options.tile_size = 2;
  return options;
}

struct Counts {
  int taken = 0, computed = 0, out_of_range = 0, loosened = 0;
};

bool has_tag(const RandomCase& of, const std::string& tag) {
  return std::find(of.tags.begin(), of.tags.end(), tag) != of.tags.end();
}

template <typename Scalar>
void check_grams(const RandomCase& of, NaivePairs& naive, const Precision& precision, Counts& counts) {
  const Inputs<Scalar> x1 = as<Scalar>(of.x1), x2 = as<Scalar>(of.x2);
  const GramResult<Scalar> one = gram<Scalar>(of.network, x1, on("pocl:0")),
                           two = gram<Scalar>(of.network, x1, x2, on("pocl:0"));
  const Range range = range_of(naive, static_cast<std::size_t>(x1.size() + x2.size()));
  if (!(range.largest < precision.largest && range.smallest > precision.smallest)) {
    ++counts.out_of_range;
    return;
  }
  Worst worst;
  // Some activations of the CPU are by quadrature.
  const Index quadrature = has_tag(of, "erf") ? 1 : 0;
  compare(naive, one, 0, quadrature, precision, worst);
  compare(naive, two, static_cast<std::size_t>(x1.size()), quadrature, precision, worst);
  ++counts.computed;
  if (worst.loosened) ++counts.loosened;
}

/// Whether a device takes the network; its error says why not.
bool is_taken(const RandomCase& of, std::string& reason) {
  try {
    static_cast<void>(explain(of.network, of.x1, on("pocl:0")));
    return true;
  } catch (const DeviceError& error) {
    reason = error.what();
    CHECK(reason.find("choose the device cpu") != std::string::npos);
  } catch (const Error& error) {
    reason = error.what();  // A mask that leaves nothing.
  }
  return false;
}

void check_case(const RandomCase& of, Counts& counts) {
  std::ostringstream printed;
  printed << of.network;
  CAPTURE(printed.str());
  try {
    NaivePairs naive(of.network, inputs_of(of));
    check_grams<double>(of, naive, in_double, counts);
    check_grams<float>(of, naive, of_float, counts);
  } catch (const NumericalError&) {
    ++counts.out_of_range;  // random_cases_test.cpp asks whether rightly.
  } catch (const NetworkError&) {
  } catch (const NoPositionLeft&) {
  } catch (const BeyondNaive&) {
  }
}

/// Every pair of shapes has programs of its own, and PoCL takes tenths of a second to compile each.
bool is_quick(const RandomCase& of) { return !has_tag(of, "ragged"); }
bool has_attention(const RandomCase& of) { return has_tag(of, "attention inverse_width"); }
bool has_gaussian_logits(const RandomCase& of) { return has_tag(of, "attention inverse_sqrt_width"); }
bool is_quick_attention(const RandomCase& of) { return is_quick(of) && has_attention(of); }
bool is_quick_with_gaussian_logits(const RandomCase& of) { return is_quick(of) && has_gaussian_logits(of); }
bool any(const RandomCase&) { return true; }

/// Networks from a seed on that a device takes and that fit, so many of them.
Counts check_cases(unsigned first, int wanted, bool (*fits)(const RandomCase&)) {
  const char* range = std::getenv("WIDELIMIT_CASES");
  unsigned last = first + 200 * static_cast<unsigned>(wanted);
  if (range != nullptr) std::sscanf(range, "%u-%u", &first, &last);
  Counts counts;
  for (unsigned seed = first; seed <= last && (range != nullptr || counts.taken < wanted); ++seed) {
    CAPTURE(seed);
    const RandomCase of = random_case(seed);
    std::string reason;
    if (!fits(of)) continue;
    if (is_taken(of, reason)) {
      ++counts.taken;
      check_case(of, counts);
    } else if (range != nullptr) {
      std::printf("%u: %s\n", seed, reason.c_str());
    }
  }
  if (range != nullptr)
    std::printf("%d networks, %d Gram matrices computed, %d out of range, %d allowed more than the floor\n",
                counts.taken, counts.computed, counts.out_of_range, counts.loosened);
  return counts;
}

TEST_CASE("a device computes random networks as plain loops do") {
  const Counts counts = check_cases(1, 3, is_quick);
  if (std::getenv("WIDELIMIT_CASES") == nullptr) CHECK(counts.computed > 3);
}

TEST_CASE("a device computes random networks with attention as plain loops do") {
  const Counts counts = check_cases(10'000, 3, is_quick_attention);
  if (std::getenv("WIDELIMIT_CASES") == nullptr) CHECK(counts.computed > 3);
}

TEST_CASE("a device computes random networks with attention at 1/sqrt(width) as plain loops do") {
  const Counts counts = check_cases(10'000, 3, is_quick_with_gaussian_logits);
  if (std::getenv("WIDELIMIT_CASES") == nullptr) CHECK(counts.computed > 3);
}

/// Of equal shape, of different ones, down to a single position, and vectors.
const std::vector<std::vector<Shape>> batches{
    {{7}, {7}, {7}},          {{4, 5}, {4, 5}, {4, 5}}, {{3, 2, 3}, {3, 2, 3}},   {{12}, {12}},
    {{5, 3}, {5, 3}, {5, 3}}, {{1}, {1}, {1}},          {{6, 6}, {6, 6}},         {{1, 6}, {1, 6}, {1, 6}},
    {{9}, {4}, {7}},          {{4, 5}, {5, 4}},         {{2, 2}, {2, 2}, {2, 2}}, {{2, 3, 3}, {3, 2, 3}}};

/// Of one input each, in normal numbers of floats.
Inputs<double> normal_inputs(unsigned seed, const std::vector<Shape>& shapes) {
  std::vector<xt::xarray<double>> arrays;
  for (const Shape& shape : shapes) {
    std::vector<Index> dimensions(shape.begin(), shape.end());
    dimensions.push_back(3);
    arrays.emplace_back(xt::cast<double>(
        random_inputs<float>(seed + 100 * static_cast<unsigned>(arrays.size()), dimensions)));
  }
  return arrays;
}

/// How many networks were compared, and the largest of their differences.
struct Comparison {
  int taken = 0, refused = 0, out_of_range = 0;
  double worst_double = 0, worst_float = 0;
};

template <typename Scalar>
double difference_from_cpu(const Network& network, const Inputs<double>& x1, const Inputs<double>& x2) {
  const auto own1 = gram_diagonal(network, x1), own2 = gram_diagonal(network, x2);
  const auto whole = gram(network, x1), pairs = gram(network, x1, x2);
  const auto of_device = gram(network, as<Scalar>(x1), on("pocl:0")),
             rectangle = gram(network, as<Scalar>(x1), as<Scalar>(x2), on("pocl:0"));
  return std::max({difference(of_device.nngp, whole.nngp, own1.nngp, own1.nngp),
                   difference(of_device.ntk, whole.ntk, own1.ntk, own1.ntk),
                   difference(rectangle.nngp, pairs.nngp, own1.nngp, own2.nngp),
                   difference(rectangle.ntk, pairs.ntk, own1.ntk, own2.ntk)});
}

/// Every fourth network is computed in float as well, and every eighth by two devices that share tiles.
void compare_with_cpu(unsigned seed, Comparison& comparison) {
  const auto& shapes = batches[seed % batches.size()];
  const Network network = random_device_network(seed, shapes);
  std::ostringstream printed;
  printed << network;
  CAPTURE(printed.str());
  const Inputs<double> x1 = normal_inputs(seed, shapes), x2 = normal_inputs(seed + 50, shapes);
  try {
    static_cast<void>(explain(network, x1, on("pocl:0")));
  } catch (const DeviceError& error) {
    CHECK(std::string(error.what()).find("choose the device cpu") != std::string::npos);
    ++comparison.refused;
    return;
  }
  try {
    const double in_double = difference_from_cpu<double>(network, x1, x2);
    CHECK(in_double < most_in_double);
    comparison.worst_double = std::max(comparison.worst_double, in_double);
    if (seed % 4 == 0) {
      const double in_float = difference_from_cpu<float>(network, x1, x2);
      CHECK(in_float < most_in_float);
      comparison.worst_float = std::max(comparison.worst_float, in_float);
    }
    if (seed % 8 == 1) {
      const auto one = gram(network, x1, on("pocl:0")), both = gram(network, x1, on("pocl:all"));
      CHECK(one.nngp == both.nngp);
      CHECK(one.ntk == both.ntk);
    }
    ++comparison.taken;
  } catch (const NumericalError&) {
    ++comparison.out_of_range;
  }
}

/// Seeds from one to another, or those of WIDELIMIT_CASES.
Comparison compare_with_cpu(unsigned first, unsigned last) {
  const char* range = std::getenv("WIDELIMIT_CASES");
  if (range != nullptr) std::sscanf(range, "%u-%u", &first, &last);
  Comparison comparison;
  for (unsigned seed = first; seed <= last; ++seed) {
    CAPTURE(seed);
    compare_with_cpu(seed, comparison);
    if (range != nullptr) std::fflush(stdout);
  }
  if (range != nullptr)
    std::printf(
        "%d networks, %d refused, %d out of range; largest differences %.1e in double, %.1e in float\n",
        comparison.taken, comparison.refused, comparison.out_of_range, comparison.worst_double,
        comparison.worst_float);
  return comparison;
}

TEST_CASE("a device computes thirty random networks of every layer as the CPU does") {
  const Comparison comparison = compare_with_cpu(1, 30);
  if (std::getenv("WIDELIMIT_CASES") == nullptr) CHECK(comparison.taken > 20);
}

TEST_CASE("a device computes a thousand random networks of every layer as the CPU does [slow]") {
  const Comparison comparison = compare_with_cpu(1001, 2000);
  if (std::getenv("WIDELIMIT_CASES") == nullptr) CHECK(comparison.taken > 700);
}

TEST_CASE("a device computes many random networks with attention at 1/sqrt(width) as plain loops do [slow]") {
  const Counts counts = check_cases(30'000, 60, has_gaussian_logits);
  if (std::getenv("WIDELIMIT_CASES") == nullptr) CHECK(counts.computed > 90);
}

TEST_CASE("a device computes many random networks with attention as plain loops do [slow]") {
  const Counts counts = check_cases(30'000, 60, has_attention);
  if (std::getenv("WIDELIMIT_CASES") == nullptr) CHECK(counts.computed > 90);
}

TEST_CASE("a device computes many random networks as plain loops do [slow]") {
  const Counts counts = check_cases(20'000, 200, any);
  if (std::getenv("WIDELIMIT_CASES") == nullptr) CHECK(counts.computed > 300);
}

}  // namespace
}  // namespace widelimit::testing::device_random_test
