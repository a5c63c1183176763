#include "memory_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace widelimit::fuzz {

MemoryFile::MemoryFile(Bytes bytes) : descriptor_{memfd_create("fuzz", 0)} {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) throw std::system_error(errno, std::generic_category(), "write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

MemoryFile::~MemoryFile() { close(descriptor_); }

Bytes take(Bytes& bytes, std::size_t count) {
  const Bytes first = bytes.first(std::min(count, bytes.size()));
  bytes = bytes.subspan(first.size());
  return first;
}

}  // namespace widelimit::fuzz
