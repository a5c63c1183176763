// widelimit predict: new inputs are prepared as those of the training were.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/data/preprocessing.hpp"
#include "widelimit/data/text_file.hpp"

namespace widelimit::testing {
namespace {

void write_table(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

double first_number(int row) { return std::sin(1.0 + 3.1 * row); }
double second_number(int row) { return 100 * std::cos(2.3 * row); }

/// The columns without the target.
std::string table_row(int row) {
  return fmt::format("\"row, {}\",{:.17g},{},{:.17g}", row, first_number(row), row % 3 == 0 ? "red" : "blue",
                     second_number(row));
}

/// A model of 40 rows, whose kind is to be predicted.
std::string fitted_table_model(const TemporaryFolder& folder) {
  std::string text = "name,a,colour,b,note,kind\n";
  for (int row = 0; row < 40; ++row)
    text +=
        table_row(row) + ",x," + (10 * first_number(row) + second_number(row) > 0 ? "large" : "small") + "\n";
  std::filesystem::create_directory(folder / "tables");
  write_table(folder / "tables/train.csv", text);
  const std::string model = (folder / "model").string();
  const auto fitted = run_program(
      "fit --network fcn --precision double --data csv --target kind --id name --ignore note --path " +
      (folder / "tables").string() + " --model " + model);
  REQUIRE(fitted.errors == "");
  return model;
}

std::string prediction_error(const std::string& model, const std::string& input,
                             const TemporaryFolder& folder) {
  const auto result =
      run_program("predict --model " + model + " " + input + " --out " + (folder / "bad").string());
  CHECK(result.code == 1);
  CHECK(!std::filesystem::exists(folder / "bad"));
  return result.errors;
}

/// mean.npy of a prediction that goes well.
xt::xarray<double> predicted_mean(const std::string& model, const std::string& input,
                                  const std::filesystem::path& out) {
  const auto result = run_program("predict --model " + model + " " + input + " --out " + out.string());
  REQUIRE(result.errors == "");
  REQUIRE(result.code == 0);
  return data::read_npy<double>(out / "mean.npy");
}

}  // namespace

TEST_CASE("predict --csv: rows become the numbers that the training rows became, and keep their names") {
  const TemporaryFolder folder;
  const std::string model = fitted_table_model(folder);
  std::string text = "b,colour,name,a\n";
  xt::xarray<double> encoded = xt::zeros<double>({5, 4});
  for (int row = 50; row < 55; ++row) {
    const auto i = static_cast<std::size_t>(row - 50);
    text += fmt::format("{:.17g},{},\"row, {}\",{:.17g}\n", second_number(row), row % 3 == 0 ? "red" : "blue",
                        row, first_number(row));
    encoded(i, 0) = first_number(row);
    encoded(i, row % 3 == 0 ? 2 : 1) = 1;
    encoded(i, 3) = second_number(row);
  }
  write_table(folder / "new.csv", text);
  data::write_npy(folder / "new.npy", encoded);
  const auto from_table =
      predicted_mean(model, "--csv " + (folder / "new.csv").string(), folder / "from_table");
  CHECK(from_table == predicted_mean(model, "--x " + (folder / "new.npy").string(), folder / "from_array"));
  const auto rows = lines_of(file_text(folder / "from_table/predictions.csv"));
  REQUIRE(rows.size() == 6);
  CHECK(rows[0].starts_with("index,id,"));
  CHECK(rows[2].starts_with("1,\"row, 51\","));
  const auto plain_rows = lines_of(file_text(folder / "from_array/predictions.csv"));
  CHECK(plain_rows[0].starts_with("index,id,nngp_class,"));
}

TEST_CASE("predict --csv: what does not fit the training table is an error with file, line and column") {
  const TemporaryFolder folder;
  const std::string model = fitted_table_model(folder);
  const std::string file = (folder / "new.csv").string();
  const auto error = [&](const std::string& text) {
    write_table(file, text);
    return prediction_error(model, "--csv " + file, folder);
  };
  CHECK(error("name,a,colour,b\nr,1,red,2\ns,1,green,2\n") ==
        "widelimit: " + file +
            ": line 3: column 'colour': the category 'green' is not among those of the training table; "
            "--unknown "
            "ignore reads such cells as none of the categories\n");
  CHECK(error("name,a,colour\nr,1,red\n") ==
        "widelimit: " + file +
            ": expected a column 'b' as in the training table; there are name, a, colour\n");
  CHECK(error("name,a,colour,b,c\nr,1,red,2,3\n") ==
        "widelimit: " + file + ": found a column 'c' that the training table does not have\n");
  CHECK(error("name,a,colour,b\nr,1,red,\n") == "widelimit: " + file +
                                                    ": line 2: column 'b': expected a value, found none; "
                                                    "`fit` and `gp` fill missing cells with --missing "
                                                    "mean or --missing column\n");
  // Squares of this one are beyond double.
  CHECK(error("name,a,colour,b\nr,1e200,red,2\n").find("widelimit: " + file + ": gram: input 0 of x1: ") !=
        std::string::npos);
  CHECK(error("name,a,colour,b\n") == "widelimit: " + file + ": there are no rows\n");
  CHECK(error("a,colour,b\n1,red,2\n").find("'name'") != std::string::npos);
  CHECK(run_program("predict --model m --out o --csv a.csv --x x.npy").code == 2);
}

TEST_CASE("predict: images are reduced as those of the training were, bytes divided by 255") {
  const TemporaryFolder folder;
  const std::string model = (folder / "model").string();
  const auto fitted = run_program(
      "fit --network fcn --precision double --data sample --train 30 --validation 10 --test 10 --size 4 "
      "--model " +
      model);
  REQUIRE(fitted.errors == "");
  xt::xarray<std::uint8_t> bytes = xt::xarray<std::uint8_t>::from_shape({3, 12, 10, 3});
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes.flat(i) = static_cast<std::uint8_t>(i * 37 % 251);
  const xt::xtensor<float, 4> pixels = xt::cast<double>(bytes) / 255.0;
  const xt::xarray<float> small = data::resize_anti_aliased(pixels, 4, 4);
  data::write_npy(folder / "bytes.npy", bytes);
  data::write_npy(folder / "small.npy", small);
  CHECK(predicted_mean(model, "--x " + (folder / "bytes.npy").string(), folder / "a") ==
        predicted_mean(model, "--x " + (folder / "small.npy").string(), folder / "b"));
  data::write_npy(folder / "flat.npy", xt::xarray<float>(xt::zeros<float>({3, 48})));
  CHECK(prediction_error(model, "--x " + (folder / "flat.npy").string(), folder) ==
        "widelimit: " + (folder / "flat.npy").string() +
            ": expected images [n, height, width, channels], got 2 axes\n");
  write_table(folder / "t.csv", "a\n1\n");
  CHECK(prediction_error(model, "--csv " + (folder / "t.csv").string(), folder)
            .find("t.csv: a table, but the model was not fitted to one") != std::string::npos);
}

TEST_CASE("predict: the truth is compared with, of tables and of labels beside arrays") {
  const TemporaryFolder folder;
  xt::xarray<double> x = xt::xarray<double>::from_shape({40, 2});
  xt::xarray<std::int64_t> y = xt::xarray<std::int64_t>::from_shape({40});
  std::string table = "a,b,kind\n";
  for (std::size_t i = 0; i < 40; ++i) {
    x(i, 0) = std::sin(1.7 * static_cast<double>(i));
    x(i, 1) = std::cos(2.9 * static_cast<double>(i));
    y(i) = x(i, 0) > 0 ? 8 : 3;
    table += fmt::format("{},{},{}\n", x(i, 0), x(i, 1), y(i) == 8 ? "up" : "down");
  }
  std::filesystem::create_directory(folder / "arrays");
  data::write_npy(folder / "arrays/x_train.npy", x);
  data::write_npy(folder / "arrays/y_train.npy", y);
  write_table(folder / "table.csv", table);
  const auto fit = [&](const std::string& data, const char* model) {
    const auto result =
        run_program("fit --network fcn --data " + data + " --model " + (folder / model).string());
    REQUIRE(result.errors == "");
  };
  fit("npy --path " + (folder / "arrays").string(), "of_arrays");
  fit("csv --target kind --path " + (folder / "table.csv").string(), "of_table");
  const auto predict = [&](const char* model, const std::string& inputs, const char* out) {
    const auto result = run_program("predict --model " + (folder / model).string() + " " + inputs +
                                    " --out " + (folder / out).string());
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    CHECK(result.output.find("new inputs") != std::string::npos);
    return nlohmann::json::parse(file_text(folder / out / "results.json"))["results"][0];
  };
  const auto of_arrays = predict(
      "of_arrays",
      "--x " + (folder / "arrays/x_train.npy").string() + " --y " + (folder / "arrays/y_train.npy").string(),
      "arrays_out");
  CHECK(of_arrays["accuracy"].get<double>() > 0.9);
  CHECK(
      predict("of_table", "--csv " + (folder / "table.csv").string(), "table_out")["accuracy"].get<double>() >
      0.9);
  const auto rows = lines_of(file_text(folder / "arrays_out/predictions.csv"));
  CHECK(
      rows[0].starts_with("index,id,class,nngp_class,nngp_probability,nngp_standard_deviation,"
                          "nngp_observation_deviation,nngp_probability_3,nngp_probability_8,"));
  CHECK(file_text(folder / "table_out/report.html").find("Confusion") != std::string::npos);
  data::write_npy(folder / "other.npy", xt::xarray<std::int64_t>{3, 5});
  CHECK(prediction_error(
            (folder / "of_arrays").string(),
            "--x " + (folder / "arrays/x_train.npy").string() + " --y " + (folder / "other.npy").string(),
            folder)
            .find("other.npy: the label '5' is none of the model's classes: 3, 8") != std::string::npos);
}

TEST_CASE("predict --texts: new texts with the word vectors of the training") {
  const TemporaryFolder folder;
  write_table(folder / "vectors.txt", "good 1 0 0\nbad -1 0 0\nfilm 0 1 0\nplot 0 0 1\n");
  for (const char* part : {"train", "test"})
    for (const bool is_good : {true, false}) {
      const auto place = folder / "reviews" / part / (is_good ? "pos" : "neg");
      std::filesystem::create_directories(place);
      for (int i = 0; i < 8; ++i)
        write_table(place / fmt::format("{}_{}.txt", i, is_good ? 9 : 2),
                    fmt::format("{} film {}", is_good ? "good" : "bad", i % 2 == 0 ? "plot" : "film"));
    }
  const auto fitted =
      run_program("fit --network imdb-gap --data imdb --path " + (folder / "reviews").string() +
                  " --vectors " + (folder / "vectors.txt").string() +
                  " --train 12 --validation 2 --test 4 --model " + (folder / "model").string());
  CAPTURE(fitted.errors);
  REQUIRE(fitted.code == 0);
  write_table(folder / "new.txt", "a good plot\na bad, bad film\n");
  const std::string model = (folder / "model").string(), texts = " --texts " + (folder / "new.txt").string(),
                    vectors = " --vectors " + (folder / "vectors.txt").string();
  const auto mean = predicted_mean(model, texts + vectors, folder / "out");
  REQUIRE(mean.size() == 2);
  CHECK(mean.flat(0) > 0);
  CHECK(mean.flat(1) < 0);
  CHECK(lines_of(file_text(folder / "out/predictions.csv"))[2].starts_with("1,new.txt:2,neg,"));
  CHECK(prediction_error(model, texts, folder).find("give --vectors FILE") != std::string::npos);
  write_table(folder / "others.txt", "good 1 0 1\nbad -1 0 0\n");
  CHECK(prediction_error(model, texts + " --vectors " + (folder / "others.txt").string(), folder)
            .find("others.txt: expected the word vectors that the model was fitted with") !=
        std::string::npos);
  write_table(folder / "new.txt", "a good plot\nnothing known\n");
  CHECK(prediction_error(model, texts + vectors, folder).find("new.txt:2: none of its words has a vector") !=
        std::string::npos);
  CHECK(predicted_mean(model, texts + vectors + " --unknown ignore", folder / "known").flat(0) ==
        doctest::Approx(mean.flat(0)).epsilon(1e-6));
  CHECK(lines_of(file_text(folder / "known/predictions.csv")).size() == 2);
  // A mark at the beginning of a text, as editors of Windows write it, is no part of its first word.
  const std::string mark(data::byte_order_mark);
  std::filesystem::create_directory(folder / "marked");
  write_table(folder / "marked/a.txt", mark + "good");
  write_table(folder / "marked/b.txt", std::string("\xff\xfe"
                                                   "b\0a\0d\0",
                                                   8));
  write_table(folder / "marked.txt", mark + "good\n" + mark + "bad\r\n");
  write_table(folder / "plain.txt", "good\nbad\n");
  const auto plain =
      predicted_mean(model, " --texts " + (folder / "plain.txt").string() + vectors, folder / "p");
  for (const char* name : {"marked", "marked.txt"})
    CHECK(predicted_mean(model, " --texts " + (folder / name).string() + vectors,
                         folder / (std::string("of_") + name)) == plain);
}

}  // namespace widelimit::testing
