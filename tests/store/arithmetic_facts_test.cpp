#include "widelimit/store/arithmetic_facts.hpp"

#include <cblas.h>
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace widelimit::store {
namespace {

TEST_CASE(
    "arithmetic facts: OpenBLAS's own name for its kernels, and instructions that a build for x86-64 has") {
  const nlohmann::json facts = arithmetic_facts();
  CHECK(facts.size() == 2);
  CHECK(facts.at("blas") == openblas_get_corename());
  const std::string vectors = facts.at("vectors");
  CHECK(vectors.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos);
  CHECK_FALSE(vectors.empty());
}

}  // namespace
}  // namespace widelimit::store
