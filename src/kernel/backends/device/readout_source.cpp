#include "kernel/backends/device/readout_source.hpp"

#include <fmt/format.h>

#include "kernel/backends/device/cl/matrix_source.hpp"
#include "kernel/backends/device/cl/readout_source.hpp"
#include "kernel/backends/device/matrix_source.hpp"
#include "kernel/backends/device/source_beginning.hpp"

namespace widelimit {
namespace {

class TermsWriter {
 public:
  TermsWriter(const TermsSource& source, const ChainSourceOptions& options)
      : source_{source}, options_{options} {}

  std::string terms() {
    for (std::size_t i = 0; i < source_.chosen.size(); ++i) write(i);
    return std::move(text_);
  }

 private:
  [[nodiscard]] bool with_ntk() const { return options_.kernel == Kernel::with_ntk; }
  [[nodiscard]] std::string literal(double number) const { return literal_of(number, options_.precision); }

  void write(std::size_t i) {
    const std::size_t number = source_.chosen[i];
    const ReadoutTerm &left = source_.left.terms[number], &right = source_.right.terms[number];
    text_ += left.form == WeightsForm::diagonal ? "if (a == b) {\n" : "{\n";
    text_ += fmt::format("const real w = {};\n", weight(left, right));
    switch (left.of) {
      case ReadoutTerm::Of::covariance:
        add("k", fmt::format("w * ({} * k)", literal(left.in_nngp)));
        if (with_ntk())
          add("t", fmt::format("w * fma({}, t, {} * k)", literal(left.ntk_in_ntk), literal(left.in_ntk)));
        break;
      case ReadoutTerm::Of::ones:
        add_constant(left, "w");
        break;
      case ReadoutTerm::Of::positions:
        add_constant(left, fmt::format("w * table[{} + a * COLUMNS + b]", source_.tables[i]));
        break;
    }
    text_ += "}\n";
  }

  [[nodiscard]] std::string weight(const ReadoutTerm& left, const ReadoutTerm& right) const {
    const auto of = [](Index state, const char* side, Index place, const char* position) {
      return fmt::format("{}[{} + {}]", side, state + place, position);
    };
    if (left.form != WeightsForm::full)
      return of(source_.left_state, "left", left.vector, "a") + " * " +
             of(source_.right_state, "right", right.vector, "b");
    std::string text = fmt::format("numbers[{} + a * COLUMNS + b]", source_.product);
    for (std::size_t i = 0; i < left.scales.size(); ++i)
      text += " * (" + of(source_.left_state, "left", left.scales[i], "a") + " * " +
              of(source_.right_state, "right", right.scales[i], "b") + ")";
    return text;
  }

  void add_constant(const ReadoutTerm& term, const std::string& part) {
    add("k", fmt::format("{} * ({})", literal(term.in_nngp), part));
    if (with_ntk()) add("t", fmt::format("{} * ({})", literal(term.in_ntk), part));
  }
  void add(const char* kernel, const std::string& part) {
    text_ += fmt::format("add(&sum_{0}, &low_{0}, {1});\n", kernel, part);
  }

  const TermsSource& source_;
  const ChainSourceOptions& options_;
  std::string text_;
};

}  // namespace

std::string readout_source(const TermsSource& terms, const ChainSourceOptions& options) {
  std::string text = source_beginning(options.precision) + around_function + kept_planes_functions;
  text += fmt::format(
      "#define KERNELS {}\n#define GROUP {}\n#define COUNT {}\n#define FIRST {}\n#define COLUMNS {}\n",
      options.kernel == Kernel::with_ntk ? 2 : 1, options.group, terms.planes.size(), terms.planes.first,
      product(terms.planes.right));
  text += run_kernel_head(options) + entries_loop;
  text += TermsWriter(terms, options).terms();
  return text + "}\n" + sums_of_group(options.group) + "}\n";
}

}  // namespace widelimit
