# SPDX-License-Identifier: Apache-2.0
# What is injected into a guarded program: src/guard/runtime, as a library that
# depends on the C library alone (no exceptions, no C++ runtime of its own that
# the target could see), and once more as a static one for its tests.
file(GLOB guard_runtime_sources CONFIGURE_DEPENDS src/guard/runtime/*.cc src/guard/runtime/*.S)
list(FILTER guard_runtime_sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
if(guard_runtime_sources)
  enable_language(ASM)
  set(guard_runtime_flags -fno-exceptions -fno-rtti -fno-threadsafe-statics -fPIC
      -fvisibility=hidden -ftls-model=initial-exec -fno-stack-protector)
  # What runs at patched entries touches no vector register, and saves by itself
  # what its trampoline does not (src/guard/runtime/hook.h).
  set(guard_entry_flags -mgeneral-regs-only)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    list(APPEND guard_entry_flags -ffixed-x18)
    foreach(number RANGE 8 15)
      list(APPEND guard_entry_flags -fcall-saved-x${number})
    endforeach()
  endif()
  set_source_files_properties(src/guard/runtime/training_entry.cc src/guard/runtime/guard_hit.cc
                              PROPERTIES COMPILE_OPTIONS "${guard_entry_flags};-O2;-fno-sanitize=all")
  # Where the processor has no counter that can be trusted they ask this for the time (x86-64).
  set_source_files_properties(src/guard/runtime/unit_clock.cc
                              PROPERTIES COMPILE_OPTIONS "-mgeneral-regs-only;-fno-sanitize=all")
  set_source_files_properties(src/guard/runtime/memory_functions.cc PROPERTIES
    COMPILE_OPTIONS "-fno-builtin;-fno-sanitize=all;$<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>")
  set(guard_tested_sources ${guard_runtime_sources})
  list(FILTER guard_tested_sources EXCLUDE REGEX "/(memory_functions|library_entry)\\.cc$")
  add_library(culprit_guard_runtime STATIC ${guard_tested_sources})
  set_target_properties(culprit_guard_runtime PROPERTIES UNITY_BUILD OFF)
  target_compile_options(culprit_guard_runtime PRIVATE ${guard_runtime_flags})
  add_library(culprit_guard_library MODULE ${guard_runtime_sources})
  # In somebody else's program: no sanitizer, and never unloaded again, because
  # its trampolines stay.
  target_compile_options(culprit_guard_library PRIVATE ${guard_runtime_flags} -fno-sanitize=all)
  target_link_options(culprit_guard_library PRIVATE -fno-sanitize=all -static-libgcc -static-libstdc++
                      -Wl,-z,now -Wl,-z,nodelete -Wl,--exclude-libs,ALL)
  # What every wait passes through is one unit, so that it is inlined.
  foreach(name module_changes session thread_state unit_tracker wait_calls wait_frame wait_question)
    set_source_files_properties(src/guard/runtime/${name}.cc PROPERTIES UNITY_GROUP wait)
  endforeach()
  set_target_properties(culprit_guard_library PROPERTIES OUTPUT_NAME culprit_guard UNITY_BUILD ON
                        UNITY_BUILD_MODE GROUP LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  cmake_language(DEFER CALL add_dependencies culprit culprit_guard_library)
  install(TARGETS culprit_guard_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/culprit)
endif()
