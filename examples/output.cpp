#include "output.hpp"

#include <algorithm>
#include <exception>

#include "cli/run_context.hpp"

namespace examples {

using widelimit::cli::gnuplot_quoted;
using widelimit::cli::OtherFiles;

Output::Output(int argc, const char* const* argv, const Options& options)
    : folder_{options.folder, {}, options.force ? OtherFiles::kept : OtherFiles::refused},
      record_{widelimit::cli::shell_command_line(argc, argv), {}, {}},
      gnuplot_{{}},
      path_{options.folder.string()},
      pictures_{options.pictures} {}

void Output::publish(const std::string& name, const std::string& text) {
  folder_.write(name, text);
  folder_.commit(record_);
}

void Output::plot(const std::string& name, const std::string& terminal, const std::string& commands) {
  if (!pictures_) return;
  for (CsvFile* table : tables_) table->publish();
  const std::string head = "set terminal " + terminal + "\nset datafile separator ','\n";
  const std::string script = name + ".gp", picture = name + ".png";
  for (const std::string& file : {script, picture}) folder_.announce(file);
  publish(script, head + "set output " + gnuplot_quoted(picture) + "\n" + commands + "\n");
  folder_.draw(picture, "cd " + gnuplot_quoted(path_) + "\n" + head + commands + "\n", gnuplot_);
  folder_.commit(record_);
}

CsvFile::CsvFile(Output& output, const std::string& name, const std::string& header, int precision)
    : output_{output}, name_{name + ".csv"}, exceptions_{std::uncaught_exceptions()} {
  output_.folder_.announce(name_);
  text_.precision(precision);
  text_ << header << '\n';
  publish();
  output_.tables_.push_back(this);
}

CsvFile::~CsvFile() noexcept(false) {
  std::erase(output_.tables_, this);
  if (std::uncaught_exceptions() == exceptions_) publish();
}

void CsvFile::end_row() {
  text_ << '\n';
  if (Clock::now() - published_ > std::chrono::seconds(1)) publish();
}

void CsvFile::publish() {
  output_.publish(name_, text_.str());
  published_ = Clock::now();
}

}  // namespace examples
