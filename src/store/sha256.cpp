#include "widelimit/store/sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace widelimit::store {
namespace {

void require_success(int code) {
  if (code != 1) throw std::runtime_error("SHA-256: libcrypto failed");
}

}  // namespace

void Sha256::Deleter::operator()(void* context) const { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context)); }

Sha256::Sha256() : context_{EVP_MD_CTX_new()} {
  require_success(context_ == nullptr ? 0 : 1);
  require_success(EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_.get()), EVP_sha256(), nullptr));
}

void Sha256::add(const void* bytes, std::size_t count) {
  require_success(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes, count));
}

std::string Sha256::digest() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int count = 0;
  require_success(EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), &count));
  std::string text;
  for (unsigned int i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string sha256_of(const void* bytes, std::size_t count) {
  Sha256 sum;
  sum.add(bytes, count);
  return sum.digest();
}

}  // namespace widelimit::store
