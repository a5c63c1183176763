// Which error of several tasks is reported.
#include "kernel/run/first_error.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

namespace widelimit::testing::first_error_test {
namespace {

std::string reported(const FirstError& errors) {
  try {
    errors.rethrow();
  } catch (const NumericalError& error) {
    return error.what();
  }
  return "none";
}

TEST_CASE("FirstError: that of the first task, whatever fails before it in time") {
  FirstError errors;
  CHECK(reported(errors) == "none");
  std::vector<Index> ran;
  for (const Index task : {7, 2, 9, 3, 1})
    errors.run(task, [&] {
      ran.push_back(task);
      if (task != 1) throw NumericalError(std::to_string(task));
    });
  CHECK(reported(errors) == "2");
  // Tasks after one that failed are left out.
  CHECK(ran == std::vector<Index>{7, 2, 1});
}

TEST_CASE("FirstError: other errors pass at once") {
  FirstError errors;
  CHECK_THROWS_AS(errors.run(0, [] { throw ArgumentError("of the caller"); }), ArgumentError);
  CHECK(reported(errors) == "none");
}

TEST_CASE("FirstError: the same error, however threads race") {
  for (int round = 0; round < 50; ++round) {
    FirstError errors;
    std::vector<std::thread> threads;
    for (Index task = 8; task-- > 0;)
      threads.emplace_back([&errors, task] {
        errors.run(task, [task] {
          if (task >= 3) throw NumericalError(std::to_string(task));
        });
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(reported(errors) == "3");
  }
}

}  // namespace
}  // namespace widelimit::testing::first_error_test
