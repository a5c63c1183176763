#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

/// Where examples write: CSV files and pictures, by the rules of the program's output folders
/// (docs/output.md).
namespace examples {

class CsvFile;

/// The folder of one run of an example.
class Output {
 public:
  struct Options {
    std::filesystem::path folder;
    bool pictures = true;
    bool force = false;  ///< Write into a folder with files that no run wrote.
  };

  /// Makes the folder. Throws as OutputFolder.
  Output(int argc, const char* const* argv, const Options& options);
  ~Output();

  /// Draws NAME.png from gnuplot commands that read the CSV files of the folder, and leaves NAME.gp behind,
  /// which draws it again. `terminal` is the terminal's type and options. Without gnuplot one warning.
  void plot(const std::string& name, const std::string& terminal, const std::string& commands);

 private:
  friend class CsvFile;
  void publish(const std::string& name, const std::string& text);

  struct Run;
  std::unique_ptr<Run> run_;
  std::vector<CsvFile*> tables_;  ///< Those that are still being written.
};

/// A CSV file in the making. The file shows the rows so far, so that a long run can be watched: whole ones,
/// at most a second old.
class CsvFile {
 public:
  CsvFile(Output& output, const std::string& name, const std::string& header, int precision = 8);
  /// Writes the rest; throws DataError.
  ~CsvFile() noexcept(false);
  CsvFile(const CsvFile&) = delete;
  CsvFile& operator=(const CsvFile&) = delete;

  template <typename... Values>
  void row(const Values&... values) {
    const char* separator = "";
    ((text_ << separator << values, separator = ","), ...);
    end_row();
  }

  /// For rows that are written bit by bit; end_row() ends them.
  std::ostream& stream() { return text_; }
  void end_row();

  /// An empty line: gnuplot's end of a curve.
  void gap() { end_row(); }

  /// Writes what there is.
  void publish();

 private:
  using Clock = std::chrono::steady_clock;

  Output& output_;
  std::string name_;
  std::ostringstream text_;
  Clock::time_point published_;
  int exceptions_;
};

}  // namespace examples
