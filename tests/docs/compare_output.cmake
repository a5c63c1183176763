# Runs PROGRAM and expects its output as an indented block of PAGE.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
file(READ ${PAGE} page)
string(REGEX REPLACE "\n(.)" "\n    \\1" block "\n${output}")
string(FIND "${page}" "\n${block}" place)
if(output STREQUAL "" OR place EQUAL -1)
  message(FATAL_ERROR "${PAGE} does not show what its program prints:\n${output}")
endif()
