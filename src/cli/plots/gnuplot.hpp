#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>

#include "widelimit/files/replacing_file.hpp"
#include "widelimit/results/picture.hpp"

namespace widelimit::cli {

using results::gnuplot_quoted;
using results::gnuplot_quoted_tic;

/// What pictures are files of.
enum class PictureFormat { png, svg, pdf };

/// By the ending of a file's name: .png, .svg or .pdf. ArgumentError for others.
[[nodiscard]] PictureFormat picture_format(const std::filesystem::path& file);

/// A script that begins with the terminal of a PNG, for another format. A hundred pixels are an inch of a PDF.
[[nodiscard]] std::string in_format(const std::string& script, PictureFormat format);

/// Draws the pictures of one run. A picture that cannot be drawn costs one warning on standard error, which
/// ends the drawing; never the run, whose numbers are worth more.
class Gnuplot {
 public:
  /// Waiting for gnuplot ends with Cancelled once a stop is asked for.
  explicit Gnuplot(std::stop_token stop) : stop_{std::move(stop)} {}

  /// Runs a script whose terminal writes to standard output (no `set output`), and puts that into `picture`,
  /// which the caller commits. False where nothing was drawn. `name` is for the warning.
  [[nodiscard]] bool draw(const std::string& script, files::ReplacingFile& picture, std::string_view name);

 private:
  std::stop_token stop_;
  bool has_failed_ = false;
};

}  // namespace widelimit::cli
