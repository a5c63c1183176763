#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace widelimit::store {

/// The SHA-256 of bytes that come piece by piece (libcrypto's).
class Sha256 {
 public:
  Sha256();

  void add(const void* bytes, std::size_t count);

  /// 64 hexadecimal digits. Once.
  [[nodiscard]] std::string digest();

 private:
  struct Deleter {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Deleter> context_;
};

/// Of these bytes.
[[nodiscard]] std::string sha256_of(const void* bytes, std::size_t count);

}  // namespace widelimit::store
