#include "widelimit/store/input_facts.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "widelimit/store/sha256.hpp"

namespace widelimit::store {
namespace {

using nlohmann::json;

Matrix<double> three_inputs() { return Matrix<double>{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}; }

TEST_CASE("input facts: a part of a batch has the checksum of its own numbers") {
  const Matrix<double> x = three_inputs();
  const json facts = input_facts(Inputs<double>(x), {1, 3});
  CHECK(facts.at("count") == 2);
  CHECK(facts.at("values_sha256") == sha256_of(x.data() + 2, 4 * sizeof(double)));
  CHECK(facts.size() == 2);
}

TEST_CASE("batch facts: what differs in a number or in its type is another batch") {
  const Matrix<double> x = three_inputs();
  Matrix<double> other = x;
  other(2, 1) += 1e-15 * 6;
  const Matrix<float> single = x.cast<float>();
  const json facts = batch_facts(Inputs<double>(x));
  CHECK(facts.at("channels") == 2);
  CHECK(facts.at("shape") == json::array());
  CHECK(facts.at("steps") == json::array({input_facts(Inputs<double>(x), {0, 3})}));
  CHECK(facts == batch_facts(Inputs<double>(three_inputs())));
  CHECK(facts != batch_facts(Inputs<double>(other)));
  CHECK(facts != batch_facts(Inputs<float>(single)));
}

}  // namespace
}  // namespace widelimit::store
