// Which planes may share memory in a backward pass.
#include "kernel/backends/cpu/backward/planes/plane_tape.hpp"

#include <doctest/doctest.h>

#include <set>

#include "kernel/backends/cpu/backward/planes/backward_program.hpp"

namespace widelimit::testing::plane_tape_test {
namespace {

const std::string branches =
    R"([{"layer": "conv", "filter": [3]},
        {"layer": "sum", "branches": [{"layers": []},
                                      {"layers": [{"layer": "relu"}, {"layer": "conv", "filter": [3]}]}]},
        {"layer": "erf"}, {"layer": "conv", "filter": [3]},
        {"layer": "product", "branches": [{"layers": []},
                                          {"layers": [{"layer": "relu"}, {"layer": "conv", "filter": [3]}]}]},
        {"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"}])";

/// What the backward pass through an instruction reads of the forward pass.
std::vector<std::size_t> values_read(const BackwardChain& chain, std::size_t reader) {
  const Operation& operation = chain.node(reader).operation;
  std::vector<std::size_t> read;
  if (std::holds_alternative<RowNode>(operation) || std::holds_alternative<ProductNode>(operation) ||
      (chain.with_scalars && std::holds_alternative<SumNode>(operation)))
    read = chain.chain.instructions[reader].inputs;
  if (chain.with_scalars &&
      (std::holds_alternative<AffineNode>(operation) || std::holds_alternative<ProductNode>(operation)))
    read.push_back(reader);
  return read;
}

TEST_CASE("PlaneTape: nothing is written where the backward pass still reads") {
  for (const bool with_scalars : {false, true}) {
    const EngineProgram engine(branches, {9}, 2);
    const BackwardChain chain = backward_chain(engine, 0, with_scalars);
    PlaneTape<double> tape(chain);
    std::set<const double*> scratch;
    for (std::size_t n = 0; n < 4; ++n) scratch.insert(tape.scratch(n).nngp);
    CHECK(scratch.size() == 4);
    for (std::size_t reader = 0; reader < tape.size(); ++reader)
      for (const std::size_t i : values_read(chain, reader)) {
        const double* place = tape[i].value.nngp;
        CHECK(scratch.count(place) == 0);
        for (std::size_t other = 0; other < tape.size(); ++other) {
          // Later values of the forward pass, and all adjoints.
          if (other > i) CHECK(tape[other].value.nngp != place);
          CHECK(tape[other].adjoint.nngp != place);
        }
      }
  }
}

TEST_CASE(
    "PlaneTape: adjoints that are there at the same time have places of their own, but for row stages") {
  const EngineProgram engine(branches, {9}, 2);
  const BackwardChain chain = backward_chain(engine, 0);
  PlaneTape<double> tape(chain);
  // From the last reader of an instruction on until itself.
  std::vector<std::size_t> last_reader(tape.size());
  for (std::size_t i = 0; i < tape.size(); ++i) {
    last_reader[i] = i;
    for (std::size_t j = i; j < tape.size(); ++j)
      for (const std::size_t input : chain.chain.instructions[j].inputs)
        if (input == i) last_reader[i] = j;
  }
  for (std::size_t i = 0; i < tape.size(); ++i)
    for (std::size_t j = i + 1; j < tape.size(); ++j) {
      if (last_reader[i] < j) continue;
      const bool in_place = last_reader[i] == j && std::holds_alternative<RowNode>(chain.node(j).operation);
      if (!in_place) CHECK(tape[i].adjoint.nngp != tape[j].adjoint.nngp);
    }
}

TEST_CASE("PlaneTape: planes of the root's offset, and the longest of them") {
  const EngineProgram engine(branches, {9}, 2);
  const BackwardChain chain = backward_chain(engine, 0);
  PlaneTape<double> tape(chain);
  for (const PlaneOffsets& offsets : root_offsets(chain, Complements::apart)) {
    tape.place(offsets);
    Index longest = 1;
    for (std::size_t i = 0; i < tape.size(); ++i)
      if (!tape[i].plane.empty()) longest = std::max(longest, tape[i].plane.layout.length);
    CHECK(tape.length() == longest);
    CHECK(tape.root().plane.has_offset({0, 0, offsets[2].offset[0]}));
    CHECK(tape.root().size(3) == static_cast<std::size_t>(3 * tape.root().plane.layout.length));
  }
}

}  // namespace
}  // namespace widelimit::testing::plane_tape_test
