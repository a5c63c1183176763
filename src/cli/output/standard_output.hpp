#pragma once

namespace widelimit::cli {

/// Writes out what was printed so far. Throws Error if standard output did not take it, or something before.
void flush_standard_output();

}  // namespace widelimit::cli
