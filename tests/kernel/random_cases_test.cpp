// Random networks of every layer on inputs of every kind, against plain loops over positions. A failure prints its
// seed; WIDELIMIT_CASES=FIRST-LAST runs other seeds, and prints the worst errors of every kind.
#include "kernel/random_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/backends/reference/naive_pairs.hpp"
#include "kernel/case_composer.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::testing {
namespace {

/// Of many cases, kind by kind.
class Tally {
 public:
  void add(const RandomCase& of, const char* precision, double error, double unexplained) {
    for (const std::string& tag : of.tags) add(tag + " " + precision, error, unexplained);
    add(std::string("all ") + precision, error, unexplained);
  }
  void count(const std::string& what) { ++counts_[what]; }
  [[nodiscard]] int counted(const std::string& what) const {
    const auto found = counts_.find(what);
    return found == counts_.end() ? 0 : found->second;
  }
  void print() const {
    for (const auto& [tag, row] : rows_)
      std::printf("%-40s %5d cases, worst error %.1e, %.1e of what is allowed\n", tag.c_str(), row.cases,
                  row.error, row.share);
    for (const auto& [what, number] : counts_) std::printf("%-40s %5d\n", what.c_str(), number);
  }

 private:
  struct Row {
    int cases = 0;
    double error = 0, share = 0;
  };
  void add(const std::string& name, double error, double share) {
    Row& row = rows_[name];
    row = {row.cases + 1, std::max(row.error, error), std::max(row.share, share)};
  }
  std::map<std::string, Row> rows_;
  std::map<std::string, int> counts_;
};

bool has_tag(const RandomCase& of, std::initializer_list<const char*> tags) {
  return std::any_of(tags.begin(), tags.end(), [&](const char* tag) {
    return std::find(of.tags.begin(), of.tags.end(), tag) != of.tags.end();
  });
}

template <typename Scalar>
void check_grams(const RandomCase& of, NaivePairs& naive, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                 const Precision& precision, const char* name, Tally& tally) {
  CAPTURE(std::string(name));
  const Index quadrature = has_tag(of, {"tanh", "sigmoid", "silu", "softplus", "erf"}) ? 1 : 0;
  const auto all = static_cast<std::size_t>(x1.size() + x2.size());
  const Range range = range_of(naive, all);
  // Logits have variances that are products of two.
  const Real largest =
      has_tag(of, {"attention inverse_sqrt_width"}) ? range.largest * range.largest : range.largest;
  const bool in_range = largest < precision.largest && range.smallest > precision.smallest;
  Worst worst;
  try {
    const auto one = gram<Scalar>(of.network, x1), two = gram<Scalar>(of.network, x1, x2);
    if (!in_range) {
      tally.count(std::string("out of range ") + name);
      return;
    }
    compare(naive, one, 0, quadrature, precision, worst);
    compare(naive, two, static_cast<std::size_t>(x1.size()), quadrature, precision, worst);
  } catch (const NumericalError& error) {
    CAPTURE(std::string(error.what()));
    CHECK_FALSE(in_range);
    tally.count(std::string("out of range ") + name);
    return;
  } catch (const Error& error) {
    CAPTURE(std::string(error.what()));
    FAIL_CHECK("refused");
    return;
  }
  tally.count(std::string(worst.loosened ? "allowed more than the floor " : "below the floor ") + name);
  tally.add(of, name, worst.error, worst.share);
}

/// Of a network of which a mask leaves an input nothing, the error says where.
bool check_masks(const RandomCase& of, const NoPositionLeft& none) {
  try {
    static_cast<void>(gram<double>(of.network, of.x1));
    static_cast<void>(gram<double>(of.network, of.x1, of.x2));
  } catch (const NetworkError& error) {
    CHECK(std::string(error.what()).find(none.path + " (") == 0);
    return true;
  }
  CHECK_MESSAGE(false, "a mask that leaves no position must be an error");
  return false;
}

void check_case(unsigned seed, Tally& tally) {
  CAPTURE(seed);
  const RandomCase of = random_case(seed);
  std::ostringstream printed;
  printed << of.network;
  CAPTURE(printed.str());
  std::string tags;
  for (const std::string& tag : of.tags) tags += tag + ", ";
  CAPTURE(tags);
  try {
    NaivePairs naive(of.network, inputs_of(of));
    check_grams(of, naive, of.x1, of.x2, in_double, "double", tally);
    check_grams(of, naive, in_float(of.x1), in_float(of.x2), of_float, "float", tally);
  } catch (const NoPositionLeft& none) {
    tally.count("masks that leave nothing");
    check_masks(of, none);
  } catch (const BeyondNaive&) {
    tally.count("beyond the trapezium rule");
  }
}

Tally check_cases(unsigned first, unsigned last) {
  const char* wanted = std::getenv("WIDELIMIT_CASES");
  if (wanted != nullptr) std::sscanf(wanted, "%u-%u", &first, &last);
  Tally tally;
  for (unsigned seed = first; seed <= last; ++seed) check_case(seed, tally);
  if (wanted != nullptr) tally.print();
  return tally;
}

/// Nearly all cases are compared, and nearly all of them to the floor.
void check_shares(const Tally& tally, int cases) {
  if (std::getenv("WIDELIMIT_CASES") != nullptr) return;
  CHECK(tally.counted("below the floor double") > cases * 8 / 10);
  CHECK(tally.counted("below the floor float") > cases * 8 / 10);
  CHECK(tally.counted("allowed more than the floor double") < cases / 10);
  CHECK(tally.counted("beyond the trapezium rule") < cases / 20);
  CHECK(tally.counted("out of range double") < cases / 20);
  CHECK(tally.counted("out of range float") < cases / 20);
}

TEST_CASE("random networks of every kind agree with the naive kernel") {
  check_shares(check_cases(1, 200), 200);
}

TEST_CASE("many random networks of every kind agree with the naive kernel [slow]") {
  check_shares(check_cases(10'000, 12'999), 3000);
}

}  // namespace
}  // namespace widelimit::testing
