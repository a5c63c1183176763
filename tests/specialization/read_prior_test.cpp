#include "widelimit/specialization/read_prior.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "specialization/support.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using nlohmann::json;

namespace {

Prior prior_of(const json& description) { return read_prior(description, "config.prior"); }

std::string error_of(const json& description) {
  return message_of([&] { (void)prior_of(description); });
}

}  // namespace

TEST_CASE("read prior: every kind") {
  CHECK(prior_of({{"kind", "flip2"}, {"nu1", 2}, {"nu2", 3}}).points() == Prior::flip2(2, 3).points());
  CHECK(prior_of({{"kind", "spikes"}, {"features", 3}, {"nu", 4}}).points() == Prior::spikes(3, 4).points());
  CHECK(prior_of({{"kind", "gaussian"}, {"features", 3}, {"nu1", 20}, {"nu2", 1}}).variances() ==
        linear_variances(3, 20, 1));
  CHECK(prior_of({{"kind", "gaussian"}, {"variances", {4, 1}}}).variances() == Vector<double>{{4.0, 1.0}});
  const Prior points =
      prior_of({{"kind", "discrete"}, {"points", {{1, 0}, {0, 2}}}, {"probs", {0.25, 0.75}}});
  CHECK(points.points()(1, 1) == 2);
  CHECK(points.probabilities()[0] == 0.25);
}

TEST_CASE("read prior: errors name the field where it stands") {
  CHECK(error_of({{"kind", "flip3"}}) ==
        "config.prior.kind: expected one of flip2, spikes, gaussian, discrete, got \"flip3\"");
  CHECK(error_of({{"kind", "flip2"}, {"nu1", 2}}) == "config.prior.nu2: expected this field, got none");
  CHECK(error_of({{"kind", "spikes"}, {"nu", 2}, {"features", 2}, {"F", 2}}) ==
        "config.prior.F: unknown field");
  CHECK(error_of({{"kind", "gaussian"}, {"variances", "big"}}) ==
        "config.prior.variances: expected a list of numbers, got \"big\"");
  CHECK(error_of({{"kind", "discrete"}, {"points", {{1, 0}, {1}}}, {"probs", {0.5, 0.5}}}) ==
        "config.prior.points: expected a list of number lists of equal length, got [[1,0],[1]]");
  CHECK(error_of(json::array()) == "config.prior: expected a JSON object, got array");
}
