# SPDX-License-Identifier: Apache-2.0
# The kernel programs of the recorder: compiled by clang for BPF, turned into a
# header by bpftool, embedded in the program. Needs clang, bpftool and libbpf;
# without them culprit is built all the same, and its recorder then uses
# perf_event_open only and says so.
#
# Defines culprit_bpf (an interface library with CULPRIT_HAS_BPF_ENGINE), or
# does nothing.
find_program(CULPRIT_BPF_CLANG NAMES clang-14 clang clang-15 clang-16 clang-17 clang-18 clang-19)
find_program(CULPRIT_BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin /usr/local/sbin)
pkg_check_modules(libbpf IMPORTED_TARGET libbpf>=1.0)

set(bpf_arch "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(bpf_arch arm64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(bpf_arch x86)
endif()

if(CULPRIT_BPF_CLANG AND CULPRIT_BPFTOOL AND libbpf_FOUND AND bpf_arch)
  set(bpf_folder ${CMAKE_BINARY_DIR}/bpf)
  file(MAKE_DIRECTORY ${bpf_folder})
  file(GLOB bpf_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/record/bpf/*.h)
  set(bpf_source ${CMAKE_SOURCE_DIR}/src/record/bpf/engine.bpf.c)
  set(bpf_include_flags ${libbpf_INCLUDE_DIRS})
  list(TRANSFORM bpf_include_flags PREPEND -I)
  # Every architecture is compiled, so that none breaks unseen; one is embedded. Blocks stay
  # where they are written: moved, they close loops in ways that Linux before 6.8 refuses.
  foreach(arch arm64 x86)
    add_custom_command(
      OUTPUT ${bpf_folder}/engine.${arch}.o
      COMMAND ${CULPRIT_BPF_CLANG} -g -O2 -mllvm -disable-block-placement -target bpf
              -D__TARGET_ARCH_${arch} -Wall -Werror ${bpf_include_flags}
              -c ${bpf_source} -o ${bpf_folder}/engine.${arch}.o
      DEPENDS ${bpf_source} ${bpf_headers}
      COMMENT "Compiling the kernel programs for ${arch}"
      VERBATIM)
  endforeach()
  add_custom_command(
    OUTPUT ${bpf_folder}/engine.skel.h
    COMMAND ${CULPRIT_BPFTOOL} gen skeleton ${bpf_folder}/engine.${bpf_arch}.o name engine
            > ${bpf_folder}/engine.skel.h
    DEPENDS ${bpf_folder}/engine.arm64.o ${bpf_folder}/engine.x86.o
    COMMENT "Embedding the kernel programs"
    VERBATIM)
  add_custom_target(culprit_bpf_skeleton DEPENDS ${bpf_folder}/engine.skel.h)
  add_library(culprit_bpf INTERFACE)
  add_dependencies(culprit_bpf culprit_bpf_skeleton)
  target_include_directories(culprit_bpf SYSTEM INTERFACE ${bpf_folder})
  target_compile_definitions(culprit_bpf INTERFACE
    CULPRIT_HAS_BPF_ENGINE CULPRIT_BPF_FOLDER="${bpf_folder}")
  target_link_libraries(culprit_bpf INTERFACE PkgConfig::libbpf)
else()
  message(STATUS "No clang, bpftool or libbpf here: the recorder is built without its BPF engine")
endif()
