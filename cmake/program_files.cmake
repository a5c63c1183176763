# What is made of the programs themselves: completion of commands in the shells, and manual pages where Python is found.
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
  foreach(component program mpi)
    if(NOT TARGET widelimit_${component})
      continue()
    endif()
    set(manual_folder ${PROJECT_BINARY_DIR}/manual/${component})
    get_target_property(name widelimit_${component} OUTPUT_NAME)
    add_custom_command(OUTPUT ${manual_folder}/${name}.1
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/make-manual.py
              $<TARGET_FILE:widelimit_${component}> ${manual_folder}
      DEPENDS widelimit_${component} ${PROJECT_SOURCE_DIR}/scripts/make-manual.py VERBATIM)
    add_custom_target(widelimit_manual_of_${component} ALL DEPENDS ${manual_folder}/${name}.1)
    add_dependencies(widelimit_installed widelimit_manual_of_${component})
    install(DIRECTORY ${manual_folder}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component}
            FILES_MATCHING PATTERN "*.1")
  endforeach()
endif()
