#include "output.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "cli/output/output_folder.hpp"
#include "cli/plots/gnuplot.hpp"
#include "cli/program/run_context.hpp"

namespace examples {

using widelimit::cli::gnuplot_quoted;
using widelimit::cli::OtherFiles;

struct Output::Run {
  widelimit::cli::OutputFolder folder;
  widelimit::cli::RunRecord record;
  widelimit::cli::Gnuplot gnuplot;
  std::string path;
  bool pictures;
};

Output::Output(int argc, const char* const* argv, const Options& options)
    : run_{new Run{
          .folder = {options.folder, {}, options.force ? OtherFiles::kept : OtherFiles::refused},
          .record = {widelimit::cli::shell_command_line(std::vector<std::string>(argv, argv + argc)), {}, {}},
          .gnuplot = widelimit::cli::Gnuplot{{}},
          .path = options.folder.string(),
          .pictures = options.pictures}} {}

Output::~Output() = default;

void Output::publish(const std::string& name, const std::string& text) {
  run_->folder.write(name, text);
  run_->folder.commit(run_->record);
}

void Output::plot(const std::string& name, const std::string& terminal, const std::string& commands) {
  if (!run_->pictures) return;
  for (CsvFile* table : tables_) table->publish();
  const std::string head = "set terminal " + terminal + "\nset datafile separator ','\n";
  const std::string script = name + ".gp", picture = name + ".png";
  for (const std::string& file : {script, picture}) run_->folder.announce(file);
  publish(script, head + "set output " + gnuplot_quoted(picture) + "\n" + commands + "\n");
  run_->folder.draw(picture, "cd " + gnuplot_quoted(run_->path) + "\n" + head + commands + "\n",
                    run_->gnuplot);
  run_->folder.commit(run_->record);
}

CsvFile::CsvFile(Output& output, const std::string& name, const std::string& header, int precision)
    : output_{output}, name_{name + ".csv"}, exceptions_{std::uncaught_exceptions()} {
  output_.run_->folder.announce(name_);
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
