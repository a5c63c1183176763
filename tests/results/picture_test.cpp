#include "widelimit/results/picture.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "data/temporary_folder.hpp"

using namespace widelimit::results;

namespace {

bool has(const std::string& script, const std::string& part) {
  return script.find(part) != std::string::npos;
}

/// Every way of drawing, every kind of axis, note and rule, on four panels.
Picture everything() {
  const std::vector<double> x{1, 2, 3}, y{1, 4, 2}, small{0.1, 0.1, 0.1};
  Panel curves{.title = "curves",
               .x = {.label = "x", .logarithmic = true},
               .y = {.label = "y", .from = 0},
               .second_y = {.label = "other", .from = 0, .to = 1},
               .legend = Legend::outside_below,
               .grid = true,
               .zero_line = true,
               .margin = 0.02,
               .notes = {{.text = "note", .x = 0.5, .y = 0.9, .x_of_panel = true, .y_of_panel = true},
                         {.text = "", .x = 2, .y = 0.97, .y_of_panel = true, .mark = 8}},
               .rules = {{.x = 2}, {.x = 1, .y = 2, .to_x = 3, .upright = false}}};
  for (const Draw draw : {Draw::lines, Draw::points, Draw::line_points, Draw::steps})
    curves.series.push_back({.draw = draw, .columns = {x, y}, .name = "a \"name\""});
  for (const Draw draw : {Draw::bars, Draw::joined_bars})
    curves.series.push_back(
        {.draw = draw, .columns = {x, y, small}, .colour = 0, .rgb = "#112233", .dash = 2});
  curves.series.push_back({.draw = Draw::cross_bars, .columns = {x, y, small, small}});
  curves.series.push_back({.columns = {x, small}, .on_second_axis = true});
  curves.series.push_back({.draw = Draw::none, .name = "entry", .draw_as = Draw::line_points});
  Panel cells{.x = {.named_tics = {{1, "one 100%"}, {2, ""}}},
              .colours = {.label = "z", .from = -1, .to = 1},
              .series = {{.draw = Draw::cells, .columns = {{1, 2, 1, 2}, {1, 1, 2, 2}, {-1, 0, 1, 0.5}}},
                         {.draw = Draw::labels, .columns = {{1}, {2}}, .texts = {"> 5"}}}};
  Panel boxes{.palette = Palette::viridis,
              .grey_ground = true,
              .series = {{.draw = Draw::boxes, .columns = {{1}, {1}, {0}, {2}, {0}, {2}, {0.5}}}}};
  Panel arrows{.series = {{.draw = Draw::arrows, .columns = {x, y, small, small}}}};
  return {.panels = {curves, cells, boxes, arrows}, .title = "all of it", .columns = 2};
}

}  // namespace

TEST_CASE("picture: the first line is the terminal and the size") {
  CHECK(gnuplot_script({.panels = {{}}, .width = 300, .height = 200})
            .starts_with("set terminal pngcairo size 300,200 noenhanced font ',11'\n"));
  CHECK(gnuplot_script({.panels = {{}}, .subscripts = true})
            .starts_with("set terminal pngcairo enhanced size 760,480"));
}

TEST_CASE("picture: a row without x interrupts a line, and texts are quoted") {
  const double none = std::nan("");
  const std::string script =
      gnuplot_script({.panels = {{.title = "it's \"5 %\"",
                                  .series = {{.columns = {{1, none, 2}, {3, none, 4}}, .name = "a'b"}}}}});
  CHECK(has(script, "$b0_0 << EOD\n1 3\n\n2 4\nEOD\n"));
  CHECK(has(script, "set title \"it\\047s \\042\\065 \\045\\042\""));
  CHECK(has(script, "title \"a\\047b\""));
  CHECK(gnuplot_quoted_tic("5%") == "\"5\\045\\045\"");
}

TEST_CASE("picture: several panels stand side by side, each on its own") {
  const std::string script = gnuplot_script(everything());
  CHECK(has(script, "set multiplot layout 2,2 title \"all of it\""));
  CHECK(script.find("reset") != script.rfind("reset"));
  CHECK(script.ends_with("unset multiplot\n"));
}

TEST_CASE("picture: axes without anything say why") {
  const Panel empty = empty_panel(everything().panels.front(), "no value");
  const std::string script = gnuplot_script({.panels = {empty}});
  CHECK(has(script, "set label \"no value\" at graph 0.5, graph 0.5 center"));
  CHECK(has(script, "plot 2 notitle"));
  CHECK_FALSE(has(script, "logscale"));
}

TEST_CASE("picture: gnuplot draws every way of drawing, and what is empty") {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) {
    MESSAGE("skipped: gnuplot is not installed");
    return;
  }
  const TemporaryFolder folder;
  Picture empty{.panels = {{.series = {{.columns = {{}, {}}}, {.columns = {{1}, {2}}}}}}};
  for (const Picture& picture : {everything(), empty, Picture{.panels = {empty_panel({}, "nothing")}}}) {
    const auto script = folder.write("script", gnuplot_script(picture));
    const std::string drawn = (folder.path() / "picture.png").string();
    CHECK(std::system(("gnuplot -d " + script.string() + " >" + drawn + " 2>/dev/null").c_str()) == 0);
    std::ifstream file(drawn, std::ios::binary);
    char start[4] = {};
    file.read(start, 4);
    CHECK(std::string(start + 1, 3) == "PNG");
  }
}
