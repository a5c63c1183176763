#include "widelimit/data/csv.hpp"

#include <doctest/doctest.h>

#include "data/temporary_folder.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::data;
using widelimit::ArgumentError;
using widelimit::DataError;

namespace {

using CsvRow = std::vector<std::string>;

CsvTable csv_of(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("t.csv", text);
  return read_csv(folder.path() / "t.csv");
}

void check_csv_error(const std::string& text, const std::string& message) {
  const TemporaryFolder folder;
  folder.write("t.csv", text);
  const auto path = folder.path() / "t.csv";
  CHECK_THROWS_WITH_AS(static_cast<void>(read_csv(path)), (path.string() + ": " + message).c_str(),
                       DataError);
}

}  // namespace

TEST_CASE("csv: quotes, commas, line breaks, both kinds of line ends, with and without a mark") {
  const CsvTable table = csv_of(
      "\xef\xbb\xbfname,\"a,b\",c\r\n"
      "x, 1 ,\r\n"
      "\"say \"\"hi\"\"\",\"two\nlines\",\"\"\n"
      "last,2,3");
  CHECK(table.columns == CsvRow{"name", "a,b", "c"});
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0] == CsvRow{"x", " 1 ", ""});
  CHECK(table.rows[1] == CsvRow{"say \"hi\"", "two\nlines", ""});
  CHECK(table.rows[2] == CsvRow{"last", "2", "3"});
  CHECK(table.lines == std::vector<std::size_t>{2, 3, 5});
  CHECK(table.column("c") == 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(table.column("d")), "there is no column 'd'; there are name, a,b, c",
                       ArgumentError);
  CHECK(csv_of("a,b\n").rows.empty());
  CHECK(csv_of("a").columns == CsvRow{"a"});
}

TEST_CASE("csv: comments are rows unless they are asked for") {
  const TemporaryFolder folder;
  folder.write("t.csv", "# one\n#,\"two\na,b\n1,2\n#\n3,4\n# end");
  const CsvTable table = read_csv(folder.path() / "t.csv", widelimit::data::CsvComments::hash_lines);
  CHECK(table.columns == CsvRow{"a", "b"});
  CHECK(table.rows == std::vector<CsvRow>{{"1", "2"}, {"3", "4"}});
  CHECK(table.lines == std::vector<std::size_t>{4, 6});
  CHECK(csv_of("#a,b\n#1,2\n").rows == std::vector<CsvRow>{{"#1", "2"}});
  folder.write("t.csv", "# one\n");
  CHECK_THROWS_WITH_AS(
      static_cast<void>(read_csv(folder.path() / "t.csv", widelimit::data::CsvComments::hash_lines)),
      (folder.path() / "t.csv: line 2: expected names of columns, found nothing").string().c_str(),
      DataError);
}

TEST_CASE("csv: numbers in fields, blanks around them aside") {
  using widelimit::data::number_in_field;
  CHECK(number_in_field(" +1.5\t") == 1.5);
  CHECK(number_in_field("-1e-3") == -1e-3);
  for (const char* text : {"", " ", "1 2", "x", "+-1", "1,5"}) CHECK_FALSE(number_in_field(text));
}

TEST_CASE("csv: errors name file and line") {
  check_csv_error("", "line 1: expected names of columns, found nothing");
  check_csv_error("a,,b\n", "line 1: expected names of columns, found an empty one");
  check_csv_error("\n1\n", "line 1: expected names of columns, found an empty one");
  check_csv_error("a,b,a\n", "line 1: found the column name 'a' twice");
  check_csv_error("a;b\n1;2\n", "line 1: expected fields separated by commas, found semicolons or tabs");
  check_csv_error("a,b\n1,2\n3\n", "line 3: expected 2 fields as in the header, found 1");
  check_csv_error("a,b\n\"x\ny\",2\n3,4,5\n", "line 4: expected 2 fields as in the header, found 3");
  check_csv_error("a,b\n1,2\n\n3,4\n", "line 3: expected 2 fields as in the header, found 1");
  check_csv_error("a,b\n1,x\"y\"\n",
                  "line 2: found a quote within a field; fields with quotes are put in quotes, each doubled");
  check_csv_error("a,b\n1,\"x\"y\n", "line 2: expected a comma or the end of the line after a closing quote");
  check_csv_error("a,b\n1,\"x\ny\n", "line 2: expected a closing quote, found the end of the file");
  check_csv_error("a,b\n1,x\ry\n", "line 2: found a carriage return within a line");
  check_csv_error(std::string("a,b\n1,x\n\0,2\n", 12), "line 3: expected text, found a zero byte");
  check_csv_error("a,b\n1,caf\xe9\n",
                  "line 2: expected UTF-8, found byte 0xE9 at offset 9 of the file; convert the file");
  check_csv_error("\xef\xbb\xbf\xff,b\n1,2\n",
                  "line 1: expected UTF-8, found byte 0xFF at offset 3 of the file; convert the file");
  CHECK_THROWS_AS(static_cast<void>(read_csv("/nowhere/t.csv")), DataError);
}
