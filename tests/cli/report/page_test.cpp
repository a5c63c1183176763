// What report.html says, and what it is made of.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/cifar10_files.hpp"
#include "cli/program.hpp"
#include "cli/report/html.hpp"
#include "cli/report/network_diagram.hpp"
#include "cli/report/svg_plot.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;
using widelimit::testing::write_cifar10;

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson layers_of_kinds(const std::vector<std::string>& kinds) {
  OrderedJson layers = OrderedJson::array();
  for (const std::string& kind : kinds) layers.push_back({{"layer", kind}});
  return layers;
}

}  // namespace

TEST_CASE("report: base64 has the examples of RFC 4648") {
  const std::vector<std::pair<std::string, std::string>> examples{
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}};
  for (const auto& example : examples) CHECK(cli::base64(example.first) == example.second);
  CHECK(cli::base64("\xff\xfe") == "//4=");
}

TEST_CASE("report: texts are escaped, and cut between characters") {
  CHECK(cli::html_escaped("<a href='x'>\"&\"") == "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;");
  CHECK(cli::cut_utf8("naïve", 10) == "naïve");
  CHECK(cli::cut_utf8("naïve", 3) == "na…");
  CHECK(cli::cut_utf8("naïve", 4) == "naï…");
}

TEST_CASE("report: runs of layers are folded, the longest first") {
  const auto folded =
      cli::folded_layers(layers_of_kinds({"conv", "relu", "conv", "relu", "conv", "relu", "dense"}));
  REQUIRE(folded.size() == 2);
  CHECK(folded[0]["times"] == 3);
  CHECK(folded[0]["layers"].size() == 2);
  CHECK(folded[1]["layer"] == "dense");
  CHECK(cli::folded_layers(layers_of_kinds({"conv", "relu", "dense"})).size() == 3);
  const auto alike = cli::folded_layers(layers_of_kinds({"relu", "relu", "relu", "relu"}));
  REQUIRE(alike.size() == 1);
  CHECK(alike[0]["times"] == 4);
}

TEST_CASE("report: a diagram shows branches, factors and numbers") {
  const OrderedJson network = {
      {"name", "a<b"},
      {"layers",
       {{{"layer", "conv"},
         {"filter", {3, 5}},
         {"strides", {2, 2}},
         {"weight_variance", 1.5},
         {"bias_variance", 0.25}},
        {{"layer", "product"},
         {"branches",
          {{{"scale", 0.5}, {"layers", layers_of_kinds({"tanh"})}}, {{"layers", OrderedJson::array()}}}}}}}};
  const std::string svg = cli::network_diagram(network);
  for (const char* part :
       {">conv<", "3 × 5, stride 2 × 2, σ² 1.5 + 0.25", ">tanh<", ">0.5<", ">×<", "a&lt;b"})
    CHECK(svg.find(part) != std::string::npos);
}

TEST_CASE("report: kinds of a group share a colour, a kind that the library does not know is no activation") {
  const auto colour = [](const char* kind) { return cli::layer_text({{"layer", kind}}).colour; };
  CHECK(colour("tanh") == colour("exp_normalized"));
  CHECK(colour("conv") == colour("dense"));
  CHECK(colour("aggregate") == colour("average_pool"));
  CHECK(colour("somebody's own") == colour("dropout"));
  CHECK(colour("somebody's own") != colour("tanh"));
}

TEST_CASE("report: axes reach around what they show") {
  const auto axis = cli::axis_over("x", {1, 3});
  CHECK(axis.low == doctest::Approx(0.9));
  CHECK(axis.high == doctest::Approx(3.1));
  for (const double value : {0.0, 5.0, -2.0}) {
    const auto single = cli::axis_over("x", {value});
    CHECK(single.low < value);
    CHECK(single.high > value);
  }
}

TEST_CASE("report: one file, no reference to any other; what was run stands in it") {
  const TemporaryFolder folder;
  REQUIRE(run_program("gp --network fcn --network conv-flatten:depth=1 --data sample --train 40 --validation "
                      "20 --test 20 "
                      "--size 4 --no-pictures --out " +
                      folder.string())
              .code == 0);
  const std::string page = file_text(folder / "report.html");
  for (const char* foreign : {"http://", "https://", "<script", "url(http", "src='/", "src=\"/", "@import"})
    CHECK(page.find(foreign) == std::string::npos);
  for (const char* part :
       {"gp --network fcn --network conv-flatten:depth=1 --data sample", "preprocessing image",
        "<dt>train</dt><dd>[40, 4, "
        "4, 3]</dd>",
        "<h2>fcn</h2>", "<h2>conv-flatten:depth=1</h2>", "<td class='word'>NTK</td>", "stripes 45",
        "data:image/png;base64,iVBOR", "taken for", "image "})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
  const auto record = nlohmann::json::parse(file_text(folder / "run.json"));
  CHECK(record["files"].dump().find("report.html") != std::string::npos);

  REQUIRE(run_program(
              "gp --network fcn --data sample --train 40 --validation 20 --test 20 --size 4 --no-pictures "
              "--no-report --out " +
              folder.string())
              .code == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "report.html"));
}

TEST_CASE("report: what looks at no input is judged as in the table of scores, by the training data") {
  const TemporaryFolder folder;
  // The most frequent class of the test rows, b, is not that of the training rows.
  std::string train = "x,kind,y\n", test = train;
  for (int i = 0; i < 10; ++i) train += fmt::format("{},{},{}\n", i % 5 + 0.1 * i, i < 6 ? "a" : "b", i);
  for (int i = 0; i < 4; ++i) test += fmt::format("{},{},{}\n", i + 0.25, i < 1 ? "a" : "b", 20 + i);
  std::ofstream(folder / "train.csv") << train;
  std::ofstream(folder / "test.csv") << test;
  const auto lead = [&](const std::string& target) {
    REQUIRE(run_program("gp --network fcn --data csv --path " + folder.string() + " --target " + target +
                        " --no-pictures --out " + (folder / "out").string())
                .code == 0);
    const std::string page = file_text(folder / "out/report.html");
    return page.substr(page.find("<p class='lead'>"), 400);
  };
  CHECK(lead("kind --ignore y")
            .find("The most frequent class of the training data alone is right for 25.0 %.") !=
        std::string::npos);
  // The mean of the training targets is 4.5, the test targets are 20 to 23: the root of 17^2 + 1.25.
  CHECK(lead("y --targets numbers --ignore kind").find("The mean of the training targets alone has 17.04.") !=
        std::string::npos);
}

TEST_CASE("report, gp and fit: a baseline that is better is one sentence, and none where it is not") {
  const TemporaryFolder folder;
  // A line far beyond the training inputs is what linear regression is for; of a wave it knows nothing.
  const auto write = [&](const std::string& name, double slope) {
    std::string text[] = {"x,y\n", "x,y\n"};
    for (int i = 0; i < 80; ++i) {
      const double x = i / 40.0 + (i < 60 ? 0 : slope);
      text[i < 60 ? 0 : 1] +=
          fmt::format("{},{}\n", x, slope * x + (slope == 0 ? std::sin(5.0 * x) : 0.2 * std::sin(7.0 * i)));
    }
    std::filesystem::create_directories(folder / name);
    std::ofstream(folder / name / "train.csv") << text[0];
    std::ofstream(folder / name / "test.csv") << text[1];
  };
  write("line", 2.5);
  write("wave", 0);
  const std::string sentence =
      "a simple method is better on the test data: linear regression, mean squared error ";
  for (const std::string name : {"line", "wave"}) {
    const std::string data = " --network rbf --data csv --target y --path " + (folder / name).string();
    const auto gp =
        run_program("gp --no-pictures --kernel nngp --out " + (folder / "out").string() + data + " --force");
    CAPTURE(gp.output);
    REQUIRE(gp.code == 0);
    const auto fit = run_program("fit --model " + (folder / "model").string() + data);
    REQUIRE(fit.code == 0);
    const std::string page = file_text(folder / "out/report.html");
    const std::size_t begin = page.find("<p class='lead'>");
    const std::string lead = page.substr(begin, page.find("</p>", begin) - begin);
    const bool better = name == "line";
    CHECK((gp.output.find("\n" + sentence) != std::string::npos) == better);
    CHECK((fit.output.find("\n" + sentence) != std::string::npos) == better);
    CHECK((lead.find("<b>A simple method is better on the test data: linear regression") !=
           std::string::npos) == better);
  }
}

TEST_CASE("report: headings of tables wrap, so that those of many columns fit the page") {
  const TemporaryFolder folder;
  REQUIRE(run_program("gp --network fcn --data sample --train 40 --validation 20 --test 20 --size 4 "
                      "--no-pictures --out " +
                      folder.string())
              .code == 0);
  const std::string page = file_text(folder / "report.html");
  CHECK(page.find("<th>nngp announced</th>") != std::string::npos);
  const std::size_t style = page.find("\nth { ");
  REQUIRE(style != std::string::npos);
  CHECK(page.substr(style, page.find('}', style) - style).find("white-space: normal") != std::string::npos);
}

TEST_CASE("report: markup in names of classes stays text") {
  const TemporaryFolder folder;
  write_cifar10(folder, [](int c) { return "<img src=x onerror=alert(" + std::to_string(c) + ")>"; });
  REQUIRE(run_program(
              "gp --network fcn --data cifar10 --size 4 --train 10 --validation 10 --test 10 --kernel nngp "
              "--no-pictures --path " +
              folder.string() + " --out " + (folder / "out").string())
              .code == 0);
  CHECK(file_text(folder / "out/report.html").find("<img src=x") == std::string::npos);
}
