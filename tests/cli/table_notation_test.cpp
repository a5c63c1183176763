// Tables as other programs write them: notations of numbers, names of rows, categories that are not known.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

namespace widelimit::testing {
namespace {

void write_table_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

const std::string table_run = "gp --network fcn --kernel nngp --data csv --no-pictures --no-report ";

struct TableResult {
  std::string output;
  std::string errors;
  nlohmann::json results;
};

TableResult run_table(const TemporaryFolder& folder, const std::string& text, const std::string& options) {
  write_table_text(folder / "t.csv", text);
  const auto result = run_program(table_run + "--force --path " + (folder / "t.csv").string() + " --out " +
                                  (folder / "out").string() + " " + options);
  if (result.code != 0) return {result.output, result.errors, {}};
  return {result.output, result.errors, nlohmann::json::parse(file_text(folder / "out/results.json"))};
}

double first_error(const TableResult& result) {
  CAPTURE(result.errors);
  REQUIRE(!result.results.is_null());
  return result.results["results"][0]["mean_squared_error"].get<double>();
}

double a_of(int i) { return std::round(1e4 * std::sin(1.0 + 3.1 * i)) / 10; }
double y_of(int i) { return std::round(1e3 * (std::sin(a_of(i) / 500) + std::cos(2.3 * i))) / 1e3; }
double b_of(int i) { return std::round(1e3 * std::cos(2.3 * i)) / 1e3; }

std::string with_replaced(std::string text, char old, const std::string& replacement) {
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + replacement.size()))
    text.replace(at, 1, replacement);
  return text;
}

/// "1.234,5" for 1234.5
std::string german(double number) {
  std::string text = with_replaced(fmt::format("{:.3f}", std::abs(number)), '.', ",");
  if (text.size() > 7) text.insert(text.size() - 7, ".");
  return (number < 0 ? "\u2212" : "") + text;
}

}  // namespace

TEST_CASE("gp: numbers with decimal commas, groups and units are the same numbers") {
  const TemporaryFolder folder;
  std::string plain = "a,b,y\n", other =
                                     "\xef\xbb\xbf"
                                     "a;b;y\r\n";
  for (int i = 0; i < 60; ++i) {
    plain += fmt::format("{:.3f},{:.3f},{:.3f}\n", a_of(i), b_of(i), y_of(i));
    other += fmt::format("{};{} kg;{}\r\n\r\n", german(a_of(i)), german(b_of(i)), german(y_of(i)));
  }
  const std::string notation = "--target y --decimal , --strip . --strip ' kg'";
  const double expected = first_error(run_table(folder, plain, "--target y"));
  CHECK(first_error(run_table(folder, other, notation)) == expected);
  CHECK(first_error(run_table(folder, other, notation + " --separator ';'")) == expected);

  // Without them nothing is taken for categories or classes.
  const std::string untold = run_table(folder, other, "--target y").errors;
  CHECK(untold.find("t.csv: line ") != std::string::npos);
  CHECK(untold.find("look like numbers; to read them as numbers: --decimal ,") != std::string::npos);
  CHECK(run_table(folder, other, "--target y --decimal , --strip .").errors.find("--strip ' kg'") !=
        std::string::npos);
  CHECK(run_table(folder, "a;y\n1;2,5\n2;3,5\n3;4,5\n4;2,5\n5;3,5\n6;4,5\n", "--target y")
            .errors.find(
                "column 'y': the targets look like numbers; to read them as numbers: --decimal ,; if these "
                "are classes, give --targets classes") != std::string::npos);

  // predict reads new rows in the same way.
  write_table_text(folder / "t.csv", other);
  const auto fitted = run_program("fit --network fcn --data csv --path " + (folder / "t.csv").string() +
                                  " --model " + (folder / "model").string() + " " + notation);
  CAPTURE(fitted.errors);
  REQUIRE(fitted.code == 0);
  const auto predicted = run_program("predict --model " + (folder / "model").string() + " --csv " +
                                     (folder / "t.csv").string() + " --out " + (folder / "new").string());
  CAPTURE(predicted.errors);
  CHECK(predicted.code == 0);
  CHECK(data::read_npy<double>(folder / "new/mean.npy").size() == 60);
}

TEST_CASE("gp: texts that look like numbers, dates, and numbers outside of double are errors with a remedy") {
  const TemporaryFolder folder;
  const auto error_of = [&](const std::vector<std::string>& cells, const std::string& options = "") {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 24; ++i)
      text +=
          fmt::format("\"{}\",{},{}\n", cells[static_cast<std::size_t>(i) % cells.size()], b_of(i), y_of(i));
    return run_table(folder, text, "--target y " + options).errors;
  };
  const auto check = [&](const std::vector<std::string>& cells, const std::string& message) {
    const std::string errors = error_of(cells);
    CAPTURE(errors);
    CHECK(errors.find(message) != std::string::npos);
  };
  check({"1,9", "2,5"},
        "to read them as numbers: --decimal ,; if these are categories, give --categorical 'a'");
  check({"1,234", "2,500"},
        "--decimal , (if the commas are decimal points) or --strip , (if they group thousands); if");
  check({"1,234,567", "2,500"}, "numbers: --strip ','; if");
  check({"1.234,5", "7,25"}, "numbers: --decimal , --strip '.'; if");
  check({"1,234.5", "7.25 "}, "found '1,234.5' among numbers; to read it as a number: --strip ','; if");
  check({"45%", "7%"}, "numbers: --strip '%'; if");
  check({"$4", "-$7"}, "numbers: --strip '$'; if");
  check({"12.3 kg", "7 kg", "NA"}, "numbers: --strip ' kg'; if");
  check({"1\u00a0200", "2\u00a0300"}, "numbers: --strip '\u00a0'; if");
  check({"2024-01-31", "2024-02-29"}, "and the others are dates: make numbers of them");
  check({"1.5", "1e400"}, "the number '1e400' is outside of double");
  check({"1.5", "1e-400"}, "the number '1e-400' is outside of double");
  CHECK(error_of({"\u22121.5", "2"}) == "");
  for (const auto& categories :
       {std::vector<std::string>{"1st", "2nd"}, {"A1", "B2"}, {"18-25", "26-40"}, {"3kg", "big"}})
    CHECK(error_of(categories) == "");
  CHECK(error_of({"45%", "7%"}, "--categorical a") == "");
  CHECK(error_of({"2024-01-31", "2024-02-29"}, "--categorical a") == "");
}

TEST_CASE("gp: how every column was read is printed, and stands in results.json") {
  const TemporaryFolder folder;
  std::string text = ",a,colour,note,same,y\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("r{},{},{},n{},7,{}\n", i, a_of(i), "rgb"[i % 3], i, y_of(i));
  const auto result =
      run_table(folder, text + fmt::format("r30,{},r,n0,7,1.5\n", a_of(0)), "--target y --ignore note");
  CAPTURE(result.errors);
  CHECK(
      result.output.find(
          "columns: numbers a; categories colour (3); constant same; left out note; names of rows row names; "
          "target y\n") != std::string::npos);
  CHECK(result.output.find("the same in all training rows, and left out of the inputs: same\n") !=
        std::string::npos);
  CHECK(result.results["columns"].dump() ==
        R"([{"name":"row names","read_as":"names of rows"},{"name":"a","read_as":"number"},)"
        R"({"categories":3,"name":"colour","read_as":"category"},{"name":"note","read_as":"left out"},)"
        R"({"name":"same","read_as":"constant"},{"name":"y","read_as":"target"}])");
  CHECK(lines_of(file_text(folder / "out/predictions.csv"))[1].starts_with("0,r"));
}

TEST_CASE("gp: what is suspicious about a table is a line each, and nothing where there is nothing") {
  const TemporaryFolder folder;
  std::string text = "row,a,count,copy,flag,kind,colour,y,class\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{},{},{},{:.4f},{},{},{},{},{}\n", 1000 + 7 * i, a_of(i), i % 9, y_of(i), i % 2,
                        i % 2 ? "up" : "down", i % 3 ? "red" : "Red ", y_of(i),
                        i % 2 ? (i % 4 == 1 ? "yes" : "YES") : "no");
  const auto notes = [&](const std::string& options) {
    const auto result = run_table(folder, text, options);
    CAPTURE(result.errors);
    REQUIRE(!result.results.is_null());
    return result.output;
  };
  const auto has = [](const std::string& output, const std::string& line) {
    return output.find("\n" + line) != std::string::npos;
  };
  const std::string identifiers = "whole numbers that differ in every training row, as numbers of rows do: ",
                    copies = "the target itself, in all training rows: ",
                    alike = "that differ by capitals or blanks only: ";
  const std::string numbers = notes("--target y --ignore class --ignore y");
  CHECK(has(numbers, identifiers + "row; if they say nothing else, leave them out (--ignore)\n"));
  CHECK(has(numbers, copies + "copy; unless it is known beforehand, leave it out (--ignore)\n"));
  CHECK(has(numbers,
            "categories of 'colour' " + alike + "'Red ', 'red'; if they are the same, write them so\n"));
  CHECK(has(numbers, "--ignore of the target changes nothing, as it is no input: y\n"));
  const std::string classes = notes("--target class --ignore y --ignore copy");
  CHECK(has(classes, "classes " + alike + "'YES', 'yes'; if they are the same, write them so\n"));
  CHECK_FALSE(has(classes, copies));
  CHECK_FALSE(has(classes, "--ignore of the target"));
  // A number for each class is the class.
  CHECK(has(notes("--target kind --ignore y"), copies + "flag; unless"));
  const std::string clean = notes("--target y --ignore class --ignore copy --ignore row --ignore colour");
  for (const std::string& line : {identifiers, copies, alike}) CHECK(clean.find(line) == std::string::npos);
}

TEST_CASE("gp: kernels of distances take their lengths from inputs in any unit") {
  const TemporaryFolder folder;
  for (const std::string network : {"rbf", "matern", "laplace"}) {
    std::vector<double> errors;
    for (const double unit : {1.0, 1e7, 1e-7, 3e12, 1e-12}) {
      std::string text = "a,b,y\n";
      for (int i = 0; i < 60; ++i)
        text += fmt::format("{},{},{}\n", unit * a_of(i), unit * 700 * b_of(i), y_of(i));
      write_table_text(folder / "t.csv", text);
      const auto result = run_program("gp --network " + network +
                                      " --kernel nngp --preprocess none --precision double --no-report "
                                      "--no-pictures --force --data csv --target y --path " +
                                      (folder / "t.csv").string() + " --out " + (folder / "out").string());
      CAPTURE(network);
      CAPTURE(unit);
      CAPTURE(result.errors);
      REQUIRE(result.code == 0);
      errors.push_back(
          nlohmann::json::parse(file_text(folder / "out/results.json"))["results"][0]["mean_squared_error"]
              .get<double>());
      CHECK(errors.back() == doctest::Approx(errors.front()).epsilon(1e-3));
    }
  }
  std::string text = "a,y\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("{},{}\n", 1e25 * a_of(i), y_of(i));
  CHECK(run_table(folder, text, "--target y --preprocess none --precision double --network rbf")
            .errors.find("and lengths go from 1e-18 to 1e+18: take another unit, or --preprocess channel") !=
        std::string::npos);
}

TEST_CASE("gp, fit and predict: columns that are the same in all training rows change nothing") {
  const TemporaryFolder folder;
  // Constant numbers in two notations, a constant category and a constant truth value.
  const auto write = [&](const std::string& name, int first, int last, bool with, bool changed) {
    std::string text = with ? "a,five,word,flag,y\n" : "a,y\n";
    for (int i = first; i < last; ++i)
      text += with ? fmt::format("{},{},{},{},{}\n", a_of(i),
                                 changed ? "5000"
                                 : i % 2 ? "5"
                                         : "5.0",
                                 changed ? "new" : "old", changed ? "false" : "true", y_of(i))
                   : fmt::format("{},{}\n", a_of(i), y_of(i));
    std::filesystem::create_directories((folder / name).parent_path());
    write_table_text(folder / name, text);
  };
  write("plain/train.csv", 0, 30, false, false);
  write("plain/test.csv", 30, 40, false, false);
  write("same/train.csv", 0, 30, true, false);
  write("same/test.csv", 30, 40, true, false);
  write("moved/train.csv", 0, 30, true, false);
  write("moved/test.csv", 30, 40, true, true);
  const auto predictions = [&](const std::string& data) {
    const auto result = run_program(table_run + "--target y --path " + (folder / data).string() + " --out " +
                                    (folder / (data + "-out")).string());
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    const bool moved = result.output.find(
                           "test rows have other values in columns that were the same in all training "
                           "rows (10 in 'five', 10 in 'word', 10 in 'flag')") != std::string::npos;
    CHECK(moved == (data == "moved"));
    return file_text(folder / (data + "-out/predictions.csv"));
  };
  const std::string plain = predictions("plain");
  CHECK(predictions("same") == plain);
  CHECK(predictions("moved") == plain);
  const auto fit = run_program("fit --network fcn --data csv --target y --path " +
                               (folder / "same").string() + " --model " + (folder / "model").string());
  CAPTURE(fit.errors);
  REQUIRE(fit.code == 0);
  const auto predict =
      run_program("predict --model " + (folder / "model").string() + " --csv " +
                  (folder / "moved/test.csv").string() + " --out " + (folder / "new").string());
  CAPTURE(predict.errors);
  CHECK(predict.code == 0);
  CHECK(
      predict.output.find("(10 in 'five', 10 in 'word', 10 in 'flag'): predictions do not depend on them") !=
      std::string::npos);
  write_table_text(folder / "t.csv", "a,y\n1,2.5\n1,3.5\n1,4.5\n1,1.5\n1,2\n1,3\n1,4\n1,5.5\n1,6\n1,7\n");
  const auto nothing = run_program(table_run + "--target y --path " + (folder / "t.csv").string());
  CHECK(nothing.code != 0);
  CHECK(nothing.errors.find(
            "training rows have the same inputs, in a, so that there is nothing to learn from") !=
        std::string::npos);
}

TEST_CASE("gp and fit: rows that repeat are told, and groups are left out together and are no input") {
  const TemporaryFolder folder;
  std::string text = "a,who,y\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},p{},{}\n", a_of(i % 30), i % 30 / 2, y_of(i));
  const auto whole = run_table(folder, text, "--target y --ignore who --test 1 --validation 0");
  CHECK(whole.output.find("rows repeat others: equal rows are left out together\n") != std::string::npos);
  const auto grouped = run_table(folder, text, "--target y --groups who --test 1 --validation 0");
  CAPTURE(grouped.errors);
  CHECK(grouped.output.find("groups who") != std::string::npos);
  CHECK(grouped.output.find(" groups of rows are left out together\n") != std::string::npos);
  REQUIRE(!grouped.results.is_null());
  CHECK(grouped.results["results"][0]["candidates"] != whole.results["results"][0]["candidates"]);
  const std::string data = " --data csv --target y --path " + (folder / "t.csv").string() + " ";
  CHECK(run_program("gp --network fcn --groups none" + data)
            .errors.find("--groups: there is no column 'none'") != std::string::npos);
  CHECK(run_program("gp --network fcn --data sample --groups a")
            .errors.find("--groups: names a column of --data csv") != std::string::npos);
  CHECK(run_program("fit --network fcn --groups who --solver cg --regulariser .1 --model " +
                    (folder / "model").string() + data)
            .errors.find("--groups: cg leaves no rows out") != std::string::npos);
}

TEST_CASE("gp, fit and predict: truth values are one number, in capitals or not") {
  const TemporaryFolder folder;
  std::string numbers = "a,flag,y\n", words = numbers;
  for (int i = 0; i < 30; ++i) {
    numbers += fmt::format("{},{},{}\n", a_of(i), i % 3 == 0 ? 1 : 0, y_of(i));
    words += fmt::format("{},{},{}\n", a_of(i), i % 3 == 0 ? (i % 2 ? "True" : " TRUE") : "false", y_of(i));
  }
  const auto first = run_table(folder, numbers, "--target y"),
             second = run_table(folder, words, "--target y");
  CAPTURE(second.errors);
  CHECK(second.output.find("columns: numbers a; truth values flag; target y\n") != std::string::npos);
  CHECK(second.results["results"][0]["mean_squared_error"] ==
        first.results["results"][0]["mean_squared_error"]);
  CHECK(run_table(folder, words, "--target y --categorical flag").output.find("categories flag (") !=
        std::string::npos);

  const std::string model = (folder / "model").string(), file = (folder / "new.csv").string();
  std::filesystem::create_directory(folder / "tables");
  write_table_text(folder / "tables/train.csv", words);
  REQUIRE(run_program("fit --network fcn --data csv --target y --path " + (folder / "tables").string() +
                      " --model " + model)
              .code == 0);
  const auto mean_of = [&](const std::string& rows) {
    write_table_text(file, "a,flag\n" + rows);
    const auto result = run_program("predict --force --model " + model + " --csv " + file + " --out " +
                                    (folder / "predicted").string());
    return result.code == 0 ? file_text(folder / "predicted/mean.npy") : result.errors;
  };
  CHECK(mean_of("1.5,True\n2,FALSE\n") == mean_of("1.5,true\n2,false\n"));
  CHECK(mean_of("1.5,True\n") != mean_of("1.5,False\n"));
  CHECK(mean_of("1.5,yes\n")
            .find("column 'flag': expected true or false as in the training table, found 'yes'") !=
        std::string::npos);
}

TEST_CASE("gp: test rows that are training rows are noticed") {
  const TemporaryFolder folder;
  std::string train = "a,colour,y\n", test = train;
  for (int i = 0; i < 30; ++i) {
    train += fmt::format("{},{},{}\n", a_of(i), "rgb"[i % 3], y_of(i));
    test += fmt::format("{},{},{}\n", a_of(i < 4 ? i : i + 30), i == 3 ? 'x' : "rgb"[i % 3], y_of(i));
  }
  write_table_text(folder / "train.csv", train);
  write_table_text(folder / "test.csv", test);
  const std::string run = table_run + "--target y --path " + folder.string();
  const auto refused = run_program(run);
  CHECK(refused.code == 1);
  CHECK(refused.errors.find("test.csv: line 5: column 'colour': the category 'x' is not among") !=
        std::string::npos);
  const auto result = run_program(run + " --unknown ignore --out " + (folder / "out").string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  CHECK(result.output.find("3 of 30 test rows have the same inputs as a training row") != std::string::npos);
  CHECK(result.output.find("unknown categories (--unknown ignore): test rows 1 in 'colour'\n") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(file_text(folder / "out/results.json"))["unknown"].dump() ==
        R"({"cells":{"test":{"colour":1}},"choice":"ignore"})");
}

TEST_CASE(
    "predict --unknown: a category that the training did not have is none of them, or names all its rows") {
  const TemporaryFolder folder;
  std::string text = "a,colour,kind\n";
  xt::xarray<double> x = xt::zeros<double>({2, 3});
  for (int i = 0; i < 30; ++i)
    text += fmt::format("{},{},{}\n", a_of(i), i % 3 == 0 ? "red" : "grün", i % 2 ? "u" : "v");
  std::filesystem::create_directory(folder / "tables");
  write_table_text(folder / "tables/train.csv", text);
  const std::string model = (folder / "model").string(), file = (folder / "new.csv").string();
  const auto fitted = run_program("fit --network fcn --precision double --data csv --target kind --path " +
                                  (folder / "tables").string() + " --model " + model);
  CAPTURE(fitted.errors);
  REQUIRE(fitted.code == 0);
  write_table_text(file, "a,colour\n1.5,blå\n2.5,red\n3.5,black\n");
  const std::string run =
      "predict --model " + model + " --csv " + file + " --out " + (folder / "out").string();
  const auto refused = run_program(run);
  CHECK(refused.code == 1);
  CHECK(refused.errors ==
        "widelimit: " + file +
            ": line 2: column 'colour': the category 'blå' is not among those of the training table, "
            "nor are: line 4 'black' in 'colour'; --unknown ignore reads such cells as none of the "
            "categories\n");
  const auto result = run_program(run + " --unknown ignore");
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  CHECK(result.output.find("column 'colour': 2 of 3 cells are none of the categories of the training") !=
        std::string::npos);
  // Two categories, none of which it is: zeros.
  x(0, 0) = 1.5;
  x(1, 0) = 3.5;
  data::write_npy(folder / "x.npy", x);
  REQUIRE(run_program("predict --model " + model + " --x " + (folder / "x.npy").string() + " --out " +
                      (folder / "of_array").string())
              .code == 0);
  const auto mean = data::read_npy<double>(folder / "out/mean.npy"),
             of_array = data::read_npy<double>(folder / "of_array/mean.npy");
  CHECK(mean(0, 0) == doctest::Approx(of_array(0, 0)).epsilon(1e-12));
  CHECK(mean(2, 0) == doctest::Approx(of_array(1, 0)).epsilon(1e-12));
}

}  // namespace widelimit::testing
