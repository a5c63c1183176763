#include "widelimit/data/csv.hpp"

#include <doctest/doctest.h>

#include "data/encoded.hpp"
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
  const CsvTable table =
      read_csv(folder.path() / "t.csv", {.comments = widelimit::data::CsvComments::hash_lines});
  CHECK(table.columns == CsvRow{"a", "b"});
  CHECK(table.rows == std::vector<CsvRow>{{"1", "2"}, {"3", "4"}});
  CHECK(table.lines == std::vector<std::size_t>{4, 6});
  CHECK(csv_of("#a,b\n#1,2\n").rows == std::vector<CsvRow>{{"#1", "2"}});
  folder.write("t.csv", "# one\n");
  CHECK_THROWS_WITH_AS(
      static_cast<void>(
          read_csv(folder.path() / "t.csv", {.comments = widelimit::data::CsvComments::hash_lines})),
      (folder.path() / "t.csv: line 2: expected names of columns, found nothing").string().c_str(),
      DataError);
}

TEST_CASE("csv: semicolons, tabs and the blanks of R separate fields where the header has them") {
  CHECK(csv_of("a;b\n1,5;2\n").rows == std::vector<CsvRow>{{"1,5", "2"}});
  CHECK(csv_of("a;b\n1,5;2\n").separator == ';');
  CHECK(csv_of("a\tb b\n1\t\n").rows == std::vector<CsvRow>{{"1", ""}});
  CHECK(csv_of("\"a;b\",c\n1,2\n").columns == CsvRow{"a;b", "c"});
  const CsvTable of_r = csv_of("\"a\" \"b c\"\n\"1\" 1.5 \"x y\"\n\"2\" NA \"z\"\n");
  CHECK(of_r.columns == CsvRow{"row names", "a", "b c"});
  CHECK(of_r.rows == std::vector<CsvRow>{{"1", "1.5", "x y"}, {"2", "NA", "z"}});
  // Names of one column may hold blanks.
  CHECK(csv_of("a b\n1\n").columns == CsvRow{"a b"});
  const TemporaryFolder folder;
  folder.write("t.csv", "a;x,b|c\n1|2\n");
  CHECK(read_csv(folder.path() / "t.csv", {.separator = '|'}).columns == CsvRow{"a;x,b", "c"});
}

TEST_CASE("csv: a first column without a name has the names of rows") {
  const CsvTable pandas = csv_of(",a\n0,x\n0,y\n");
  CHECK(pandas.has_row_names);
  CHECK(pandas.columns == CsvRow{"row names", "a"});
  const CsvTable of_r = csv_of("a,b\nr1,1,2\nr2,3,\n");
  CHECK(of_r.has_row_names);
  CHECK(of_r.rows == std::vector<CsvRow>{{"r1", "1", "2"}, {"r2", "3", ""}});
  CHECK_FALSE(csv_of("a,b\n1,2\n").has_row_names);
}

TEST_CASE("csv: lines without anything are no rows, but in a single column they are empty fields") {
  const CsvTable table = csv_of("\r\n\na,b\n\n1,2\n  \n3,4\r\n\r\n\n");
  CHECK(table.rows == std::vector<CsvRow>{{"1", "2"}, {"3", "4"}});
  CHECK(table.lines == std::vector<std::size_t>{5, 7});
  CHECK(csv_of("a\n1\n\n3").rows == std::vector<CsvRow>{{"1"}, {""}, {"3"}});
  CHECK(csv_of("a\tb\n\t\n").rows == std::vector<CsvRow>{{"", ""}});
}

TEST_CASE("csv: UTF-16 with its mark, of both orders") {
  const std::u16string text = u"\ufeffa;\u00e9\n1;\U0001f600\n";
  for (const bool little : {true, false}) {
    const CsvTable table = csv_of(utf16_bytes(text, little));
    CHECK(table.columns == CsvRow{"a", "\u00e9"});
    CHECK(table.rows == std::vector<CsvRow>{{"1", "\U0001f600"}});
  }
  check_csv_error(std::string("\xff\xfe"
                              "a",
                              3),
                  "expected UTF-16 as its byte order mark says, found half a unit at offset 2 of the file");
  check_csv_error(
      std::string("\xff\xfe\x3d\xd8"
                  "a\0",
                  6),
      "expected UTF-16 as its byte order mark says, found the first half of a pair alone at offset 2 of the "
      "file");
  check_csv_error(
      std::string("\xfe\xff\xde\x00", 4),
      "expected UTF-16 as its byte order mark says, found the second half of a pair at offset 2 of the file");
}

TEST_CASE("csv: decimal commas, units, groups of thousands and the minus of typesetters") {
  using widelimit::data::NumberFormat;
  const NumberFormat german{.decimal = ',', .stripped = {".", " kg"}};
  CHECK(german.number_in(" 1.234,5 kg") == 1234.5);
  CHECK(german.number_in("-,5") == -0.5);
  CHECK_FALSE(german.number_in("kg"));
  CHECK_FALSE(german.number_in(" kg"));
  CHECK_FALSE(NumberFormat{.decimal = ','}.number_in("1.5"));
  CHECK(NumberFormat{.stripped = {"%"}}.number_in("45 %") == 45);
  CHECK(widelimit::data::number_in_field("\u22121.5") == -1.5);
  CHECK(NumberFormat{}.beyond_double("1e400"));
  CHECK(NumberFormat{}.beyond_double("-1e-400"));
  CHECK_FALSE(NumberFormat{}.number_in("1e400"));
  CHECK_FALSE(NumberFormat{}.beyond_double("1e300"));
  CHECK_FALSE(NumberFormat{}.beyond_double("x"));
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
  check_csv_error("\n \n", "line 3: expected names of columns, found nothing");
  check_csv_error(",a,\n", "line 1: expected names of columns, found an empty one");
  check_csv_error("row names,a\n1,2,3\n", "line 1: found the column name 'row names' twice");
  check_csv_error("a,b,a\n", "line 1: found the column name 'a' twice");
  check_csv_error(
      "a;b,c\n1;2,3\n",
      "line 1: found both commas and semicolons in the header: say which separates fields (--separator), or "
      "put names that hold the other in quotes");
  check_csv_error("a,b\n1,2\n3\n", "line 3: expected 2 fields as in the header, found 1");
  check_csv_error("a,b\n\"x\ny\",2\n3,4,5\n", "line 4: expected 2 fields as in the header, found 3");
  check_csv_error("a,b\n1,2,\n", "line 2: expected 2 fields as in the header, found 3");
  check_csv_error("a,b\nx,1,2\n3,4\n", "line 3: expected 3 fields as in the first row, found 2");
  check_csv_error(
      "a,b\n1,9,2\n1,3,4\n",
      "line 3: expected 2 fields as in the header, found 3; the first fields of the rows are no names of "
      "rows, as '1' stands twice; do numbers have decimal commas?");
  check_csv_error("a,b\n1,x\"y\"\n",
                  "line 2: found a quote within a field; fields with quotes are put in quotes, each doubled");
  check_csv_error("a,b\n1,\"x\"y\n", "line 2: expected a comma or the end of the line after a closing quote");
  check_csv_error("a,b\n1,\"x\ny\n", "line 2: expected a closing quote, found the end of the file");
  check_csv_error("a,b\n1,x\ry\n", "line 2: found a carriage return within a line");
  check_csv_error(
      std::string("a,b\n1,x\n\0,2\n", 12),
      "line 3: expected text, found a zero byte; is it binary, or UTF-16 without a byte order mark? "
      "Save it as UTF-8");
  check_csv_error("a,b\n1,caf\xe9\n",
                  "line 2: expected UTF-8, found byte 0xE9 at offset 9 of the file; convert the file");
  check_csv_error("\xef\xbb\xbf\xff,b\n1,2\n",
                  "line 1: expected UTF-8, found byte 0xFF at offset 3 of the file; convert the file");
  CHECK_THROWS_AS(static_cast<void>(read_csv("/nowhere/t.csv")), DataError);
}

TEST_CASE("csv: a first line sep=; says what separates fields, as Excel reads it") {
  for (const char* text : {"sep=;\na;b,c\n1;2\n", "\xef\xbb\xbfsep=;\r\na;b,c\r\n1;2\r\n",
                           "\"sep=;\"\n\na;b,c\n1;2\n", "SEP=;\na;b,c\n1;2"}) {
    CAPTURE(text);
    const CsvTable table = csv_of(text);
    CHECK(table.separator == ';');
    CHECK(table.columns == CsvRow{"a", "b,c"});
    CHECK(table.rows == std::vector<CsvRow>{{"1", "2"}});
  }
  CHECK(csv_of("sep=\t\na\tb\n1\t2\n").lines == std::vector<std::size_t>{3});
  CHECK(csv_of("sep=|\na|b\n1|2\n").columns == CsvRow{"a", "b"});
  CHECK(csv_of("sep= \na b\n1 2\n").rows == std::vector<CsvRow>{{"1", "2"}});
  CHECK(csv_of("separator,b\n1,2\n").columns == CsvRow{"separator", "b"});
  check_csv_error(
      "sep=\na,b\n",
      "line 1: expected one character that separates fields after 'sep=', as Excel reads it, found ''");
  check_csv_error("sep=;\n", "line 2: expected names of columns, found nothing");
  const TemporaryFolder folder;
  const auto path = folder.write("t.csv", "sep=;\na;b\n1;2\n");
  CHECK(read_csv(path, {.separator = ';'}).columns == CsvRow{"a", "b"});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(read_csv(path, {.separator = ','})),
      (path.string() +
       ": line 1: says that each semicolon separates fields, --separator that each comma does")
          .c_str(),
      DataError);
}

TEST_CASE("csv: a packed line of nothing but separators is refused before its fields fill the memory") {
  check_csv_error(packed(std::string(20'000'000, ';')),
                  "line 1: expected at most 10000000 fields, found more");
}

TEST_CASE("csv: a table packed by gzip is the table") {
  const std::string text =
      "\xef\xbb\xbf"
      "a;b\n1,5;2\n";
  CHECK(csv_of(packed(text)).rows == csv_of(text).rows);
  CHECK(csv_of(packed(utf16_bytes(u"\ufeffa;b\n1,5;2\n", true))).rows == csv_of(text).rows);
  check_csv_error(packed(text).substr(0, 15),
                  "offset 15: expected more gzip data, found the end of the file (the file is truncated)");
  check_csv_error(
      packed("@relation x\n@data\n1\n"),
      "expected text, found an ARFF file, packed by gzip; save it as CSV: names of columns in the first "
      "line, no lines with @");
}
