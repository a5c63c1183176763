#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <widelimit/propagation/critical.hpp>
#include <widelimit/propagation/estimators.hpp>

#include "output.hpp"

/// What the propagation_* examples share: arguments, CSV files and pictures.
namespace propagation_examples {

using namespace widelimit::propagation;
using widelimit::Matrix;
using widelimit::numerics::Estimate;

/// --quick: sizes that take seconds. --networks N: another number of networks. --out FOLDER: where CSV files
/// and pictures go [NAME-results]. --no-plots: CSV only. --force: write into a
/// folder with files of others too.
struct Settings {
  bool quick = false;
  bool plots = true;
  bool force = false;
  Index networks = 0;
  std::filesystem::path out;
  std::shared_ptr<examples::Output> output;
  std::filesystem::path data;

  [[nodiscard]] Index size(Index full, Index small) const { return quick ? small : full; }
  [[nodiscard]] Index network_count(Index full) const { return networks > 0 ? networks : size(full, 2); }
};

inline Settings parse(int argc, char** argv) {
  Settings settings;
  settings.out = std::filesystem::path(argv[0]).filename().string() + "-results";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      settings.quick = true;
    } else if (argument == "--no-plots") {
      settings.plots = false;
    } else if (argument == "--force") {
      settings.force = true;
    } else if (argument == "--networks" && i + 1 < argc) {
      settings.networks = std::stol(argv[++i]);
    } else if (argument == "--out" && i + 1 < argc) {
      settings.out = argv[++i];
    } else if (argument == "--data" && i + 1 < argc) {
      settings.data = argv[++i];
    } else {
      throw std::runtime_error(
          "unknown argument " + argument +
          "; known are --quick, --networks N, --no-plots, --force, --out FOLDER, --data FOLDER");
    }
  }
  settings.output = std::make_shared<examples::Output>(
      argc, argv, examples::Output::Options{settings.out, settings.plots, settings.force});
  return settings;
}

/// A CSV file in the output folder.
class Csv : public examples::CsvFile {
 public:
  Csv(const Settings& settings, const std::string& name, const std::string& header)
      : CsvFile(*settings.output, name, header, 9) {}
};

/// Draws NAME.png with gnuplot from commands that read the CSV files of the output folder.
inline void plot(const Settings& settings, const std::string& name, const std::string& commands,
                 int width = 1150) {
  settings.output->plot(name, "pngcairo size " + std::to_string(width) + ",520 noenhanced font ',11'",
                        commands);
}

/// The two slices of the paper's figures.
struct Slice {
  std::string name;
  Plane plane;
  Parameters base;
};

inline std::vector<Slice> slices(Index tokens) {
  Parameters parameters;
  parameters.tokens = tokens;
  Parameters second = parameters;
  second.sigma_w = 2;
  return {{"alpha_sigma_w", {Coordinate::alpha, 0.02, 0.95, Coordinate::sigma_w, 0.2, 4}, parameters},
          {"alpha_M_alpha_A", {Coordinate::alpha_M, 0.02, 0.95, Coordinate::alpha_A, 0.02, 0.95}, second}};
}

inline Parameters at(const Slice& slice, double x, double y) {
  Parameters parameters = slice.base;
  if (slice.plane.x == Coordinate::alpha) {
    parameters.alpha_A = parameters.alpha_M = x;
    parameters.sigma_w = y;
  } else {
    parameters.alpha_M = x;
    parameters.alpha_A = y;
  }
  return parameters;
}

/// x,y lines of the curves, apart by blank lines.
inline void write_boundary(const Settings& settings, const std::string& name,
                           const std::vector<BoundaryCurve>& curves) {
  Csv table(settings, name, "x,y");
  for (const BoundaryCurve& curve : curves) {
    for (const PlanePoint& point : curve.points) table.row(point.x, point.y);
    table.gap();
  }
}

/// gnuplot settings for a map with white at 0.
inline std::string map_settings(const Slice& slice, double range) {
  return "set palette defined (-1 '#2166ac', 0 '#ffffff', 1 '#b2182b')\nset cbrange [" +
         std::to_string(-range) + ":" + std::to_string(range) + "]\nset xrange [" +
         std::to_string(slice.plane.x_from) + ":" + std::to_string(slice.plane.x_to) + "]\nset yrange [" +
         std::to_string(slice.plane.y_from) + ":" + std::to_string(slice.plane.y_to) + "]\nset xlabel '" +
         std::string(coordinate_name(slice.plane.x)) + "'\nset ylabel '" +
         std::string(coordinate_name(slice.plane.y)) + "'\nset key top left opaque\n";
}

template <typename Body>
int run_example(int argc, char** argv, const Body& body) {
  try {
    const auto began = std::chrono::steady_clock::now();
    const Settings settings = parse(argc, argv);
    body(settings);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
    std::printf("%.1f s; files in %s\n", taken.count(), settings.out.string().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace propagation_examples
