// gp --data csv, and arrays that are split.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

void write_text(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

/// A table whose kind follows from its numbers: "big, round" where 10 a + b is large.
std::string flowers(int rows, int first = 0) {
  std::string text = "name,a,b,colour,kind\n";
  for (int i = first; i < first + rows; ++i) {
    const double a = std::sin(1.0 + 3.1 * i), b = std::cos(2.3 * i);
    text += "row " + std::to_string(i) + "," + std::to_string(a) + "," + std::to_string(100 * b) + "," +
            (i % 3 == 0 ? "red" : "blue") + "," + (10 * a + b > 0 ? "\"big, round\"" : "small") + "\n";
  }
  return text;
}

const std::string csv_run = "gp --network fcn --data csv --kernel nngp --no-pictures --no-report ";

std::string csv_error(const TemporaryFolder& folder, const std::string& text, const std::string& options) {
  write_text(folder / "bad.csv", text);
  const auto result = run_program(csv_run + "--path " + (folder / "bad.csv").string() + " " + options);
  CHECK(result.code == 1);
  return result.errors;
}

}  // namespace

TEST_CASE("gp: what a column says is not lost beside its offset, in float") {
  const TemporaryFolder folder;
  std::string plain = "a,b,y\n", shifted = plain, small = plain;
  for (int i = 0; i < 60; ++i) {
    const double a = std::sin(1.0 + 3.1 * i), b = std::cos(2.3 * i), y = std::sin(2 * a) + b;
    plain += fmt::format("{},{},{}\n", a, b, y);
    shifted += fmt::format("{:.6f},{},{}\n", 1.7e9 + a, b, y);
    small += fmt::format("{},{},{}\n", 1e-60 * a, b, y);
  }
  const auto error_of = [&](const std::string& text, const std::string& options) {
    write_text(folder / "table.csv", text);
    const auto result =
        run_program(csv_run + "--target y --json " + options + " --path " + (folder / "table.csv").string());
    if (result.code != 0) return std::make_pair(std::nan(""), result.errors);
    return std::make_pair(
        nlohmann::json::parse(result.output)[0]["results"][0]["mean_squared_error"].get<double>(),
        std::string());
  };
  const double expected = error_of(plain, "--precision double").first;
  CHECK(error_of(plain, "").first == doctest::Approx(expected).epsilon(1e-3));
  CHECK(error_of(shifted, "").first == doctest::Approx(expected).epsilon(1e-3));
  CHECK(error_of(small, "").first == doctest::Approx(expected).epsilon(1e-3));
  CHECK(error_of(shifted, "--preprocess none")
            .second.find("training data: the numbers of channel 0 (from 0) differ, and are rounded to one in "
                         "float: ") != std::string::npos);
  CHECK(error_of(small, "--preprocess none")
            .second.find("all numbers of channel 0 (from 0) are rounded to 0") != std::string::npos);
}

TEST_CASE("gp: columns of numbers are standardised, categories stay 0 and 1") {
  const TemporaryFolder folder;
  std::string text = "a,colour,y\n";
  for (int i = 0; i < 40; ++i)
    text +=
        fmt::format("{},{},{}\n", i % 4 == 3 ? "" : std::to_string(100 + 7 * i), "rgbw"[i % 4], std::sin(i));
  write_text(folder / "table.csv", text);
  const auto fitted =
      run_program("fit --network fcn --data csv --target y --missing column --path " +
                  (folder / "table.csv").string() + " --model " + (folder / "model").string());
  CAPTURE(fitted.errors);
  REQUIRE(fitted.code == 0);
  const auto factors = data::read_npy_as<double>(folder / "model/preprocessing_factors.npy");
  const auto offsets = data::read_npy_as<double>(folder / "model/preprocessing_offsets.npy");
  REQUIRE(factors.size() == 6);  // a, whether it is missing, four colours
  CHECK(factors.flat(0) < 0.1);
  CHECK(offsets.flat(0) > 100);
  for (std::size_t c = 1; c < 6; ++c) {
    CHECK(factors.flat(c) == 1);
    CHECK(offsets.flat(c) == 0);
  }
}

TEST_CASE("gp: a table is split, its numbers standardised, its texts one-hot; classes keep their names") {
  const TemporaryFolder folder;
  write_text(folder / "flowers.csv", flowers(120));
  const auto result = run_program(csv_run + "--target kind --id name --criterion accuracy --path " +
                                  (folder / "flowers.csv").string() + " --out " + (folder / "out").string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  CHECK(
      lines_of(result.output)[0].ends_with("flowers.csv: 72 training, 24 validation, 24 test rows of 4 "
                                           "numbers, target 'kind' (2 classes), preprocessing "
                                           "channel, float"));
  const auto results = nlohmann::json::parse(file_text(folder / "out/results.json"));
  CHECK(results["classes"] == nlohmann::json{"big, round", "small"});
  CHECK(results["results"][0]["accuracy"].get<double>() > 0.8);
  const auto rows = lines_of(file_text(folder / "out/predictions.csv"));
  REQUIRE(rows.size() == 25);
  CHECK(rows[0].find("index,id,class,nngp_class,nngp_probability,nngp_standard_deviation,nngp_observation_"
                     "deviation,\"nngp_probability_big, "
                     "round\",nngp_probability_small,") == 0);
  // Every test row leads back to a row of the table, and to its class.
  std::set<std::string> seen;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::size_t begin = rows[i].find(",row ") + 1;
    const std::string name = rows[i].substr(begin, rows[i].find(',', begin) - begin);
    CHECK(seen.insert(name).second);
    const int number = std::stoi(name.substr(4));
    const bool big = 10 * std::sin(1.0 + 3.1 * number) + std::cos(2.3 * number) > 0;
    CHECK(rows[i].find(name + (big ? ",\"big, round\"," : ",small,")) != std::string::npos);
  }
}

TEST_CASE("gp: a folder of tables equals arrays with the same numbers") {
  const TemporaryFolder tables, arrays;
  const auto write = [&](const std::string& name, std::size_t count, double phase) {
    xt::xarray<double> x = xt::xarray<double>::from_shape({count, 3}),
                       y = xt::xarray<double>::from_shape({count});
    std::string text = "x,y,colour,t\n";
    for (std::size_t i = 0; i < count; ++i) {
      x(i, 0) = std::round(1000 * std::sin(phase += 1.3)) / 1000;
      x(i, 1) = i % 3 == 0 ? 0 : 1;  // blue, then red: in the order of the alphabet.
      x(i, 2) = 1 - x(i, 1);
      y(i) = x(i, 0) * x(i, 0) + x(i, 1) / 2;
      text +=
          std::to_string(x(i, 0)) + ",7," + (i % 3 == 0 ? "red" : "blue") + "," + std::to_string(y(i)) + "\n";
      y(i) = std::stod(std::to_string(y(i)));
    }
    write_text(tables / (name + ".csv"), text);
    data::write_npy(arrays / ("x_" + name + ".npy"), x);
    data::write_npy(arrays / ("y_" + name + ".npy"), y);
  };
  write("train", 30, 0.1);
  write("validation", 12, 0.2);
  write("test", 9, 0.7);
  const std::string run = "gp --network fcn --precision double --no-pictures --no-report ";
  REQUIRE(run_program(run + "--data csv --preprocess none --target t --ignore y --path " + tables.string() +
                      " --out " + (tables / "out").string())
              .code == 0);
  REQUIRE(run_program(run + "--data npy --path " + arrays.string() + " --out " + (arrays / "out").string())
              .code == 0);
  for (const char* file : {"mean_nngp.npy", "mean_ntk.npy", "variance_ntk.npy"})
    CHECK(data::read_npy<double>(tables / "out" / file) == data::read_npy<double>(arrays / "out" / file));
  CHECK(lines_of(file_text(tables / "out/predictions.csv"))[1].starts_with("0,test.csv:2,"));
}

TEST_CASE("gp: errors of tables name file, line and column") {
  const TemporaryFolder folder;
  const std::string good = flowers(40);
  const auto check = [&](const std::string& text, const std::string& options, const std::string& message) {
    const std::string errors = csv_error(folder, text, options);
    CAPTURE(errors);
    CHECK(errors.find(message) != std::string::npos);
  };
  check(good, "--target size", "--target: there is no column 'size'; there are name, a, b, colour, kind");
  check(good, "--target kind --id key", "--id: there is no column 'key'");
  check(good, "--target kind", "column 'name': 32 different texts in 32 rows are no categories");
  check(good, "--target kind --ignore name --categories error",
        "' is no number, and --categories error does not");
  check("a,b\n1,x\n2,y\n3,x\n4,y\nNA,x\n5,y\n", "--target b --train 4 --validation 1 --test 1",
        "bad.csv: line 6: column 'a': ");
  check("a,b\n1,x\n2,y\n,x\n4,y\n6,x\n5,y\n", "--target b --train 4 --validation 1 --test 1",
        "bad.csv: line 4: column 'a': expected a value, found none");
  check("a,b\n1,1\n2,0\n3,1\n4,0\n5,1\n", "--target b", "column 'b': all values are whole numbers");
  check("a,b\n1,x\n2,x\n3,x\n4,x\n5,x\n", "--target b", "expected two or more classes, found one");
  check("a,b\n", "--target b", "bad.csv: expected rows to train with and to test, found none");
  check("a,b\n1,u\n2,v\n3,w\n4,x\n5,y\n6,z\n", "--target b --train 4 --test 2",
        "is not among those of the training rows; take more of them, another --seed, or leave the row out");
  check("a,b\n1,x\n2,y\n", "--target b",
        "2 rows cannot be split into 2 training, 0 validation and 0 test rows");
  check("a,b\n1,x\n2,y\n3,x\n", "--target b --train 3 --test 1",
        "3 rows cannot be split into 3 training, 0 validation");
  CHECK(csv_error(folder, "a,b\n1,1\n2,0\n3,1\n4,0\n5,1\n", "--target b")
            .find("give --targets classes or --targets numbers") != std::string::npos);
  CHECK(csv_error(folder, "a,b\n1,x\n2,y\n3,x\n4,y\n5,x\n", "--target b --targets numbers")
            .find("expected a finite number, found '") != std::string::npos);

  const std::string run = csv_run + "--target b --regulariser 0.1 --path " + folder.string();
  write_text(folder / "train.csv", "a,b\n1,1.5\n2,2.5\n3,0.5\n");
  write_text(folder / "test.csv", "a\n2\n1e300\n");
  CHECK(run_program(run).errors.find("test.csv:3: 1.22474e+300 is beyond the range of float") !=
        std::string::npos);
  write_text(folder / "train.csv", "a,b\nred,1.5\nblue,2.5\nred,0.5\n");
  write_text(folder / "test.csv", "a\nred\ngreen\n");
  const auto unknown = run_program(run);
  CHECK(unknown.code == 1);
  CHECK(unknown.errors.find(
            "test.csv: line 3: column 'a': the category 'green' is not among those of the training table") !=
        std::string::npos);
  write_text(folder / "test.csv", "a,c\nred,1\n");
  CHECK(run_program(run).errors.find("found a column 'c' that the training table does not have") !=
        std::string::npos);
  write_text(folder / "test.csv", "c\n1\n");
  CHECK(run_program(run).errors.find("expected a column 'a' as in the training table; there are c") !=
        std::string::npos);
  write_text(folder / "test.csv", "a\nred\n");
  write_text(folder / "validation.csv", "a,b\n");
  CHECK(run_program(run).errors.find("validation.csv: there are no rows") != std::string::npos);
  std::filesystem::remove(folder / "validation.csv");
  // Targets of test rows may be unknown.
  write_text(folder / "test.csv", "a\nred\nblue\n");
  CHECK(run_program(run).code == 0);
  CHECK(run_program(run + " --train 1").errors.find("split a single file; a folder has train.csv") !=
        std::string::npos);
}

TEST_CASE("gp: options of tables are for tables") {
  const auto check = [](const std::string& arguments, const std::string& message) {
    const auto result = run_program("gp --network fcn " + arguments);
    CHECK(result.code == 2);
    CHECK(result.errors.find(message) != std::string::npos);
  };
  check("--data csv --path t.csv", "--target COLUMN[,...] for --data csv");
  check("--data csv --target t", "--path");
  check("--data sample --target t", "--target: for --data csv only");
  check("--data npy --path . --ignore t", "--ignore: for --data csv only");
  check("--data sample --stratify no", "--stratify: for --data npy and csv only");
}

TEST_CASE("gp --stratify: of classes every part has its share, of numbers there are none") {
  const TemporaryFolder folder;
  std::string text = "a,kind,y\n";
  for (int i = 0; i < 100; ++i)
    text += fmt::format("{},{},{}\n", std::sin(1.0 + 3.1 * i), i % 10 == 3 ? "rare" : "common",
                        std::cos(2.3 * i));
  write_text(folder / "t.csv", text);
  const auto rare_of = [&](const std::string& options) {
    const auto result =
        run_program(csv_run + "--ignore y --target kind --force --path " + (folder / "t.csv").string() +
                    " --out " + (folder / "out").string() + options);
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    int rare = 0;
    // "INDEX,t.csv:LINE,CLASS,..."
    for (const auto& row : lines_of(file_text(folder / "out/predictions.csv")))
      rare += row.compare(row.find(',', row.find(',') + 1), 6, ",rare,") == 0 ? 1 : 0;
    return rare;
  };
  std::set<int> drawn;
  for (int seed = 0; seed < 4; ++seed) {
    CHECK(std::abs(rare_of(fmt::format(" --seed {}", seed)) - 2) <= 1);
    drawn.insert(rare_of(fmt::format(" --stratify no --test 40 --seed {}", seed)));
  }
  CHECK(rare_of(" --stratify yes") == rare_of(""));
  CHECK(drawn.size() > 1);
  CHECK(csv_error(folder, text, "--ignore kind --target y --stratify yes")
            .find("--stratify yes: the targets are numbers, of which parts have no shares") !=
        std::string::npos);

  xt::xarray<double> x = xt::xarray<double>::from_shape({40, 2});
  xt::xarray<std::int64_t> labels = xt::xarray<std::int64_t>::from_shape({40});
  for (std::size_t i = 0; i < 40; ++i) {
    x(i, 0) = std::sin(static_cast<double>(i));
    x(i, 1) = std::cos(3.0 * static_cast<double>(i));
    labels(i) = i < 10 ? 1 : 0;
  }
  data::write_npy(folder / "x.npy", x);
  data::write_npy(folder / "y.npy", labels);
  const auto split = run_program(
      "gp --network fcn --kernel nngp --data npy --no-pictures --no-report --json --path " + folder.string());
  CAPTURE(split.errors);
  REQUIRE(split.code == 0);
  const auto of_test = nlohmann::json::parse(split.output)[0]["results"][0]["classes"];
  CHECK(std::abs(of_test[1]["inputs"].get<int>() - 2) <= 1);
}

TEST_CASE("gp --targets numbers: of true and false it is said how to read them") {
  const TemporaryFolder folder;
  std::string text = "a,y\n";
  for (int i = 0; i < 12; ++i)
    text += fmt::format("{},{}\n", std::sin(1.0 + 3.1 * i), i % 2 == 0 ? "TRUE" : "false");
  CHECK(csv_error(folder, text, "--target y --targets numbers")
            .ends_with(
                "bad.csv: line 2: column 'y': expected a finite number, found 'TRUE'; true and false are "
                "two classes (--targets classes), or write them as 1 and 0\n"));
  CHECK(csv_error(folder, "a,y\n1,2\n2,some\n3,1\n", "--target y --targets numbers")
            .ends_with("bad.csv: line 3: column 'y': expected a finite number, found 'some'\n"));
  write_text(folder / "good.csv", text);
  CHECK(run_program(csv_run + "--target y --targets classes --path " + (folder / "good.csv").string()).code ==
        0);
}

TEST_CASE("gp, fit and predict: several columns of targets") {
  const TemporaryFolder folder;
  std::string text = "a,b,first,\"second, m\"\n";
  for (int i = 0; i < 60; ++i) {
    const double a = std::sin(1.0 + 3.1 * i), b = std::cos(2.3 * i);
    text += fmt::format("{},{},{},{}\n", a, b, a + b, std::round(10 * a * b));
  }
  write_text(folder / "t.csv", text);
  const std::string path = " --path " + (folder / "t.csv").string();
  const auto result = run_program(csv_run + "--target first,b" + path + " --json");
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  // A column whose name has a comma is one target.
  const auto one = run_program(csv_run + "--target \"second, m\" --targets numbers" + path);
  CHECK(one.code == 0);
  CHECK(lines_of(one.output)[0].find("target 'second, m' (numbers)") != std::string::npos);

  const auto fails = [&](const std::string& options, const char* message) {
    const auto failed = run_program(csv_run + options + path);
    CHECK(failed.code == 1);
    CHECK(failed.errors.find(message) != std::string::npos);
  };
  fails("--target first,c", "--target: there is no column 'c'; there are a, b, first, second, m");
  fails("--target first,first", "--target: the column 'first' is named twice");
  fails("--target first,b --targets classes", "--target names 2 columns, which are numbers");

  const std::string model = (folder / "model").string();
  const auto fitted =
      run_program("fit --network fcn --data csv --target first,b" + path + " --model " + model);
  CAPTURE(fitted.errors);
  REQUIRE(fitted.code == 0);
  CHECK(fitted.output.find("target 'first', 'b' (numbers)") != std::string::npos);
  const auto predicted = run_program("predict --json --model " + model + " --csv " +
                                     (folder / "t.csv").string() + " --out " + (folder / "out").string());
  CAPTURE(predicted.errors);
  REQUIRE(predicted.code == 0);
  CHECK(data::read_npy<double>(folder / "out/mean.npy").shape(1) == 2);
  const std::string heading = lines_of(file_text(folder / "out/predictions.csv"))[0];
  CHECK(heading ==
        "index,id,target_first,target_b,nngp_standard_deviation_first,nngp_standard_deviation_b,"
        "nngp_observation_deviation_first,nngp_observation_deviation_b,nngp_lower_50_first,nngp_lower_50_b,"
        "nngp_upper_50_first,nngp_upper_50_b,nngp_lower_90_first,nngp_lower_90_b,nngp_upper_90_first,"
        "nngp_upper_90_b,nngp_lower_95_first,nngp_lower_95_b,nngp_upper_95_first,nngp_upper_95_b,"
        "nngp_mean_first,nngp_mean_b");
  const auto written =
      run_program(csv_run + "--target first,b" + path + " --out " + (folder / "written").string());
  CAPTURE(written.errors);
  REQUIRE(written.code == 0);
  CHECK(lines_of(file_text(folder / "written/predictions.csv"))[0] == heading);
  write_text(folder / "new.csv",
             "a,\"second, m\",first\n0.5,1,1\n");  // Of one of the targets the truth is not known.
  const auto unknown = run_program("predict --force --model " + model + " --csv " +
                                   (folder / "new.csv").string() + " --out " + (folder / "out").string());
  CHECK(unknown.code == 0);
  CHECK(lines_of(file_text(folder / "out/predictions.csv"))[0].starts_with("index,id,nngp_"));
}

TEST_CASE("gp: intervals of few rows are those of Student's t distribution") {
  const TemporaryFolder folder;
  std::string text = "a,y\n";
  for (int i = 0; i < 14; ++i) text += fmt::format("{},{}\n", std::sin(1.0 + 3.1 * i), std::cos(2.3 * i));
  write_text(folder / "t.csv", text);
  const auto run = [&](const std::string& options) {
    const auto result =
        run_program(csv_run + "--target y --train 10 --test 4 --force --path " + (folder / "t.csv").string() +
                    " --out " + (folder / "out").string() + options);
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    const auto rows = lines_of(file_text(folder / "out/predictions.csv"));
    std::vector<double> numbers;
    for (std::size_t begin = 0; begin != std::string::npos;) {
      const std::size_t end = rows[1].find(',', begin);
      const std::string field = rows[1].substr(begin, end - begin);
      numbers.push_back(field.find(':') == std::string::npos ? std::stod(field) : 0);
      begin = end == std::string::npos ? end : end + 1;
    }
    REQUIRE(rows[0].starts_with(
        "index,id,target_0,nngp_standard_deviation,nngp_observation_deviation,"
        "nngp_lower_50,nngp_upper_50,nngp_lower_90,nngp_upper_90,nngp_lower_95,nngp_upper_95"));
    return (numbers[10] - numbers[9]) / (2 * numbers[4]);
  };
  // 9 degrees of freedom: 2.2621571628 sqrt(10 / 9).
  CHECK(run("") == doctest::Approx(2.3845230).epsilon(1e-6));
  CHECK(nlohmann::json::parse(file_text(folder / "out/results.json"))["results"][0]["degrees_of_freedom"] ==
        9);
  CHECK(run(" --amplitude 1") == doctest::Approx(1.9599640).epsilon(1e-6));
  CHECK_FALSE(nlohmann::json::parse(file_text(folder / "out/results.json"))["results"][0].contains(
      "degrees_of_freedom"));
}

TEST_CASE("gp: x.npy and y.npy are split, and test rows stay the same") {
  const TemporaryFolder folder;
  xt::xarray<double> x = xt::xarray<double>::from_shape({50, 2}), y = xt::xarray<double>::from_shape({50});
  for (std::size_t i = 0; i < 50; ++i) {
    x(i, 0) = static_cast<double>(i);
    x(i, 1) = std::sin(static_cast<double>(i));
    y(i) = static_cast<double>(i) + 0.5;
  }
  data::write_npy(folder / "x.npy", x);
  data::write_npy(folder / "y.npy", y);
  const auto test_rows = [&](const std::string& options) {
    const auto result =
        run_program("gp --network fcn --kernel nngp --data npy --no-pictures --no-report --force --path " +
                    folder.string() + " --out " + (folder / "out").string() + options);
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    std::vector<std::string> starts;
    for (const auto& line : lines_of(file_text(folder / "out/predictions.csv")))
      starts.push_back(line.substr(0, line.find(',', line.find("#") + 5)));
    return starts;
  };
  const auto rows = test_rows("");
  REQUIRE(rows.size() == 11);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    // "INDEX,x.npy#ROW,ROW.5"
    const std::size_t begin = rows[i].find('#') + 1, comma = rows[i].find(',', begin);
    CHECK(rows[i].substr(comma + 1) == rows[i].substr(begin, comma - begin) + ".5");
  }
  CHECK(test_rows(" --test 10 --validation 5 --train 20") == rows);
  CHECK(test_rows(" --seed 1") != rows);

  std::filesystem::rename(folder / "x.npy", folder / "x_train.npy");
  std::filesystem::rename(folder / "y.npy", folder / "y_train.npy");
  const auto fixed = run_program("gp --network fcn --data npy --train 10 --path " + folder.string());
  CHECK(fixed.code == 1);
  CHECK(fixed.errors.find("split x.npy and y.npy; x_train.npy and its like are taken as they are") !=
        std::string::npos);
}

TEST_CASE(
    "fit --noise-variance: a row of half the variance is a row that stands twice, in float and in double") {
  const TemporaryFolder folder;
  const auto number = [](int i, double step) { return std::sin(step * i + 0.3); };
  std::string halved = "a,b,y,v\n", repeated = "a,b,y,v\n", queries = "a,b\n";
  for (int i = 0; i < 24; ++i) {
    const std::string row = fmt::format("{},{},{}", number(i, 1.1), number(i, 0.7), number(i, 1.9));
    const int times = i % 3 == 0 ? 2 : 1;
    halved += fmt::format("{},{}\n", row, 0.1 / times);
    for (int t = 0; t < times; ++t) repeated += row + ",0.1\n";
    queries += fmt::format("{},{}\n", number(i, 0.9), number(i, 0.4));
  }
  for (const auto& [name, text] : {std::pair{"halved", halved}, {"repeated", repeated}}) {
    std::filesystem::create_directory(folder / name);
    write_text(folder / name / "train.csv", text);
  }
  write_text(folder / "new.csv", queries);
  const auto means = [&](const std::string& data, const std::string& options) {
    const std::string model = (folder / ("model of " + data + options)).string(),
                      out = (folder / "out").string();
    const auto fitted = run_program(fmt::format(
        "fit --data csv --path {} --target y --network fcn --preprocess none --targets-as-they-are "
        "--amplitude 1 --model \"{}\" {}",
        (folder / data).string(), model, options));
    REQUIRE(fitted.errors == "");
    const auto predicted = run_program(fmt::format("predict --force --model \"{}\" --csv {} --out {}", model,
                                                   (folder / "new.csv").string(), out));
    REQUIRE(predicted.errors == "");
    return widelimit::data::read_npy<double>(out + "/mean.npy");
  };
  for (const std::string precision : {"float", "double"}) {
    CAPTURE(precision);
    const std::string known = "--noise-variance v --precision " + precision;
    const auto expected = means("repeated", known), found = means("halved", known),
               without = means("halved", "--ignore v --precision " + precision);
    double error = 0, effect = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      error = std::max(error, std::abs(found.flat(i) - expected.flat(i)));
      effect = std::max(effect, std::abs(without.flat(i) - expected.flat(i)));
    }
    CHECK(error < (precision == "float" ? 1e-5 : 1e-12));
    CHECK(effect > 0.1);
  }
}

TEST_CASE("gp --weight and --noise-variance: as fit has them; what does not go together is refused") {
  const TemporaryFolder folder;
  std::string table = "a,b,y,v,w\n";
  for (int i = 0; i < 30; ++i)
    table += fmt::format("{},{},{},{},{}\n", std::sin(1.1 * i), std::sin(0.7 * i), std::sin(1.9 * i),
                         0.05 + 0.01 * i, 1 + i % 3);
  write_text(folder / "train.csv", table);
  write_text(folder / "test.csv", table);
  const std::string both = fmt::format("--data csv --path {} --target y --network fcn --precision double ",
                                       folder.path().string());
  const std::string common = both + "--kernel nngp ";
  for (const std::string rows : {"--noise-variance v --ignore w", "--weight w --ignore v --criterion loo",
                                 "--weight w --ignore v --regulariser 0.01 --solver cg",
                                 "--noise-variance v --ignore w --amplitude 1 --solver cg"}) {
    CAPTURE(rows);
    const auto gp = run_program("gp --no-pictures --no-report --force --out " + (folder / "out").string() +
                                " " + common + rows);
    REQUIRE(gp.errors == "");
    std::string of_fit = rows;
    if (const auto at = of_fit.find(" --solver cg"); at != std::string::npos) of_fit.erase(at);
    const auto fit = run_program("fit --model " + (folder / "model").string() + " " + common + of_fit);
    REQUIRE(fit.errors == "");
    const auto predicted =
        run_program(fmt::format("predict --force --model {} --csv {} --out {}", (folder / "model").string(),
                                (folder / "test.csv").string(), (folder / "predicted").string()));
    REQUIRE(predicted.errors == "");
    const auto found = widelimit::data::read_npy<double>((folder / "out" / "mean_nngp.npy").string()),
               expected = widelimit::data::read_npy<double>((folder / "predicted" / "mean.npy").string());
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found.flat(i) - expected.flat(i)) < 1e-6);
  }
  const auto fails = [&](const std::string& options, const char* message) {
    CAPTURE(options);
    const auto result = run_program("gp " + options);
    CHECK(result.code != 0);
    CHECK(result.errors.find(message) != std::string::npos);
  };
  fails(common + "--noise-variance v --weight w", "not both");
  fails(common + "--noise-variance v --criterion loo", "the noise is known: leave out --criterion");
  fails(both + "--weight w", "--kernel nngp");
  fails(common + "--noise-variance v --solver cg",
        "cg takes --amplitude with --noise-variance, as finding it takes factorizations: give one, or take "
        "--solver cholesky");
}

TEST_CASE("gp and fit: a network that is chosen for a table, said beforehand and kept with all scores") {
  const TemporaryFolder folder;
  std::string text = "a,b,y\n";
  for (int i = 0; i < 80; ++i) {
    const double a = std::sin(1.0 + 3.1 * i), b = std::cos(2.3 * i);
    text += fmt::format("{},{},{}\n", a, std::exp(4 * b), std::sin(2 * a) + b + 0.1 * std::sin(37.0 * i));
  }
  write_text(folder / "table.csv", text);
  const std::string data = "--data csv --target y --path " + (folder / "table.csv").string() + " ";
  const auto result = run_program("gp --network auto --kernel nngp --no-report --no-pictures " + data +
                                  "--out " + (folder / "out").string());
  REQUIRE(result.code == 0);
  CHECK(result.output.find("at most 18 Gram matrices") < result.output.find("chosen among 18"));
  CHECK(result.output.find("inputs normal scores") != std::string::npos);
  const auto found = nlohmann::json::parse(file_text(folder / "out" / "results.json")).at("automatic");
  CHECK(found.at("trials").size() == 18);
  double lowest = 1e300;
  for (const auto& trial : found.at("trials")) lowest = std::min(lowest, trial.at("score").get<double>());
  for (const auto& trial : found.at("trials"))
    if (trial.at("network") == found.at("network") && trial.at("inputs") == found.at("inputs"))
      CHECK(trial.at("score") == lowest);
  const auto fitted =
      run_program("fit " + data + "--threads 1 --json --model " + (folder / "model").string());
  REQUIRE(fitted.code == 0);
  CHECK(nlohmann::json::parse(fitted.output).at("automatic").at("network") == found.at("network"));
  const auto predicted = run_program("predict --model " + (folder / "model").string() + " --csv " +
                                     (folder / "table.csv").string() + " --out " + (folder / "new").string());
  CHECK(predicted.code == 0);
  CHECK(run_program("gp --network auto --depth 2 " + data).errors.find("--depth is for named networks") !=
        std::string::npos);
  const auto images = run_program("fit --data sample --model " + (folder / "images").string());
  CHECK(images.code == 1);
  CHECK(images.errors.find("--network: auto is for tables and other vectors") != std::string::npos);
}
