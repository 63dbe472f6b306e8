// SPDX-License-Identifier: Apache-2.0
#include "record/bpf_ring.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace culprit::record::TEST_FILE {
namespace {

// Writes as the kernel does, into memory laid out like the map's: the reader's page, the
// writers' page, the data twice.
class Writer {
 public:
  explicit Writer(size_t bytes)
      : bytes_(bytes),
        page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        fd_(memfd_create("r", 0)) {
    const size_t all = 2 * page_ + 2 * bytes_;
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(all)), 0);
    memory_ = static_cast<char*>(
        mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, /*offset=*/0));
  }
  Writer(const Writer&) = delete;
  ~Writer() {
    munmap(memory_, 2 * page_ + 2 * bytes_);
    close(fd_);
  }

  BpfRing Open() const { return std::move(BpfRing::Open(fd_, bytes_).value()); }

  // Where its head is.
  uint64_t Write(std::string_view text, uint32_t flags) {
    const uint64_t place = written_;
    SetHead(place, static_cast<uint32_t>(text.size()) | flags);
    for (size_t i = 0; i < text.size(); ++i) Put(place + BPF_RINGBUF_HDR_SZ + i, text[i]);
    written_ += (text.size() + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
    memcpy(memory_ + page_, &written_, sizeof(written_));
    return place;
  }
  void SetHead(uint64_t place, uint32_t head) {
    char bytes[sizeof(head)];
    memcpy(bytes, &head, sizeof(head));
    for (size_t i = 0; i < sizeof(head); ++i) Put(place + i, bytes[i]);
  }
  uint64_t free_bytes() const {
    uint64_t read = 0;
    memcpy(&read, memory_, sizeof(read));
    return bytes_ - (written_ - read);
  }

 private:
  void Put(uint64_t place, char byte) {
    char* data = memory_ + 2 * page_ + place % bytes_;
    data[0] = data[bytes_] = byte;
  }

  size_t bytes_;
  size_t page_;
  int fd_;
  char* memory_ = nullptr;
  uint64_t written_ = 0;
};

std::vector<std::string> Read(BpfRing& ring) {
  std::vector<std::string> records;
  ring.Drain([&](std::string_view record) { records.emplace_back(record); });
  return records;
}

using Texts = std::vector<std::string>;

TEST(BpfRing, GivesWhatWasWrittenOnce) {
  Writer writer(4096);
  BpfRing ring = writer.Open();
  EXPECT_EQ(Read(ring), Texts{});
  writer.Write("one", 0);
  writer.Write("twelve bytes", 0);
  EXPECT_EQ(ring.used(), 16 + 24);
  EXPECT_EQ(Read(ring), (Texts{"one", "twelve bytes"}));
  EXPECT_EQ(ring.used(), 0);
  EXPECT_EQ(Read(ring), Texts{});
  EXPECT_EQ(writer.free_bytes(), 4096);
}

TEST(BpfRing, WaitsForARecordThatIsBeingWritten) {
  Writer writer(4096);
  BpfRing ring = writer.Open();
  writer.Write("done", 0);
  const uint64_t open = writer.Write("open", BPF_RINGBUF_BUSY_BIT);
  writer.Write("behind", 0);
  EXPECT_EQ(Read(ring), Texts{"done"});
  EXPECT_EQ(Read(ring), Texts{});
  writer.SetHead(open, 4);
  EXPECT_EQ(Read(ring), (Texts{"open", "behind"}));
}

TEST(BpfRing, LeavesOutWhatWasTakenBack) {
  Writer writer(4096);
  BpfRing ring = writer.Open();
  writer.Write("never mind", BPF_RINGBUF_DISCARD_BIT);
  writer.Write("this", 0);
  EXPECT_EQ(Read(ring), Texts{"this"});
  EXPECT_EQ(writer.free_bytes(), 4096);
}

// Round and round, across the end of the memory, with more than is given back at once.
TEST(BpfRing, GoesOnFromItsEndToItsBegin) {
  Writer writer(1 << 18);
  BpfRing ring = writer.Open();
  std::mt19937 random(7);
  for (int turn = 0; turn < 40; ++turn) {
    Texts texts;
    while (writer.free_bytes() > 2048) {
      texts.emplace_back(random() % 1000, static_cast<char>('a' + texts.size() % 26));
      writer.Write(texts.back(), 0);
      if (random() % 300 == 0) break;
    }
    ASSERT_EQ(Read(ring), texts);
  }
}

TEST(BpfRing, WhatIsNoRingIsRefused) {
  const Result<BpfRing> ring = BpfRing::Open(-1, 4096);
  ASSERT_FALSE(ring.ok());
  EXPECT_NE(ring.error().message.find("ring"), std::string::npos) << ring.error().message;
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
