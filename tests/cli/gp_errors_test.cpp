#include <doctest/doctest.h>

#include <fstream>
#include <limits>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using namespace widelimit;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

template <typename T>
xt::xarray<T> filled(const std::vector<std::size_t>& shape, int modulus) {
  xt::xarray<T> array = xt::xarray<T>::from_shape(shape);
  int value = 0;
  for (T& entry : array) entry = static_cast<T>(value++ % modulus);
  return array;
}

/// A small classification that is right in every way; tests break one file each.
struct GoodFolder : TemporaryFolder {
  GoodFolder() {
    data::write_npy(*this / "x_train.npy", filled<double>({6, 4}, 7));
    data::write_npy(*this / "y_train.npy", filled<std::int64_t>({6}, 2));
    data::write_npy(*this / "x_test.npy", filled<double>({3, 4}, 5));
    data::write_npy(*this / "y_test.npy", filled<std::int64_t>({3}, 2));
  }

  [[nodiscard]] testing::ProgramResult run(const std::string& options = "--regulariser 0.1") const {
    return run_program("gp --network fcn --data npy --path " + string() + " " + options);
  }

  void check_fails(const std::string& message, const std::string& options = "--regulariser 0.1") const {
    const auto result = run(options);
    CHECK(result.code == 1);
    CHECK(result.output.empty());
    CHECK(result.errors == "widelimit: " + string() + message + "\n");
  }
};

/// CIFAR-10 files with the given numbers of records, labels in turn.
void write_cifar10(const TemporaryFolder& folder, int training, int test) {
  const auto write = [&](const char* name, int records) {
    std::ofstream stream(folder / name, std::ios::binary);
    for (int i = 0; i < records; ++i) {
      std::string record(3073, static_cast<char>(37 * i));
      record[0] = static_cast<char>(i % 10);
      for (std::size_t k = 1; k < record.size(); ++k)
        record[k] = static_cast<char>(static_cast<int>(k) * (i + 3) % 251);
      stream << record;
    }
  };
  write("data_batch_1.bin", training);
  write("test_batch.bin", test);
}

void check_usage(const std::string& arguments, const std::string& part) {
  CAPTURE(arguments);
  const auto result = run_program("gp " + arguments);
  CHECK(result.code == 2);
  CAPTURE(result.errors);
  CHECK(result.errors.find("widelimit: ") == 0);
  CHECK(result.errors.find('\n') == result.errors.size() - 1);
  CHECK(result.errors.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("gp arrays: the good case is good") { CHECK(GoodFolder().run().code == 0); }

TEST_CASE("gp arrays: counts and shapes that do not fit") {
  const GoodFolder labels, shape, test_labels, axes, scalar;
  data::write_npy(labels / "y_train.npy", filled<std::int64_t>({5}, 2));
  labels.check_fails("/y_train.npy: expected 6 rows, one for each input, got 5");
  data::write_npy(shape / "x_test.npy", filled<double>({3, 2, 2}, 5));
  shape.check_fails("/x_test.npy: expected inputs of shape [4] as in x_train.npy, got [2, 2]");
  data::write_npy(test_labels / "y_test.npy", filled<std::int64_t>({4}, 2));
  test_labels.check_fails("/y_test.npy: expected 3 rows, one for each input, got 4");
  data::write_npy(axes / "y_train.npy", filled<std::int64_t>({6, 3}, 2));
  axes.check_fails(
      "/y_train.npy: expected integer labels [n], or rows of integers of which one column stands out, got "
      "[6, 3]; "
      "give --targets numbers for numbers");
  data::write_npy(scalar / "x_train.npy", filled<double>({6}, 7));
  scalar.check_fails(
      "/x_train.npy: expected inputs [n, spatial..., channels] with up to three spatial axes, got [6]");
}

TEST_CASE("gp arrays: one-hot rows of integers or truth values are the classes of the same labels") {
  const GoodFolder labels, integers, bytes;
  const xt::xarray<std::int64_t> train{2, 0, 1, 1, 2, 0}, test{1, 2, 0};
  const auto one_hot = [](const xt::xarray<std::int64_t>& of, auto one) {
    xt::xarray<decltype(one)> rows = xt::zeros<decltype(one)>({of.size(), std::size_t{3}});
    for (std::size_t i = 0; i < of.size(); ++i) rows(i, static_cast<std::size_t>(of(i))) = one;
    return rows;
  };
  data::write_npy(labels / "y_train.npy", train);
  data::write_npy(labels / "y_test.npy", test);
  data::write_npy(integers / "y_train.npy", one_hot(train, std::int64_t{1}));
  data::write_npy(integers / "y_test.npy", one_hot(test, double{1}));
  data::write_npy(bytes / "y_train.npy", one_hot(train, std::uint8_t{1}));
  data::write_npy(bytes / "y_test.npy", one_hot(test, std::uint8_t{1}));
  const auto scores = [](const auto& result) {
    CHECK(result.code == 0);
    CHECK(result.output.find("3 classes") != std::string::npos);
    return result.output.substr(result.output.find("predictions"));
  };
  const std::string of_labels = scores(labels.run());
  CHECK(scores(integers.run()) == of_labels);
  CHECK(scores(bytes.run()) == of_labels);
}

TEST_CASE("gp and fit: no training inputs at all") {
  const std::vector<std::vector<std::size_t>> shapes{{0, 4}, {0, 2, 2, 3}};
  for (const auto& shape : shapes)
    for (const bool labels : {false, true}) {
      const GoodFolder split, one;
      for (const auto& [folder, ending] : {std::pair(&split, "_train"), std::pair(&one, "")}) {
        if (folder == &one) std::filesystem::remove(one / "x_train.npy");
        const auto file = [&, end = ending](const char* name) {
          return *folder / (std::string(name) + end + ".npy");
        };
        data::write_npy(file("x"), filled<double>(shape, 2));
        if (labels)
          data::write_npy(file("y"), filled<std::int64_t>({0}, 2));
        else
          data::write_npy(file("y"), filled<double>({0}, 2));
        for (const char* command : {"gp", "fit"}) {
          CAPTURE(command);
          const auto result = run_program(
              std::string(command) + " --network fcn --data npy --path " + folder->string() +
              " --regulariser 0.1" + (command[0] == 'f' ? " --model " + (*folder / "model").string() : ""));
          CHECK(result.code == 1);
          CHECK(result.errors.find("x" + std::string(ending) +
                                   ".npy: expected one training input or more, got an array of shape [0, ") !=
                std::string::npos);
        }
      }
    }
}

TEST_CASE("gp arrays: values that cannot be") {
  const GoodFolder inputs, targets, unknown, single;
  auto x = filled<double>({6, 4}, 7);
  x(2, 1) = std::numeric_limits<double>::quiet_NaN();
  data::write_npy(inputs / "x_train.npy", x);
  inputs.check_fails("/x_train.npy: values must be finite, got nan at entry 1 of input 2");
  auto y = filled<double>({6, 2}, 3);
  y(5, 1) = std::numeric_limits<double>::infinity();
  data::write_npy(targets / "y_train.npy", y);
  targets.check_fails("/y_train.npy: values must be finite, got inf at entry 11 in row-major order");
  data::write_npy(unknown / "y_test.npy", filled<std::int64_t>({3}, 3));
  unknown.check_fails("/y_test.npy: labels: label 2 (from 0) is '2', which does not occur in training data");
  data::write_npy(single / "y_train.npy", filled<std::int64_t>({6}, 1));
  single.check_fails("/y_train.npy: labels: expected labels of two or more classes, got '0' only");
}

TEST_CASE("gp arrays: kinds of targets must agree, and so must their number") {
  const GoodFolder kinds, widths;
  data::write_npy(kinds / "y_test.npy", filled<double>({3}, 2));
  kinds.check_fails("/y_test.npy: expected integer labels as in y_train.npy");
  data::write_npy(widths / "y_train.npy", filled<double>({6, 2}, 3));
  data::write_npy(widths / "y_test.npy", filled<double>({3, 3}, 3));
  widths.check_fails("/y_test.npy: expected 2 targets an input as in y_train.npy, got 3");
}

TEST_CASE("gp arrays: real numbers that could be labels are asked for") {
  const GoodFolder folder;
  data::write_npy(folder / "y_train.npy", filled<double>({6}, 2));
  data::write_npy(folder / "y_test.npy", filled<double>({3}, 2));
  folder.check_fails(
      "/y_train.npy: these are real numbers, all of them whole (0 to 1): labels of classes, or numbers? "
      "Store "
      "labels as integers, or give --targets classes or --targets numbers");
  const auto classes = folder.run("--regulariser 0.1 --targets classes");
  CHECK(classes.code == 0);
  CHECK(classes.output.find(", 2 classes, float\n") != std::string::npos);
  CHECK(classes.output.find("recall") != std::string::npos);
  const auto numbers = folder.run("--regulariser 0.1 --targets numbers");
  CHECK(numbers.code == 0);
  CHECK(numbers.output.find(", 1 outputs (numbers), float\n") != std::string::npos);
  CHECK(numbers.output.find("recall") == std::string::npos);
  // The same labels as integers are classes, unless numbers are asked for.
  const GoodFolder integers;
  const auto means = [](const GoodFolder& data, const std::string& options) {
    const TemporaryFolder out;
    CHECK(data.run("--regulariser 0.1 --threads 1 " + options + " --out " + out.string()).code == 0);
    return data::read_npy<double>(out / "mean_nngp.npy");
  };
  CHECK(means(integers, "") == means(folder, "--targets classes"));
  CHECK(integers.run("--regulariser 0.1 --targets numbers").output.find("1 outputs (numbers)") !=
        std::string::npos);
  data::write_npy(folder / "y_test.npy", xt::xarray<double>{0, 1, 0.5});
  folder.check_fails(
      "/y_test.npy: labels must be whole numbers, got 0.5 at index 2; give --targets numbers for numbers",
      "--regulariser 0.1 --targets classes");
}

TEST_CASE("gp arrays: targets that are all 0 fit no amplitude") {
  const GoodFolder folder;
  data::write_npy(folder / "y_train.npy", xt::xarray<double>(xt::zeros<double>({6})));
  data::write_npy(folder / "y_test.npy", filled<double>({3}, 2));
  const auto result = folder.run("--regulariser 0.1 --targets numbers");
  CHECK(result.code == 1);
  CHECK(result.errors ==
        "widelimit: the training targets are all 0, so that no amplitude of the kernels fits them; give "
        "--amplitude\n");
  CHECK(folder.run("--regulariser 0.1 --targets numbers --amplitude 2").code == 0);
}

TEST_CASE("gp arrays: missing files") {
  const GoodFolder train, validation;
  std::filesystem::remove(train / "y_train.npy");
  const auto result = train.run();
  CHECK(result.code == 1);
  CHECK(result.errors.find("widelimit: " + train.string() + "/y_train.npy") == 0);
  validation.check_fails(
      ": no x_validation.npy and y_validation.npy to choose the regulariser on; add them or give "
      "--criterion loo or --regulariser",
      "--criterion accuracy");
  data::write_npy(validation / "x_validation.npy", filled<double>({2, 4}, 3));
  validation.check_fails(
      ": x_validation.npy and y_validation.npy belong together; y_validation.npy is missing");
}

TEST_CASE("gp: more images than the data set holds") {
  const TemporaryFolder folder;
  write_cifar10(folder, 30, 10);
  const std::string start = "gp --network fcn --data cifar10 --size 4 --path " + folder.string();
  CHECK(run_program(start + " --train 20 --validation 10 --test 10").code == 0);
  const auto train = run_program(start + " --train 30 --validation 10 --test 10");
  CHECK(train.code == 1);
  CHECK(train.errors.find("only 0 are left") != std::string::npos);
  CHECK(run_program(start + " --train 20 --validation 10 --test 20").code == 1);
  std::filesystem::remove(folder / "test_batch.bin");
  const auto missing = run_program(start + " --train 20 --validation 10 --test 10");
  CHECK(missing.code == 1);
  CHECK(missing.errors.find("test_batch.bin") != std::string::npos);
}

TEST_CASE("gp: a network that does not fit stops the run before any work") {
  const auto result = run_program(
      "gp --network fcn --network conv-gap:axes=1 --data sample --train 20 --validation 10 --test 10");
  CHECK(result.code == 1);
  CHECK(result.output.empty());
  CHECK(result.errors.find("layers[0]") != std::string::npos);
  // Whatever every layer takes may still end with positions.
  const TemporaryFolder folder;
  const std::string file = (folder / "open.json").string();
  std::ofstream(file)
      << R"({"widelimit": 1, "layers": [{"layer": "conv", "filter": [3, 3], "padding": "same"}]})";
  for (const std::string& command : {std::string("gp"), "fit --model " + (folder / "model").string()}) {
    const auto open = run_program(command + " --network " + file + " --data sample --train 20 --test 10");
    CHECK(open.code == 1);
    CHECK(open.output.empty());
    CHECK(open.errors.find("open.json: network '': expected no positions after the last layer") !=
          std::string::npos);
  }
}

TEST_CASE("gp: wrong usage") {
  check_usage("--network fcn --data imagenet", "--data");
  const TemporaryFolder folder;
  const std::string file = (folder / "x.npy").string();
  std::ofstream(file) << "no folder";
  for (const char* data : {"cifar10", "mnist", "imdb --vectors x", "npy", "graphs"}) {
    CAPTURE(data);
    const auto result = run_program(std::string("gp --network fcn --path ") + file + " --data " + data);
    CHECK(result.code == 1);
    CHECK(result.errors.starts_with("widelimit: " + file + ": --path: expected a folder of "));
    CHECK(result.errors.ends_with(", found a file (see --help)\n"));
  }
  check_usage("--network fcn --data sample --kernel rbf", "--kernel");
  check_usage("--network fcn --data sample --precision half", "--precision");
  check_usage("--network fcn --data sample --path .", "--data sample has no files");
  check_usage("--network fcn --data cifar10", "--path");
  check_usage("--network fcn --data npy --path . --size 4",
              "--size: for --data sample, cifar10 and mnist only");
  check_usage("--network fcn --data sample --validation 0 --criterion accuracy",
              "give --criterion loo or evidence, or --regulariser");
  check_usage("--network fcn --data sample --kernel nngp --time 1", "gradient flow needs the NTK");
  check_usage("--network fcn --data sample --time 1,-2", "--time");
  check_usage("--network fcn --data sample --regulariser 0", "--regulariser");
  check_usage("--network fcn --data sample --train 0", "--train");
  check_usage("--network fcn --data sample --amplitude 0", "--amplitude");
  check_usage("--network fcn --data sample --targets classes",
              "--targets: for --data npy, csv and graphs only");
  check_usage("--network fcn --data npy --path . --targets labels", "--targets");
  check_usage("--network fcn --data sample --size 0", "--size");
  check_usage("--data sample", "--network");
}
