#include "json/json_matrix.hpp"

#include <doctest/doctest.h>

#include "widelimit/error.hpp"

using namespace widelimit;
using nlohmann::json;

TEST_CASE("JSON matrices: lists of equal length, converted where a matrix is wanted") {
  const json rows = {{1, 2, 3}, {4, 5, 6}};
  const Matrix<double> matrix = JsonValue(rows, "V");
  CHECK(matrix == Matrix<double>{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  const json empty = json::array();
  CHECK(JsonValue(empty, "V").get<Matrix<double>>().size() == 0);
  for (const json& wrong : {json{{1, 2}, {3}}, json{1, 2}, json("text"), json{{1, "2"}}})
    CHECK_THROWS_WITH_AS((void)JsonValue(wrong, "V").get<Matrix<double>>(),
                         doctest::Contains("V: expected a list of number lists of equal length, got "),
                         DataError);
}

TEST_CASE("JSON vectors: a list, or one number") {
  const json list = {1, 2}, number = 3;
  CHECK(JsonValue(list, "v").get<Vector<double>>() == Vector<double>{{1.0, 2.0}});
  CHECK(JsonValue(number, "v").get<Vector<double>>() == Vector<double>::Constant(1, 3));
  const json wrong = {1, "2"};
  CHECK_THROWS_WITH_AS((void)JsonValue(wrong, "v").get<Vector<double>>(),
                       "v: expected a list of numbers, got [1,\"2\"]", DataError);
}
