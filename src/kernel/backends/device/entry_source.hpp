#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/backends/device/source_beginning.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/plan/program.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit {

/// Whether EntrySource can write what a stage makes of an entry.
[[nodiscard]] bool has_source(const RowStage& stage);
/// Whether all its auxiliary numbers come from variances of the same position.
[[nodiscard]] bool prepares_entries(const RowStage& stage);

/// Writes what operations that act entry by entry make of one entry, as OpenCL statements: instruction i leaves its
/// kernels in the variables k<i> and t<i>.
class EntrySource {
 public:
  enum class Side { left, right };

  /// What the entry is made of, as the text around it names it.
  struct Names {
    /// The NNGP ('k') or NTK ('t') of an earlier instruction at this entry.
    std::function<std::string(std::size_t instruction, char kernel)> value;
    /// An auxiliary number of a row stage; where inputs are recorded, what it is assigned to.
    std::function<std::string(Side side, NodeId node, std::size_t number)> number;
    /// True where a position of an input meets itself.
    std::string same;
    /// True where the inputs are multiples of each other; empty where nothing asks for it.
    std::string multiples = {};
  };

  /// `records`: inputs meet themselves, and leave the auxiliary numbers that come from their variances.
  EntrySource(const Program& program, numerics::formula::Precision precision, Kernel kernel, bool records,
              Names names)
      : program_{program},
        precision_{precision},
        kernel_{kernel},
        records_{records},
        names_{std::move(names)} {}

  void declare(std::size_t i, const std::string& nngp, const std::string& ntk);
  /// K' = scale K + bias, after the sum over a window; T' = K' + scale T, or scale T without weights.
  void write_affine(std::size_t i, double scale, double bias, bool trained);
  /// A row stage, a sum or a product. `keeps_multiples`: multiples are perfectly correlated before it. True if it asks
  /// for them.
  bool write(std::size_t i, const Instruction& instruction, const Operation& operation,
             bool keeps_multiples = false);
  /// What an AffineEntryStage makes of what instruction i has already.
  void write_affine_stage(std::size_t i, const RowStage& stage);

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  [[nodiscard]] std::string literal(double number) const { return literal_of(number, precision_); }
  /// What was written since the last call.
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  [[nodiscard]] bool with_ntk() const { return kernel_ == Kernel::with_ntk; }
  using Numbers = std::vector<numerics::formula::Symbol>;

  bool write_row(std::size_t i, const Instruction& instruction, const RowStage& stage, bool keeps_multiples);
  void write_sum(std::size_t i, const Instruction& instruction, const std::vector<double>& factors);
  void write_product(std::size_t i, const Instruction& instruction, double factor);
  [[nodiscard]] Numbers numbers(numerics::formula::Statements& in, Side side, NodeId node,
                                const numerics::formula::RowFormula& formula) const;
  /// Of an input with itself, from its variance.
  [[nodiscard]] Numbers recorded(numerics::formula::Statements& in, std::size_t i,
                                 const numerics::formula::RowFormula& formula) const;
  void write_mapped(std::size_t i, const numerics::formula::Statements& in,
                    const numerics::formula::Mapped<numerics::formula::Symbol>& mapped);
  void write_multiples(std::size_t i, const Instruction& instruction,
                       const numerics::formula::RowFormula& formula);

  const Program& program_;
  numerics::formula::Precision precision_;
  Kernel kernel_;
  bool records_;
  Names names_;
  std::string text_;
};

}  // namespace widelimit
