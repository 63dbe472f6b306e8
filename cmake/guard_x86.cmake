# SPDX-License-Identifier: Apache-2.0
# The runtime of x86-64, compiled by a cross compiler with tests of its patcher and
# run in an emulator; then the whole of it in programs (tests/guard_runtime_test.cc, guard_session_test.cc):
# what guards do to x86-64 programs is tested on other machines too. And what this
# machine's processor lacks is tested in an emulator that has it.
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
    arm64_trampoline x86_instruction x86_relocation x86_guard_code x86_trampoline other_threads
    session_files cross_jumps find_vector_state)
set(x86_tests patcher_test patcher_threads_test function_starts_test vector_state_test)
foreach(name ${x86_runtime} ${x86_tests})
  list(APPEND x86_sources ${CMAKE_SOURCE_DIR}/src/guard/runtime/${name}.cc)
endforeach()
list(APPEND x86_sources ${CMAKE_SOURCE_DIR}/src/guard/runtime/vector_state.S)
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

# The library that is injected, and programs to inject it into.
set(x86_flags -std=c++20 -O2 ${guard_runtime_flags} -Wall -Wextra -Wshadow -I${CMAKE_SOURCE_DIR}/src)
foreach(source ${guard_runtime_sources})
  get_filename_component(name ${source} NAME)
  set(object ${x86_folder}/library_${name}.o)
  set(more)
  if(name MATCHES "^(training_entry|guard_hit)")
    set(more -mgeneral-regs-only)
  elseif(name MATCHES "^memory_functions")
    set(more -fno-builtin -fno-tree-loop-distribute-patterns)
  endif()
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CULPRIT_X86_COMPILER} ${x86_flags} ${more}
            -MD -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source}
    DEPFILE ${object}.d
    VERBATIM)
  list(APPEND x86_library_objects ${object})
endforeach()
set(x86_programs ${CMAKE_SOURCE_DIR}/tests/programs)
add_custom_command(
  OUTPUT ${x86_folder}/libculprit_guard.so
  COMMAND ${CULPRIT_X86_COMPILER} -shared ${x86_library_objects} -o ${x86_folder}/libculprit_guard.so
          -static-libgcc -static-libstdc++ -Wl,-z,now -Wl,-z,nodelete -Wl,--exclude-libs,ALL
  DEPENDS ${x86_library_objects}
  COMMENT "Linking the x86-64 guard library"
  VERBATIM)
add_custom_command(
  OUTPUT ${x86_folder}/guard_habits ${x86_folder}/late_module.so
  COMMAND ${CULPRIT_X86_COMPILER} -std=c++20 -O1 -g -fno-omit-frame-pointer
          ${x86_programs}/guard_habits.cc -o ${x86_folder}/guard_habits -lpthread -ldl
  COMMAND ${CULPRIT_X86_COMPILER} -std=c++20 -O1 -g -shared -fPIC ${x86_programs}/late_module.cc
          -o ${x86_folder}/late_module.so
  DEPENDS ${x86_programs}/guard_habits.cc ${x86_programs}/late_module.cc
  VERBATIM)
add_custom_target(guard_x86_programs ALL DEPENDS ${x86_folder}/libculprit_guard.so
                  ${x86_folder}/guard_habits ${x86_folder}/late_module.so)
# Not SlowOnes*: left out when x86-64 looked at the clock more seldom than arm64, and not tried since.
add_test(NAME GuardX86.ProgramsUnderEmulation
         COMMAND end_to_end_tests
                 "--gtest_filter=Habits/GuardHabit.*:GuardTraining.*:GuardUnits.*:GuardSession.ADamaged*:GuardSession.AProgramThat*:GuardSession.PlansChange*-GuardUnits.SlowOnes*")
set_tests_properties(GuardX86.ProgramsUnderEmulation PROPERTIES TIMEOUT 900 ENVIRONMENT
  "CULPRIT_GUARD_X86=${x86_folder};CULPRIT_GUARD_EMULATOR=${CULPRIT_QEMU_X86} -L /usr/x86_64-linux-gnu")

find_program(CULPRIT_QEMU_ARM64 qemu-aarch64)
if(CULPRIT_QEMU_ARM64 AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  add_test(NAME GuardSve.VectorStateUnderEmulation
           COMMAND ${CULPRIT_QEMU_ARM64} -cpu max $<TARGET_FILE:guard_runtime_tests>
                   --gtest_filter=VectorState.*)
endif()
