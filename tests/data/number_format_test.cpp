// How fields of tables write numbers.
#include "widelimit/data/number_format.hpp"

#include <doctest/doctest.h>

using widelimit::data::number_in_field;
using widelimit::data::NumberFormat;

TEST_CASE("number format: points, signs, exponents and blanks") {
  CHECK(number_in_field("1.5") == 1.5);
  CHECK(number_in_field(" -2e3 ") == -2000);
  CHECK(number_in_field("\u22125") == -5);
  CHECK(!number_in_field(""));
  CHECK(!number_in_field("1,5"));
  CHECK(!number_in_field("12 kg"));
  CHECK(!number_in_field("1.5.2"));
}

TEST_CASE("number format: commas, and what is taken out") {
  const NumberFormat commas{.decimal = ',', .stripped = {}};
  CHECK(commas.number_in("1,9") == 1.9);
  CHECK(!commas.number_in("1.9"));
  const NumberFormat units{.decimal = '.', .stripped = {"kg", ","}};
  CHECK(units.number_in("12.3 kg") == 12.3);
  CHECK(units.number_in("1,234") == 1234);
  CHECK(!units.number_in("12.3 lb"));
}

TEST_CASE("number format: what double cannot hold is no number, and is called that") {
  const NumberFormat format;
  for (const char* field : {"1e400", "-1e309", "1e-400"}) {
    CAPTURE(field);
    CHECK(!format.number_in(field));
    CHECK(format.beyond_double(field));
  }
  CHECK(!format.beyond_double("0"));
  CHECK(!format.beyond_double("1e308"));
  CHECK(!format.beyond_double("text"));
}
