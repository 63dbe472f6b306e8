# SPDX-License-Identifier: Apache-2.0
# The patcher of x86-64, compiled by a cross compiler with its tests and run in
# an emulator: what guards do to x86-64 programs is tested on other machines too.
# Needs g++-x86-64-linux-gnu, qemu-user and the sources of GoogleTest (libgtest-dev).
find_program(CULPRIT_X86_COMPILER x86_64-linux-gnu-g++)
find_program(CULPRIT_QEMU_X86 qemu-x86_64)
find_path(CULPRIT_GTEST_SOURCE src/gtest-all.cc PATHS /usr/src/googletest/googletest)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" OR NOT CULPRIT_X86_COMPILER OR
   NOT CULPRIT_QEMU_X86 OR NOT CULPRIT_GTEST_SOURCE)
  return()
endif()

set(x86_folder ${CMAKE_BINARY_DIR}/guard_x86)
file(MAKE_DIRECTORY ${x86_folder})
set(x86_runtime patcher loaded_modules function_starts code_writer near_memory arm64_instruction
    arm64_trampoline x86_instruction x86_relocation x86_trampoline other_threads cross_jumps)
set(x86_tests patcher_test patcher_threads_test function_starts_test)
foreach(name ${x86_runtime} ${x86_tests})
  list(APPEND x86_sources ${CMAKE_SOURCE_DIR}/src/guard/runtime/${name}.cc)
endforeach()
list(APPEND x86_sources ${CULPRIT_GTEST_SOURCE}/src/gtest-all.cc
     ${CULPRIT_GTEST_SOURCE}/src/gtest_main.cc)
foreach(source ${x86_sources})
  get_filename_component(name ${source} NAME_WE)
  set(object ${x86_folder}/${name}.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CULPRIT_X86_COMPILER} -std=c++20 -O2 -fPIC
            -ftls-model=initial-exec -Wall -Wextra -Wshadow -I${CMAKE_SOURCE_DIR}/src
            -I${CULPRIT_GTEST_SOURCE} -I${CULPRIT_GTEST_SOURCE}/include
            -MD -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source}
    DEPFILE ${object}.d
    VERBATIM)
  list(APPEND x86_objects ${object})
endforeach()
add_custom_command(
  OUTPUT ${x86_folder}/guard_x86_tests
  COMMAND ${CULPRIT_X86_COMPILER} ${x86_objects} -lpthread -o ${x86_folder}/guard_x86_tests
  DEPENDS ${x86_objects}
  COMMENT "Linking the x86-64 tests of the patcher"
  VERBATIM)
add_custom_target(guard_x86_tests ALL DEPENDS ${x86_folder}/guard_x86_tests)
add_test(NAME GuardX86.PatcherUnderEmulation
         COMMAND ${CULPRIT_QEMU_X86} -L /usr/x86_64-linux-gnu ${x86_folder}/guard_x86_tests)
set_tests_properties(GuardX86.PatcherUnderEmulation PROPERTIES TIMEOUT 600)
