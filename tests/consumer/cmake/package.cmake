message(FATAL_ERROR "the library included a file of the project that uses it")
