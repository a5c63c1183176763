// gp --preprocess, --zca-regulariser and --flip.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <xtensor/xview.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/gp/preprocessing.hpp"
#include "widelimit/kernel/flip_average.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

const std::string tiny_sample =
    "gp --network conv-flatten:depth=1 --data sample --train 30 --validation 20 --test 10 --size 4 "
    "--no-pictures ";

xt::xarray<double> mean_in(const std::filesystem::path& folder) {
  return data::read_npy<double>(folder / "mean_nngp.npy");
}

/// Images whose left and right differ, with labels.
void write_image_arrays(const TemporaryFolder& folder) {
  const auto write = [&](const std::string& name, std::size_t count, double phase) {
    xt::xarray<double> x = xt::xarray<double>::from_shape({count, 3, 4, 2});
    for (double& value : x) value = std::sin(phase += 1.3);
    xt::xarray<std::int64_t> y = xt::xarray<std::int64_t>::from_shape({count});
    for (std::size_t i = 0; i < count; ++i) y(i) = static_cast<std::int64_t>(i % 2);
    data::write_npy(folder / ("x_" + name + ".npy"), x);
    data::write_npy(folder / ("y_" + name + ".npy"), y);
  };
  write("train", 12, 0.1);
  write("test", 5, 0.7);
}

}  // namespace

TEST_CASE("gp: every preprocessing is said, and changes what is predicted") {
  const TemporaryFolder folder;
  std::vector<xt::xarray<double>> means;
  for (const std::string word : {"none", "pixel", "image", "channel", "zca"}) {
    CAPTURE(word);
    const auto result = run_program(tiny_sample + "--kernel nngp --preprocess " + word + " --out " +
                                    (folder / word).string());
    REQUIRE(result.code == 0);
    CHECK(lines_of(result.output)[0].find("seed 0, preprocessing " + word) != std::string::npos);
    CHECK(nlohmann::json::parse(file_text(folder / (word + "/results.json")))["preprocessing"] == word);
    for (const auto& other : means) CHECK(mean_in(folder / word) != other);
    means.push_back(mean_in(folder / word));
  }
}

TEST_CASE("gp: preprocessed arrays are those of the library, fitted to the training inputs alone") {
  const TemporaryFolder raw, prepared;
  write_image_arrays(raw);
  write_image_arrays(prepared);
  const auto train = data::read_npy<double>(raw / "x_train.npy"),
             test = data::read_npy<double>(raw / "x_test.npy");
  const auto fitted = gp::Preprocessing::fit(gp::PreprocessingKind::zca, train, 0.5);
  data::write_npy(prepared / "x_train.npy", fitted.apply(train));
  data::write_npy(prepared / "x_test.npy", fitted.apply(test));
  const auto run = [](const TemporaryFolder& folder, const std::string& options) {
    const auto result = run_program(
        "gp --network conv-flatten:depth=1 --data npy --precision double --regulariser 0.1 --path " +
        folder.string() + " --out " + (folder / "out").string() + options);
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    return mean_in(folder / "out");
  };
  CHECK(run(raw, " --preprocess zca --zca-regulariser 0.5") == run(prepared, ""));
}

TEST_CASE("gp: with --flip mirror images are predicted alike; the first line says so") {
  const TemporaryFolder folder;
  write_image_arrays(folder);
  const std::string command =
      "gp --network conv-flatten:depth=1 --data npy --precision double --regulariser 0.1 --flip --path " +
      folder.string() + " --out ";
  const auto result = run_program(command + (folder / "out").string());
  REQUIRE(result.code == 0);
  CHECK(lines_of(result.output)[0].find(", kernels averaged over flips, double") != std::string::npos);
  data::write_npy(folder / "x_test.npy", flipped(data::read_npy<double>(folder / "x_test.npy")));
  REQUIRE(run_program(command + (folder / "mirrored").string()).code == 0);
  for (const char* file : {"mean_nngp.npy", "mean_ntk.npy", "variance_nngp.npy", "variance_ntk.npy"}) {
    CAPTURE(file);
    const auto one = data::read_npy<double>(folder / (std::string("out/") + file)),
               two = data::read_npy<double>(folder / (std::string("mirrored/") + file));
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(one.flat(i) == doctest::Approx(two.flat(i)).epsilon(1e-9).scale(1));
  }
}

TEST_CASE("gp and fit: with --flip mirrored test images are predicted alike after every preprocessing") {
  const TemporaryFolder folder;
  write_image_arrays(folder);
  const auto test = data::read_npy<double>(folder / "x_test.npy");
  const auto mean_of = [&](const xt::xarray<double>& images, const std::string& kind,
                           const std::string& out) {
    data::write_npy(folder / "x_test.npy", images);
    const auto result = run_program(
        "gp --network conv-flatten:depth=1 --data npy --precision double --kernel nngp --regulariser 0.1 "
        "--flip --path " +
        folder.string() + " --preprocess " + kind + " --out " + (folder / out).string());
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    return mean_in(folder / out);
  };
  const auto check_same = [](const xt::xarray<double>& one, const xt::xarray<double>& two) {
    REQUIRE(one.size() == two.size());
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(one.flat(i) == doctest::Approx(two.flat(i)).epsilon(1e-9).scale(1));
  };
  for (const std::string kind : {"none", "pixel", "image", "channel", "zca", "zca --zca-regulariser 0.1"}) {
    CAPTURE(kind);
    check_same(mean_of(flipped(test), kind, "a"), mean_of(test, kind, "b"));
  }
  const std::string model = (folder / "model").string();
  REQUIRE(run_program("fit --network conv-flatten:depth=1 --data npy --precision double --regulariser 0.1 "
                      "--flip --preprocess "
                      "zca --path " +
                      folder.string() + " --model " + model)
              .code == 0);
  const auto predicted = [&](const xt::xarray<double>& images, const std::string& out) {
    data::write_npy(folder / "new.npy", images);
    REQUIRE(run_program("predict --model " + model + " --x " + (folder / "new.npy").string() + " --out " +
                        (folder / out).string())
                .code == 0);
    return data::read_npy<double>(folder / (out + "/mean.npy"));
  };
  check_same(predicted(flipped(test), "c"), predicted(test, "d"));
}

TEST_CASE("gp, fit and predict: inputs of another scale are told, with both ranges") {
  const TemporaryFolder folder;
  write_image_arrays(folder);
  const xt::xarray<double> test = 255 * data::read_npy<double>(folder / "x_test.npy");
  data::write_npy(folder / "new.npy", test);
  const std::string network =
      " --network conv-flatten:depth=1 --data npy --regulariser 0.1 --path " + folder.string();
  const auto warned = [](const std::string& command, const std::string& start, const std::string& part) {
    const auto result = run_program(command);
    CAPTURE(result.errors);
    CHECK(result.code == 0);
    CHECK(
        result.errors.starts_with("widelimit: warning: " + start + ": the numbers of the inputs run from -"));
    CHECK(result.errors.find(part) != std::string::npos);
  };
  const std::string model = (folder / "model").string();
  CHECK(run_program("fit" + network + " --model " + model).errors == "");
  warned("predict --model " + model + " --x " + (folder / "new.npy").string() + " --out " +
             (folder / "p").string(),
         (folder / "new.npy").string(), "those of the training inputs from -0.99");
  data::write_npy(folder / "x_test.npy", test);
  warned("gp" + network, "test data", "those of the training inputs from -0.99");
  warned("fit" + network + " --preprocess channel --model " + model, "test data",
         " after the preprocessing (channel)");
}

TEST_CASE("gp: images are whitened by default where there are two or more for each of their numbers") {
  const auto description_of = [](const std::string& options) {
    const auto result = run_program(
        "gp --network fcn:depth=1 --kernel nngp --regulariser 0.1 --data sample --size 4 "
        "--validation 10 --test 10 " +
        options);
    REQUIRE(result.code == 0);
    return lines_of(result.output)[0];
  };
  CHECK(description_of("--train 95").ends_with(", preprocessing image (zca takes 96 images), float"));
  CHECK(description_of("--train 96").ends_with(", preprocessing zca 1, float"));
  CHECK(description_of("--train 95 --preprocess zca").ends_with(", preprocessing zca 1, float"));
  CHECK(description_of("--train 95 --preprocess image").ends_with(", preprocessing image, float"));
}

TEST_CASE("gp: preprocessing that does not fit the data is an error") {
  const auto usage = [](const std::string& options, const std::string& message) {
    const auto result = run_program(options);
    CAPTURE(options);
    CHECK(result.code == 2);
    CHECK(result.errors.find(message) != std::string::npos);
  };
  usage(tiny_sample + "--preprocess pca", "--preprocess");
  usage(tiny_sample + "--preprocess zca --zca-regulariser 0", "--zca-regulariser");
  usage(tiny_sample + "--preprocess image --zca-regulariser 1",
        "--zca-regulariser: for --preprocess zca only");
  usage(tiny_sample + "--zca-regulariser 1", "--zca-regulariser: for --preprocess zca only");
  usage("gp --network imdb-gap --data reviews --preprocess image",
        "--preprocess: for --data sample, cifar10, mnist, npy and csv only");
  usage("gp --network imdb-gap --data reviews --flip",
        "--flip: for --data sample, cifar10, mnist, npy and csv only");

  const TemporaryFolder folder;
  data::write_npy(folder / "x_train.npy", xt::xarray<double>(xt::ones<double>({3, 1})));
  data::write_npy(folder / "y_train.npy", xt::xarray<double>{0.1, 0.2, 0.4});
  data::write_npy(folder / "x_test.npy", xt::xarray<double>(xt::ones<double>({1, 1})));
  const std::string arrays = "gp --network fcn --data npy --regulariser 0.1 --path " + folder.string();
  const auto flip = run_program(arrays + " --flip");
  CHECK(flip.code == 1);
  CHECK(flip.errors.find("--flip needs images [n, height, width, channels], got inputs with 2 axes") !=
        std::string::npos);
  const auto pixel = run_program(arrays + " --preprocess pixel");
  CHECK(pixel.code == 1);
  CHECK(pixel.errors.find("pixel needs two or more channels, got 1") != std::string::npos);
  const auto equal = run_program(arrays + " --preprocess channel");
  CHECK(equal.code == 1);
  CHECK(!equal.errors.empty());
  xt::xarray<double> different = xt::ones<double>({3, 1});
  different(1, 0) = 2;
  data::write_npy(folder / "x_train.npy", different);
  CHECK(run_program(arrays + " --preprocess channel").code == 0);
}
