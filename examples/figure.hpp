#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "argument_list.hpp"
#include "output.hpp"

/// What all examples that write CSV files share: arguments, tables and pictures.
namespace examples {

/// Arguments that they have in common; see add_common_arguments().
struct CommonSettings {
  std::filesystem::path out;
  bool quick = false;
  bool no_pictures = false;
  bool force = false;
  std::shared_ptr<Output> output;  ///< Once run_example() has begun.

  int digits = 8;  ///< Of numbers in tables.
  std::string picture_size{"1100,560"};
  std::string picture_settings{"set grid\n"};  ///< gnuplot commands that every picture begins with.

  /// The number for the published size, or for --quick.
  template <typename T>
  T size(T published, T quick_size) const {
    return quick ? quick_size : published;
  }
};

/// --quick, --out, --force, --no-plots.
void add_common_arguments(ArgumentList& arguments, CommonSettings& settings,
                          const std::string& default_folder);

/// Parses the arguments, makes the output folder, runs `body` and says how long it took. Returns the exit
/// status: what `body` returns, or 1 with a message after an exception.
int run_example(ArgumentList& arguments, int argc, char** argv, CommonSettings& settings,
                const std::function<int()>& body);

/// The same for an example with the common arguments, those that `add(arguments, settings)` adds, and the folder
/// NAME-results.
template <typename Settings, typename Add, typename Body>
int run_figure(int argc, char** argv, Settings settings, const Add& add, const Body& body) {
  ArgumentList arguments;
  add_common_arguments(arguments, settings, std::filesystem::path(argv[0]).filename().string() + "-results");
  add(arguments, settings);
  return run_example(arguments, argc, argv, settings, [&] {
    body(std::as_const(settings));
    return 0;
  });
}

/// A CSV file in the output folder.
class Csv : public CsvFile {
 public:
  Csv(const CommonSettings& settings, const std::string& name, const std::string& header)
      : CsvFile(*settings.output, name, header, settings.digits) {}
};

/// Draws NAME.png with gnuplot from commands that read the CSV files of the output folder. `size` in pixels, if not
/// that of the settings.
void plot(const CommonSettings& settings, const std::string& name, const std::string& commands,
          const std::string& size = "");

/// Seconds since it was made.
class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace examples
