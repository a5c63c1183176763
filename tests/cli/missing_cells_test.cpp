// --missing: tables with cells that hold nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

namespace widelimit::testing {
namespace {

void write_rows(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

/// A table of which some cells hold nothing, and the numbers that it should become.
struct Holes {
  std::string text = "a,colour,b,t\n";
  xt::xarray<double> x;
  xt::xarray<double> y;
};

enum class Fill { mean, column };

constexpr double mean_of_a = 1.25;    // Of the training rows that have one: 2, 0.5, 1, 1.5 in turn.
constexpr double share_of_red = 0.4;  // Two of five, in turn; the others are blue.

/// `first` = 0: training rows, 40 of them, else test rows. Row i lacks `a` where i % 5 = 4, the colour where i % 6 = 5.
Holes table_with_holes(int first, int rows, Fill fill, const std::string& word) {
  Holes holes;
  const std::size_t width = fill == Fill::mean ? 4 : 6;
  holes.x = xt::zeros<double>({static_cast<std::size_t>(rows), width});
  holes.y = xt::zeros<double>({static_cast<std::size_t>(rows)});
  constexpr double values[] = {2, 0.5, 1, 1.5};
  for (int i = 0; i < rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    const bool no_a = i % 5 == 4, no_colour = i % 6 == 5;
    const bool red = i % 6 < 2;
    const double a = values[i % 5 % 4], b = std::round(1000 * std::sin(1.0 + first + 1.3 * i)) / 1000;
    const std::size_t after_a = fill == Fill::mean ? 1 : 2;
    holes.x(row, 0) = no_a ? mean_of_a : a;
    if (fill == Fill::column && no_a) holes.x(row, 1) = 1;
    if (!no_colour) holes.x(row, after_a + (red ? 1 : 0)) = 1;
    if (no_colour && fill == Fill::mean) {
      holes.x(row, after_a) = 1 - share_of_red;
      holes.x(row, after_a + 1) = share_of_red;
    }
    if (no_colour && fill == Fill::column) holes.x(row, after_a + 2) = 1;
    holes.x(row, width - 1) = b;
    holes.y(row) = std::round(1000 * (b * a + (red ? 1 : 0))) / 1000;
    holes.text += fmt::format("{},{},{},{}\n", no_a ? word : fmt::format("{}", a),
                              no_colour ? ""
                              : red     ? "red"
                                        : "blue",
                              b, holes.y(row));
  }
  return holes;
}

void check_equal(const std::filesystem::path& one, const std::filesystem::path& other) {
  const auto a = data::read_npy<double>(one), b = data::read_npy<double>(other);
  REQUIRE(a.shape() == b.shape());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a.flat(i) == doctest::Approx(b.flat(i)).epsilon(1e-9));
}

}  // namespace

TEST_CASE("--missing: filled cells equal arrays with the training rows' means, and predict fills alike") {
  for (const Fill fill : {Fill::mean, Fill::column})
    for (const std::string word : {"", " ", "NA", "nan", "?"}) {
      const TemporaryFolder tables, arrays;
      const auto write = [&](const std::string& name, int first, int rows) {
        const Holes holes = table_with_holes(first, rows, fill, word);
        write_rows(tables / (name + ".csv"), holes.text);
        data::write_npy(arrays / ("x_" + name + ".npy"), holes.x);
        data::write_npy(arrays / ("y_" + name + ".npy"), holes.y);
      };
      write("train", 0, 30);
      write("test", 50, 12);
      CAPTURE(word);
      const std::string option = fill == Fill::mean ? "mean" : "column";
      const std::string same = "fcn --precision double --kernel nngp --regulariser 0.01 --preprocess none ";
      const std::string files = "--no-pictures --no-report --out ";
      const auto of_table =
          run_program("gp --network " + same + "--data csv --target t --missing " + option + " --path " +
                      tables.string() + " " + files + (tables / "out").string());
      REQUIRE(of_table.errors == "");
      CHECK(of_table.output.find(
                "missing cells (--missing " + option +
                "): training rows 6 in 'a', 5 in 'colour'; test rows 2 in 'a', 2 in 'colour'\n") !=
            std::string::npos);
      REQUIRE(run_program("gp --network " + same + "--data npy --path " + arrays.string() + " " + files +
                          (arrays / "out").string())
                  .errors == "");
      check_equal(tables / "out/mean_nngp.npy", arrays / "out/mean_nngp.npy");
      check_equal(tables / "out/variance_nngp.npy", arrays / "out/variance_nngp.npy");
      const auto results = nlohmann::json::parse(file_text(tables / "out/results.json"));
      CHECK(results["missing"]["choice"] == option);
      CHECK(results["missing"]["cells"]["training"] == nlohmann::json{{"a", 6}, {"colour", 5}});

      const std::string model = (tables / "model").string();
      const auto fitted = run_program("fit --network " + same + "--data csv --target t --missing " + option +
                                      " --path " + tables.string() + " --model " + model);
      REQUIRE(fitted.errors == "");
      CHECK(fitted.output.find("missing cells (--missing " + option + ")") != std::string::npos);
      const auto predicted =
          run_program("predict --model " + model + " --csv " + (tables / "test.csv").string() + " --out " +
                      (tables / "predicted").string());
      REQUIRE(predicted.errors == "");
      CHECK(predicted.output.find("column 'a': 2 of 12 cells missing, filled as in the training (--missing " +
                                  option + ")") != std::string::npos);
      const auto of_new = nlohmann::json::parse(file_text(tables / "predicted/results.json"));
      CHECK(of_new["missing"]["cells"]["new"] == nlohmann::json{{"a", 2}, {"colour", 2}});
      check_equal(tables / "predicted/mean.npy", tables / "out/mean_nngp.npy");
    }
}

TEST_CASE(
    "--missing: a column that was complete in the training takes its mean, without a number of its own") {
  const TemporaryFolder folder;
  std::string text = "a,b,t\n", filled = "a,b\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("{},{},{}\n", i % 4, i % 5 == 0 ? "" : "2.5", 0.5 + std::sin(1.0 * i));
  write_rows(folder / "train.csv", text);
  const std::string model = (folder / "model").string();
  REQUIRE(run_program("fit --network fcn --precision double --data csv --target t --missing column --path " +
                      folder.string() + " --model " + model)
              .errors == "");
  const auto mean = [&](const std::string& name, const std::string& rows) {
    write_rows(folder / (name + ".csv"), "a,b\n" + rows);
    const auto result =
        run_program("predict --model " + model + " --csv " + (folder / (name + ".csv")).string() + " --out " +
                    (folder / name).string());
    REQUIRE(result.errors == "");
    return data::read_npy<double>(folder / name / "mean.npy");
  };
  // 0, 1, 2 and 3 in turn have the mean 1.5.
  CHECK(mean("lacking", ",2.5\n,\n") == mean("present", "1.5,2.5\n1.5,\n"));
}

TEST_CASE("--missing: cells are an error unless it says else; targets and names always are") {
  const TemporaryFolder folder;
  const auto error_of = [&](const std::string& text, const std::string& options, int code = 1) {
    write_rows(folder / "t.csv", text);
    const auto result = run_program("gp --network fcn --data csv --regulariser 0.1 --path " +
                                    (folder / "t.csv").string() + " " + options);
    CHECK(result.code == code);
    CAPTURE(result.errors);
    return result.errors;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  std::string rows = "a,t\n", lacking = "a,t\n";
  for (int i = 0; i < 10; ++i)
    rows += fmt::format("{},{}\n", i == 3 ? "" : i % 2 == 0 ? "1.5" : "2", 0.5 + i);
  for (int i = 0; i < 10; ++i)
    lacking += fmt::format("{},{}\n", "1.5", i == 3 ? "" : fmt::format("{}", 0.5 + i));
  has(error_of(rows, "--target t"),
      "line 5: column 'a': expected a value, found none; `fit` and `gp` fill missing cells with --missing "
      "mean or "
      "--missing column");
  has(error_of(rows, "--target t --missing error"), "line 5: column 'a': expected a value, found none");
  CHECK(error_of(rows, "--target t --missing mean", 0) == "");
  has(error_of(lacking, "--target t --missing mean"), "line 5: column 't': expected a value, found none\n");
  has(error_of(rows, "--target t --missing median", 2), "--missing");
  has(error_of("a,b,t\n,1,1.5\n,2,2.5\n,3,3.5\n,4,4.5\n,5,5.5\n", "--target t --missing mean"),
      "column 'a': none of the 4 training rows has a value; leave the column out with --ignore 'a'");
  // Words that stand for nothing among numbers are categories among texts.
  has(error_of("a,t\nNA,1.5\nred,2.5\nNA,3.5\nred,4.5\nNA,5.5\n", "--target t --missing mean", 0), "");
  has(error_of("a,t\n1,1.5\nNA,2.5\n3,3.5\nNA,4.5\n5,5.5\n", "--target t"), "expected a value, found 'NA'");
  const auto arrays = run_program("gp --network fcn --data npy --path . --missing mean");
  CHECK(arrays.code == 2);
  has(arrays.errors, "--missing: for --data csv only");
}

}  // namespace widelimit::testing
