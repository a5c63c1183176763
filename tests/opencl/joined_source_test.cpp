#include "opencl/joined_source.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kernel/backends/device/device_choice.hpp"
#include "opencl/session.hpp"
#include "support/error_message.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit::testing::joined_source_test {
namespace {

using Names = std::set<std::string>;

/// Writes `factor` times a number that `body` makes of its place.
std::string source_of(const std::string& factor, const std::string& body) {
  return "typedef int whole;\n#define FACTOR " + factor + R"(
typedef struct {
  whole first, second;
} both;
constant whole steps[] = {3, 4, };
inline whole made(whole i) {
  const both of = {i, steps[i]};
  )" + body +
         "\n}\n__attribute__((reqd_work_group_size(2, 1, 1)))\nkernel void run(global whole* to) {\n" +
         "  to[get_local_id(0)] = FACTOR * made((whole)get_local_id(0));\n}";
}

std::vector<int> run(opencl::Session& session, const std::string& source) {
  const opencl::Buffer to = session.buffer(2 * sizeof(int));
  opencl::Kernel kernel = session.kernel(source, "run");
  kernel.set(0, to);
  opencl::Queue queue = session.queue();
  queue.run(kernel, 1, 2);
  std::vector<int> numbers(2);
  queue.read(to, numbers.data(), to.bytes());
  return numbers;
}

TEST_CASE("what a source declares outside of functions") {
  const opencl::SourceNames names = opencl::names_of(source_of("2", "return of.second;"));
  CHECK(names.declared == Names{"whole", "both", "steps", "made", "run"});
  CHECK(names.macros == Names{"FACTOR"});
  const opencl::SourceNames more = opencl::names_of(R"(// int of_comments(int x);
#pragma OPENCL FP_CONTRACT OFF
#define LONG(x) \
  int of_macros = x;
/* int of_comments = 1; */
int declared(int x);
constant float number = 1e5f * (2 + 3);
struct pair { int a, b; };
kernel void __attribute__((vec_type_hint(int))) last(global int* x) { if (x[0] > 0) { int inner = 1; x[1] = inner; } }
)");
  CHECK(more.declared == Names{"declared", "number", "pair", "last"});
  CHECK(more.macros == Names{"LONG"});
}

TEST_CASE("sources with the same names are one program, and each computes what is its own") {
  const auto session = open_device("pocl", "tests");
  const std::vector<std::string> sources{source_of("2", "return of.second;"),
                                         source_of("5", "return of.first + 1;"),
                                         source_of("2", "return of.second;")};
  const std::size_t before = session->programs_built();
  session->build_together(sources);
  CHECK(session->programs_built() == before + 1);
  session->build_together(sources);
  CHECK(run(*session, sources[0]) == std::vector{6, 8});
  CHECK(run(*session, sources[1]) == std::vector{5, 10});
  CHECK(session->programs_built() == before + 1);
}

TEST_CASE("of sources that are refused together, the others are built, and the error is of the one") {
  const auto session = open_device("pocl", "tests");
  const std::vector<std::string> sources{source_of("7", "return of.second;"),
                                         source_of("7", "return of.third;")};
  session->build_together(sources);
  CHECK(run(*session, sources[0]) == std::vector{21, 28});
  const std::string message =
      error_message<DeviceError>([&] { return session->kernel(sources[1], "run").get(); });
  CHECK(message.find("third") != std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing::joined_source_test
