// report.html in a browser, as people open it: no error, no request, every picture there, no text cut off.
#include <doctest/doctest.h>

#include <fstream>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_program;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace fs = std::filesystem;

namespace {

/// Counts what is wrong on the page, once everything is loaded.
constexpr const char* inspection = R"(<script>
window.addEventListener('load', () => {
  const pictures = [...document.images], plots = [...document.querySelectorAll('svg[role=img]')];
  const say = (key, value) => document.documentElement.setAttribute('data-' + key, value);
  say('pictures', pictures.length);
  say('broken', pictures.filter(p => !p.complete || p.naturalWidth === 0).length);
  say('plots', plots.length);
  const outside = [], bad = [];
  for (const plot of plots) {
    const frame = plot.getBoundingClientRect();
    if (frame.width < 20 || frame.height < 10) bad.push(plot.querySelector('title').textContent);
    for (const text of plot.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1 ||
          box.top < frame.top - 1 || box.bottom > frame.bottom + 1))
        outside.push(plot.querySelector('title').textContent + ': ' + text.textContent);
    }
    if (/NaN|inf/i.test(plot.innerHTML.replace(/<[/]?(title|text|tspan)[^>]*>[^<]*/g, '')))
      bad.push('NaN in ' + plot.querySelector('title').textContent);
  }
  say('outside', outside.join('; '));
  say('bad', bad.join('; '));
  say('overflow', document.documentElement.scrollWidth - document.documentElement.clientWidth);
});
</script>)";

bool has_chromium() { return run_script("command -v chromium").code == 0; }

/// Chromium without a network; its log on standard error, the page after loading on standard output.
ProgramResult open_in_browser(const TemporaryFolder& folder, const fs::path& page) {
  return run_script(
      "timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir=" + folder.string() +
      "/profile --window-size=1200,900 --proxy-server=127.0.0.1:9 --enable-logging=stderr --v=0 "
      "--virtual-time-budget=3000 --dump-dom 'file://" +
      page.string() + "'");
}

std::string attribute(const std::string& dom, const std::string& name) {
  const std::string key = "data-" + name + "=\"";
  const std::size_t begin = dom.find(key);
  if (begin == std::string::npos) return "no " + name;
  return dom.substr(begin + key.size(), dom.find('"', begin + key.size()) - begin - key.size());
}

void check_page(const fs::path& report, int pictures, int plots) {
  const TemporaryFolder folder;
  std::ofstream(folder / "page.html") << file_text(report) << inspection;
  const ProgramResult result = open_in_browser(folder, folder / "page.html");
  REQUIRE(result.code == 0);
  CHECK(result.errors.find("CONSOLE") == std::string::npos);
  CAPTURE(result.errors);
  CHECK(attribute(result.output, "pictures") == std::to_string(pictures));
  CHECK(attribute(result.output, "broken") == "0");
  CHECK(attribute(result.output, "plots") == std::to_string(plots));
  CHECK(attribute(result.output, "outside") == "");
  CHECK(attribute(result.output, "bad") == "");
  CHECK(attribute(result.output, "overflow") == "0");
}

/// Pictures of mistakes and examples that the page holds.
int pictures_in(const fs::path& report) {
  const std::string text = file_text(report);
  int count = 0;
  for (std::size_t at = text.find("<img "); at != std::string::npos; at = text.find("<img ", at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("report in a browser: images, two networks, one of them with branches") {
  if (!has_chromium()) {
    MESSAGE("skipped: chromium is not installed");
    return;
  }
  const TemporaryFolder folder;
  std::ofstream(folder / "residual.json") << R"({"widelimit": 1, "name": "residual & <friends>", "layers": [
    {"layer": "conv", "filter": [3, 3]},
    {"layer": "repeat", "times": 3, "layers": [
      {"layer": "sum", "branches": [{"layers": []}, {"scale": 0.5, "layers": [
        {"layer": "relu"}, {"layer": "conv", "filter": [3, 3], "padding": "circular"}]}]}]},
    {"layer": "attention", "scaling": "inverse_width"}, {"layer": "layer_norm"},
    {"layer": "global_average_pool"}, {"layer": "dense"}]})";
  REQUIRE(run_program(
              "gp --network " + (folder / "residual.json").string() +
              " --network fcn --data sample --train 60 --validation 30 --test 40 --size 6 --time 2 --out " +
              (folder / "out").string())
              .code == 0);
  const fs::path report = folder / "out/report.html";
  // A test image of every class, and up to ten mistakes of two kernels of two networks.
  CHECK(pictures_in(report) >= 20);
  // The accuracies; for each network its diagram, validation and prior; for each of two kernels confusion and
  // calibration.
  check_page(report, pictures_in(report), 1 + 2 * (3 + 2 * 2));
}

TEST_CASE("report in a browser: texts, numbers, and predictions without known targets") {
  if (!has_chromium()) {
    MESSAGE("skipped: chromium is not installed");
    return;
  }
  const TemporaryFolder folder;
  REQUIRE(
      run_program(
          "gp --network imdb-gap --data reviews --train 60 --validation 30 --test 30 --kernel nngp --out " +
          (folder / "texts").string())
          .code == 0);
  check_page(folder / "texts/report.html", 0, 1 + 3 + 2);

  const auto write = [&](const std::string& name, std::size_t count, double phase) {
    xt::xarray<double> x = xt::xarray<double>::from_shape({count, 3}),
                       y = xt::xarray<double>::from_shape({count});
    for (double& value : x) value = std::sin(phase += 1.1);
    for (std::size_t i = 0; i < count; ++i) y(i) = 1000 * x(i, 0) * x(i, 1);
    data::write_npy(folder / ("x_" + name + ".npy"), x);
    data::write_npy(folder / ("y_" + name + ".npy"), y);
  };
  write("train", 30, 0.1);
  write("validation", 12, 0.4);
  write("test", 9, 0.7);
  const std::string arrays = "gp --network fcn --data npy --path " + folder.string() + " --out ";
  REQUIRE(run_program(arrays + (folder / "numbers").string()).code == 0);
  check_page(folder / "numbers/report.html", 0, 3 + 2 * 2);
  fs::remove(folder / "y_test.npy");
  REQUIRE(run_program(arrays + (folder / "unknown").string() + " --regulariser 0.1").code == 0);
  check_page(folder / "unknown/report.html", 0, 2);
}
