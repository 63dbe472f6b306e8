// SPDX-License-Identifier: Apache-2.0
#include "import/etl_image_file.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/test_folder.h"
#include "import/etl_builder.h"
#include "import/etl_image_builder.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/stored_bytes.h"

namespace culprit::import_::TEST_FILE {
namespace {

TEST(EtlImageFile, FunctionsHaveTheNamesOfExportsAtTheirStart) {
  const auto file = EtlImageFile::Parse(SmallEtlImage());
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->debug_id(), "51e2934144ba15628ba5a31be2dae7dc2");
  EXPECT_EQ(file->image_bytes(), 0x2000u);
  EXPECT_EQ(file->Find(0x1100)->name, "Open");
  EXPECT_EQ(file->Find(0x113f)->name, "Open");
  EXPECT_EQ(file->Find(0x1150)->start, 0x1140u);
  EXPECT_EQ(file->Find(0x1150)->name, "");
  EXPECT_FALSE(file->Find(0x1180).has_value());
  EXPECT_FALSE(file->Find(0x10ff).has_value());
}

TEST(EtlImageFile, OtherMachinesHaveAnIdOnly) {
  const auto file = EtlImageFile::Parse(SmallEtlImage(0x14c));
  ASSERT_TRUE(file.has_value());
  EXPECT_FALSE(file->debug_id().empty());
  EXPECT_FALSE(file->Find(0x1100).has_value());
}

TEST(EtlImageFile, EveryCutAndChangedByteIsSafe) {
  const std::string bytes = SmallEtlImage();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto file = EtlImageFile::Parse(bytes.substr(0, size));
    if (file) (void)file->Find(0x1100);
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = '\xff';
    const auto file = EtlImageFile::Parse(changed);
    if (file) (void)file->Find(0x1100);
  }
  EXPECT_FALSE(EtlImageFile::Parse("\x7f"
                                   "ELF")
                   .has_value());
}

TEST(EtlImageFile, PathsOfWindowsAreFoundWhateverTheirForm) {
  const TestFolder root;
  std::filesystem::create_directories(root / "Windows/System32");
  const std::string file = root.Write("Windows/System32/Ntdll.dll", "x");
  for (const char* path : {"\\SystemRoot\\system32\\ntdll.dll", "C:\\WINDOWS\\System32\\NTDLL.DLL",
                           "\\Device\\HarddiskVolume2\\Windows\\System32\\ntdll.dll",
                           "\\??\\C:\\Windows\\System32\\ntdll.dll"}) {
    EXPECT_EQ(FindImageFile(root.path(), path), file) << path;
  }
  EXPECT_EQ(FindImageFile(root.path(), "C:\\Windows\\System32"), "");
  EXPECT_EQ(FindImageFile(root.path(), "C:\\..\\Windows\\System32\\ntdll.dll"), "");
  EXPECT_EQ(FindImageFile(root.path(), ""), "");
}

// A trace with and without the debug id of its image, and one of another build.
TEST(EtlImageFile, NamesFramesOfTheSameBuildOnly) {
  const TestFolder root;
  root.Write("app.exe", SmallEtlImage());
  const auto import = [&](uint32_t age, uint64_t image_bytes) {
    EtlBuilder b;
    b.Process({EtlBuilder::kStart}, kEtlProcessRundownStart, 100, "app.exe");
    b.Thread({EtlBuilder::kStart}, kEtlThreadRundownStart, 100, 11);
    b.Image({EtlBuilder::kStart}, kEtlImageRundownStart, 100, 0x400000, image_bytes, "C:\\App.exe");
    if (age != 0) {
      constexpr std::array<uint8_t, 16> kImageId = {0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f,
                                                    0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde};
      EtlBuilder::Data id = b.Fields();
      id.Pointer(0x400000).U32(100).U32(0x51e29341).U32(0x156244ba).U32(0x1ba3a58b);
      b.Classic({2500, 0}, kImageId, kEtlDebugIdRsds, 2,
                id.U32(0xdce7dae2).U32(age).Narrow("app.pdb").bytes());
    }
    b.Sample({2000, 0}, 11, 0x401150);
    b.Stack({2010, 0}, 2000, 11, {0x401150, 0x401140});
    return ImportTrace(EtlImporter(), MemorySource("t.etl", b.Bytes()), {.sysroot = root.path()});
  };
  // The second returns to the end of the first function.
  const std::string named = "app.exe!Open;app.exe!+0x1140";
  const std::string plain = "app.exe!+0x1140;app.exe!+0x1150";
  const auto stack = [](const ImportedTrace& imported) {
    return imported.Stack(imported.trace.events.front().stack);
  };
  EXPECT_EQ(stack(import(2, 0x2000)), named);
  EXPECT_EQ(stack(import(0, 0x2000)), named);
  EXPECT_EQ(stack(import(3, 0x2000)), plain);
  const ImportedTrace other = import(0, 0x3000);
  EXPECT_EQ(stack(other), plain);
  EXPECT_EQ(other.Counted("image file of another build, not used"), 1u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
