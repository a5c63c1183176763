#include "files/process_identity.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "widelimit/files/replacing_file.hpp"

using namespace widelimit::files;

TEST_CASE("process identities: texts and back, and texts that are none") {
  const ProcessIdentity own = this_process();
  CHECK(own == this_process());
  CHECK(ProcessIdentity::parse(own.text()) == own);
  CHECK(own.process == getpid());
  for (const char* text :
       {"", "a-b-c-d", "node-00000000-0-00000000", "node-0000000-7-00000000", "-00000000-7-00000000",
        "node-00000000-7-00000000-1", "node-00000000-7x-00000000", "node-0000000G-7-00000000"})
    CHECK_FALSE(ProcessIdentity::parse(text));
}

TEST_CASE("process identities: those of this machine that run no more have ended, of others nobody knows") {
  const ProcessIdentity own = this_process();
  CHECK_FALSE(has_ended(own));
  const pid_t child = fork();
  if (child == 0) {
    CHECK(this_process() != own);
    for (;;) pause();
  }
  ProcessIdentity other = own;
  other.process = child;
  CHECK_FALSE(has_ended(other));
  kill(child, SIGKILL);
  siginfo_t state{};
  waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOWAIT);
  CHECK(has_ended(other));  // Though nobody has waited for it.
  waitpid(child, nullptr, 0);
  CHECK(has_ended(other));
  other.host = "elsewhere";
  CHECK_FALSE(has_ended(other));
  ProcessIdentity container = own;
  container.process = child;
  container.space = "00000000";
  CHECK_FALSE(has_ended(container));
}

TEST_CASE("temporary names: no two are alike, and the target is found in them") {
  const auto first = temporary_name("a/b.csv"), second = temporary_name("a/b.csv");
  CHECK(first != second);
  CHECK(first.filename().string().starts_with("b.csv." + this_process().text() + "-"));
  CHECK(target_of_writer(first.filename().string()) == "b.csv");
  CHECK(target_of_writer("b.csv.17-0.part") == "b.csv");
  CHECK_FALSE(target_of_dead_writer(first.filename().string()));
  for (const char* name :
       {"b.csv", "b.csv.part", ".17-0.part", "b.csv.17-.part", "b.csv.x-0.part", "b.csv.-0.part"})
    CHECK_FALSE(target_of_writer(name));
}
