#include "widelimit/layers/matrix_field.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "widelimit/error.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

const json document = json::parse(
    R"({"wide": [[1, 2.5, 3], [4, 5, 6]], "square": [[1, 0], [0, 2]], "flags": [[true]], "empty": [],
        "ragged": [[1, 2], [3]], "words": [["a"]], "number": 3})");

TEST_CASE("matrix fields: rows of equal length") {
  FieldReader fields(document, "config");
  CHECK(layers::read_matrix_rows(fields, "wide", fields.value("wide")) ==
        Matrix<double>{{1.0, 2.5, 3.0}, {4.0, 5.0, 6.0}});
  CHECK(layers::read_square_matrix<double>(fields, "square") == Matrix<double>{{1.0, 0.0}, {0.0, 2.0}});
  CHECK(layers::read_square_matrix<bool>(fields, "flags")(0, 0));
}

TEST_CASE("matrix fields: errors name the field and the row") {
  FieldReader fields(document, "config");
  const auto fails = [&](const char* field, const char* message) {
    CHECK_THROWS_WITH_AS(static_cast<void>(layers::read_matrix_rows(fields, field, fields.value(field))),
                         message, NetworkError);
  };
  fails("ragged", "config.ragged: expected 2 rows of 2 numbers, got 1 in row 1");
  fails("words", "config.words: expected a number in row 0, got \"a\"");
  fails("number", "config.number: expected a list of rows, got 3");
  fails("empty", "config.empty: expected a list of filled rows, got []");
  CHECK_THROWS_WITH_AS(static_cast<void>(layers::read_square_matrix<double>(fields, "wide")),
                       "config.wide: expected 2 rows of 2 numbers, got 3 in row 0", NetworkError);
}

}  // namespace
}  // namespace widelimit::testing
