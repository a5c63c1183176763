# What is made of the program itself: completion of its commands in the shells, and manual pages where Python is found.
set(completion_folder ${PROJECT_BINARY_DIR}/completion)
set(completions)
foreach(shell_and_file bash/widelimit zsh/_widelimit fish/widelimit.fish)
  cmake_path(GET shell_and_file PARENT_PATH shell)
  add_custom_command(OUTPUT ${completion_folder}/${shell_and_file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${completion_folder}/${shell}
    COMMAND widelimit_program completion ${shell} > ${completion_folder}/${shell_and_file}
    DEPENDS widelimit_program VERBATIM)
  list(APPEND completions ${completion_folder}/${shell_and_file})
endforeach()
add_custom_target(widelimit_completion ALL DEPENDS ${completions})
add_dependencies(widelimit_installed widelimit_completion)
install(FILES ${completion_folder}/bash/widelimit
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${completion_folder}/zsh/_widelimit
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(FILES ${completion_folder}/fish/widelimit.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)

find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_Interpreter_FOUND)
  set(manual_folder ${PROJECT_BINARY_DIR}/manual)
  add_custom_command(OUTPUT ${manual_folder}/widelimit.1
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/make-manual.py $<TARGET_FILE:widelimit_program> ${manual_folder}
    DEPENDS widelimit_program ${PROJECT_SOURCE_DIR}/scripts/make-manual.py VERBATIM)
  add_custom_target(widelimit_manual ALL DEPENDS ${manual_folder}/widelimit.1)
  add_dependencies(widelimit_installed widelimit_manual)
  install(DIRECTORY ${manual_folder}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program
          FILES_MATCHING PATTERN "*.1")
endif()
