#include "figure.hpp"

#include <fmt/format.h>

#include <exception>

namespace examples {

void add_common_arguments(ArgumentList& arguments, CommonSettings& settings,
                          const std::string& default_folder) {
  settings.out = default_folder;
  arguments.flag("--quick", settings.quick, "Small sizes: seconds to two minutes on two cores");
  arguments.path("--out", settings.out, "Folder for CSV files and pictures; made if it is missing");
  arguments.flag("--force", settings.force, "Write into a folder with files that are not of an earlier run");
  arguments.flag("--no-plots", settings.no_pictures, "CSV files only, no pictures (which need gnuplot)");
}

int run_example(ArgumentList& arguments, int argc, char** argv, CommonSettings& settings,
                const std::function<int()>& body) {
  if (const auto status = arguments.parse(argc, argv)) return *status;
  try {
    const Clock clock;
    settings.output = std::make_shared<Output>(
        argc, argv, Output::Options{settings.out, !settings.no_pictures, settings.force});
    const int status = body();
    fmt::print("{:.1f} s; files in {}\n", clock.seconds(), settings.out.string());
    return status;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
}

void plot(const CommonSettings& settings, const std::string& name, const std::string& commands,
          const std::string& size) {
  settings.output->plot(
      name,
      fmt::format("pngcairo size {} noenhanced font ',11'", size.empty() ? settings.picture_size : size),
      settings.picture_settings + commands);
}

}  // namespace examples
