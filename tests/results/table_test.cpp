#include "widelimit/results/table.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

using namespace widelimit;
using namespace widelimit::results;
using nlohmann::json;

namespace {

Matrix<double> square(double a, double b, double c, double d) {
  Matrix<double> matrix(2, 2);
  matrix << a, b, c, d;
  return matrix;
}

/// A path with a hidden column, a matrix and a label in every row.
Table path() {
  Table table({{.name = "label"},
               {.name = "tau", .format = "{:.3g}"},
               not_in_files({.name = "gradient"}),
               matrix_column("m", 2, 2)});
  table.add("one", 1.0 / 3, 7.0, square(1, 2, 3, 4));
  table.add("two, three", 1.0, 8.0, square(5, 6, 7, -std::nan("")));
  return table;
}

}  // namespace

TEST_CASE("table: cells of all kinds in a row, and what files hold of them") {
  const Table table = path();
  CHECK(table.rows() == 2);
  CHECK(table.names() == std::vector<std::string>{"label", "tau", "m00", "m01", "m10", "m11"});
  CHECK(csv_text(table) == "label,tau,m00,m01,m10,m11\none,0.333,1,2,3,4\n\"two, three\",1,5,6,7,nan\n");
  CHECK(table.values("m10") == std::vector<double>{3, 7});
  CHECK(table.column("gradient").numbers == std::vector<double>{7, 8});
  CHECK(table.column("m").numbers.size() == 8);
  CHECK(table.has("m"));
  CHECK_FALSE(table.has("m00"));
  CHECK_THROWS_AS((void)table.values("gradient"), std::out_of_range);
  CHECK_THROWS_AS((void)table.column("none"), std::out_of_range);
}

TEST_CASE("table: a number has as many digits as it takes to read it back") {
  const Table table({"x"}, {{0.1}, {1.0 / 3}, {1e300}, {5}});
  CHECK(csv_text(table) == "x\n0.1\n0.3333333333333333\n1e+300\n5\n");
  const json written = json_of(table);
  CHECK(written == json{{"columns", {"x"}}, {"rows", {{0.1}, {1.0 / 3}, {1e300}, {5.0}}}});
}

TEST_CASE("table: names of entries") {
  CHECK(matrix_column("m", 11, 2).entries[21] == "m10_1");
  CHECK(vector_column("b", 3).entries == std::vector<std::string>{"b0", "b1", "b2"});
  CHECK(symmetric_column("V", 2).entries == std::vector<std::string>{"V0_0", "V0_1", "V1_1"});
  CHECK(Table({matrix_column("m", 0, 3)}).names() == std::vector<std::string>{"m"});
}

TEST_CASE("table: leading cells are repeated before every row") {
  Table point({{.name = "network", .quoted = true}, {.name = "gamma"}});
  point.add("a \"b\"", 0.5);
  Table table = point;
  table.join(Table({{.name = "time"}}));
  Table rows({{.name = "network", .quoted = true}, {.name = "gamma"}, {.name = "time"}});
  rows.add(point, 1.0);
  rows.add(point, 2.0);
  CHECK(csv_text(rows) == "network,gamma,time\n\"a \"\"b\"\"\",0.5,1\n\"a \"\"b\"\"\",0.5,2\n");
  CHECK(table.names() == std::vector<std::string>{"network", "gamma", "time"});
}

TEST_CASE("table: a row of another width is refused") {
  CHECK_THROWS_AS(Table({"a", "b"}, {{1.0}}), std::out_of_range);
  Table table({{.name = "a"}});
  CHECK_THROWS_AS(table.add(1.0, 2.0), std::out_of_range);
}
