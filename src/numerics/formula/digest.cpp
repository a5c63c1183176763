#include <fmt/format.h>

#include <cstdint>

#include "numerics/formula/text_digest.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {
namespace {

/// Fowler, Noll and Vo's hash, version 1a, of 64 bits.
std::uint64_t hash_of(const std::string& text, std::uint64_t start) {
  std::uint64_t hash = start;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return hash;
}

}  // namespace

std::string text_of(const RowFormula& formula) {
  Statements statements(Precision::wide, "v");
  const std::vector<Symbol> left = formula.prepare(Symbol(statements, "p")),
                            right = formula.prepare(Symbol(statements, "q"));
  const Mapped<Symbol> mapped = formula.apply(left, right, Symbol(statements, "c"));
  return fmt::format("{}{}\n{}\n", statements.text(), mapped.value.written(statements),
                     mapped.factor.written(statements));
}

std::string digest_of(const RowFormula& formula) { return digest_of(text_of(formula)); }

std::string digest_of(const std::string& text) {
  return fmt::format("{:016x}{:016x}", hash_of(text, 0xcbf29ce484222325U),
                     hash_of(text, 0x9e3779b97f4a7c15U));
}

}  // namespace widelimit::numerics::formula
