# SPDX-License-Identifier: Apache-2.0
# Installation, and a .deb by CPack. Man pages and completions are printed by
# the program itself, so they always fit it.
set(generated ${CMAKE_BINARY_DIR}/generated)
add_custom_command(
  OUTPUT ${generated}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${generated}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}/man
  COMMAND $<TARGET_FILE:culprit> man --into ${generated}/man
  COMMAND $<TARGET_FILE:culprit> completion bash > ${generated}/culprit.bash
  COMMAND $<TARGET_FILE:culprit> completion zsh > ${generated}/_culprit
  COMMAND $<TARGET_FILE:culprit> completion fish > ${generated}/culprit.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${generated}/stamp
  DEPENDS culprit
  COMMENT "Writing man pages and completions"
  VERBATIM)
add_custom_target(generated_files ALL DEPENDS ${generated}/stamp)

install(TARGETS culprit RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${generated}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${generated}/culprit.bash RENAME culprit
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${generated}/_culprit DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${generated}/culprit.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES packaging/culprit-watch@.service DESTINATION lib/systemd/system)
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME culprit)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The culprit authors <maintainers@culprit.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "finds the few behaviours behind most of the delay")
set(CPACK_PACKAGE_DESCRIPTION
"culprit reads thousands of performance traces and answers which few behaviours
cost the most time, over how many users, and why: wait chains across threads,
locks, drivers and disks.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
