#include "widelimit/json/read_json.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "../data/temporary_folder.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/regular_file.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

/// The message behind "text: ".
std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_json(text, "text"));
  } catch (const DataError& error) {
    const std::string message = error.what();
    REQUIRE(message.starts_with("text: "));
    return message.substr(6);
  }
  return "accepted";
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST_CASE("every sort of value is read as the JSON library reads it") {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "2.5e-3", "\"a\\u00e9\\n\"", "[]", "{}",
        "[1, [2, {}], \"\"]", R"({"": 1, "a": {"b": [{"c": null}, false]}, "d": {"b": 1}})",
        "\xEF\xBB\xBF[1]"}) {
    CAPTURE(text);
    CHECK(parse_json(text, "text") == json::parse(text));
  }
}

TEST_CASE("what is no JSON is refused with its line and column") {
  CHECK(refusal("{\"a\": 1,\n  \"b\": tau}").starts_with("not JSON at line 2, column "));
  CHECK(refusal("").starts_with("not JSON at line 1, column "));
  CHECK(refusal("[1] 2").starts_with("not JSON at line 1, column 5: "));
  CHECK(refusal("[1,]").starts_with("not JSON at line 1, column 4: "));
  CHECK(refusal("[NaN]").starts_with("not JSON at line 1"));
  CHECK(refusal("\"\xff\"").starts_with("not JSON at line 1"));
  CHECK(refusal("[\"" + std::string(100'000, 'x')).size() < 300);
}

TEST_CASE("a byte of value 0 is refused wherever it stands, with its place") {
  const std::string document = R"({"a": [1, "b"]})"
                               "\n";
  for (std::size_t at = 0; at <= document.size(); ++at) {
    std::string text = document;
    text.insert(at, 1, '\0');
    CAPTURE(at);
    CHECK(refusal(text).starts_with(fmt::format("not JSON at line {}, column {}: a byte of value 0",
                                                at == document.size() ? 2 : 1,
                                                at == document.size() ? 1 : at + 1)));
    CHECK(refusal(text + "garbage").starts_with("not JSON at line "));
  }
  CHECK(refusal(std::string(1, '\0')).starts_with("not JSON at line 1, column 1: a byte of value 0"));
  // Its escape within a text is JSON.
  CHECK(refusal("\"a\\u0000b\"") == "accepted");
}

TEST_CASE("where arguments come from a file, JSON is read from regular files only") {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const pid_t child = fork();
  if (child == 0) {
    files::refuse_pipes();
    int right = 0;
    for (const auto& path : {pipe, std::filesystem::path("/dev/zero"), std::filesystem::path("/dev/null")})
      try {
        static_cast<void>(read_json(path));
      } catch (const DataError& error) {
        right += std::string(error.what()).find("expected a regular file") != std::string::npos ? 1 : 0;
      }
    _exit(right == 3 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a key that an object holds twice is refused, wherever it stands") {
  CHECK(refusal(R"({"a": 1, "a": 1})") == "document: expected every key once, found \"a\" again");
  CHECK(refusal(R"({"p": [0, {"nu": 1, "x": 2, "nu": 3}]})") ==
        "p[1]: expected every key once, found \"nu\" again");
  CHECK(refusal(R"([{"a": 1}, {"a": 1}])") == "accepted");
}

TEST_CASE("numbers that a double cannot hold are refused by their field") {
  CHECK(refusal(R"({"prior": {"nu": [1, 1e999]}})") ==
        "prior.nu[1]: expected a number within the range of double, got 1e999");
  CHECK(refusal("-1e400") == "document: expected a number within the range of double, got -1e400");
  CHECK(refusal("1e-999") == "accepted");
}

TEST_CASE("deep nesting is refused before anybody descends into it") {
  CHECK(refusal(nested(deepest_json)) == "accepted");
  CHECK(refusal(nested(deepest_json + 1)).find("expected at most 256 lists and objects within one another") !=
        std::string::npos);
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"layers\":";
  CHECK(refusal(objects).size() < 400);
}

TEST_CASE("what would take more memory than any file of ours is refused while it is read, and named") {
  std::string lists = "{\"layers\":[[]";
  for (int i = 0; i < 1'000'000; ++i) lists += ",[]";
  CHECK(refusal(lists + "]}") ==
        "layers[999998]: expected at most 1000000 lists and objects in all, found more");
  CHECK(refusal("{\"name\":\"" + std::string(1 << 20, 'a') + "\"}") == "accepted");
  CHECK(refusal("{\"name\":\"" + std::string((1 << 20) + 1, 'a') + "\"}")
            .starts_with("name: expected texts of at most 1048576 bytes, found 1048577: aaa"));
  CHECK(refusal("{\"" + std::string(2 << 20, 'k') + "\":1}")
            .starts_with("document: expected texts of at most 1048576 bytes, found 2097152: kkk"));
}

TEST_CASE("files that cannot be read are named") {
  const TemporaryFolder folder;
  const auto none = folder.path() / "none.json";
  CHECK_THROWS_WITH_AS(static_cast<void>(read_json(none)),
                       (none.string() + ": expected a JSON file, found none").c_str(), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(read_json(folder.path())),
                       (folder.path().string() + ": expected a JSON file, found a folder").c_str(),
                       DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(read_json("/dev/zero")),
                       "/dev/zero: expected a JSON file of at most 256 MiB, found more", DataError);
  const auto sparse = folder.write("sparse.json", "{}");
  std::filesystem::resize_file(sparse, std::uintmax_t{1} << 40);
  CHECK_THROWS_WITH_AS(static_cast<void>(read_json(sparse)),
                       (sparse.string() + ": expected a JSON file of at most 256 MiB, found more").c_str(),
                       DataError);
  const auto empty = folder.write("empty.json", "");
  CHECK_THROWS_WITH_AS(static_cast<void>(read_json(empty)),
                       doctest::Contains((empty.string() + ": not JSON at line 1").c_str()), DataError);
}

TEST_CASE("errors get a name in front, once; foreign ones become DataErrors") {
  const auto throwing = [](const auto& error) { return [error] { throw error; }; };
  CHECK_THROWS_WITH_AS(naming_errors("f", throwing(ArgumentError("x: y"))), "f: x: y", ArgumentError);
  CHECK_THROWS_WITH_AS(naming_errors("f", throwing(NetworkError("layers[0]: y"))), "f: layers[0]: y",
                       NetworkError);
  CHECK_THROWS_WITH_AS(naming_errors("f", throwing(DataError("f: y"))), "f: y", DataError);
  CHECK_THROWS_WITH_AS(naming_errors("f", throwing(Cancelled("stopped"))), "stopped", Cancelled);
  CHECK_THROWS_AS(naming_errors("f", [] { static_cast<void>(json(2).get<std::string>()); }), DataError);
  CHECK(naming_errors("f", [] { return 2; }) == 2);
}

}  // namespace
}  // namespace widelimit::testing
