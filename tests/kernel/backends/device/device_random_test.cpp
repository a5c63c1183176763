// Random networks of every layer on inputs of every kind, as random_cases_test.cpp has them: what a device computes,
// against plain loops over positions. A failure prints its seed; WIDELIMIT_CASES=FIRST-LAST runs other seeds.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "kernel/backends/device/device_comparison.hpp"
#include "kernel/backends/reference/naive_pairs.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::testing::device_random_test {
namespace {

struct Counts {
  int taken = 0, computed = 0, out_of_range = 0, loosened = 0;
};

bool has_tag(const RandomCase& of, const std::string& tag) {
  return std::find(of.tags.begin(), of.tags.end(), tag) != of.tags.end();
}

template <typename Scalar>
void check_grams(const RandomCase& of, NaivePairs& naive, const Precision& precision, Counts& counts) {
  const Inputs<Scalar> x1 = as<Scalar>(of.x1), x2 = as<Scalar>(of.x2);
  const GramResult<Scalar> one = gram<Scalar>(of.network, x1, on_device()),
                           two = gram<Scalar>(of.network, x1, x2, on_device());
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
    static_cast<void>(explain(of.network, of.x1, on_device()));
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
