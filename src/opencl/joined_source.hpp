#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

namespace widelimit::opencl {

/// What a source declares outside of functions.
struct SourceNames {
  std::set<std::string> declared;  ///< Functions, kernels, constants and types.
  std::set<std::string> macros;
};

/// Of a source in OpenCL C with one name in each declaration.
SourceNames names_of(const std::string& source);

/// The name of a kernel, or of anything else that is declared, of the source of this number in joined_source().
std::string joined_name(const std::string& name, std::size_t number);

/// One source of several, in which the names of each are its own: drivers read their own declarations, which are
/// longer than any of ours, once for all of them.
std::string joined_source(std::span<const std::string> sources);

}  // namespace widelimit::opencl
