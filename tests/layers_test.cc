// SPDX-License-Identifier: Apache-2.0
// Holds every #include of src/ against the arrows of src/LAYERS.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace culprit::TEST_FILE {
namespace {

namespace fs = std::filesystem;
using Layers = std::map<std::string, std::set<std::string>>;

const fs::path kSource = fs::path(CULPRIT_SOURCE_DIR) / "src";

Layers ReadLayers() {
  Layers layers;
  std::ifstream file(kSource / "LAYERS");
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string folder;
    std::string word;
    words >> folder >> word;
    EXPECT_EQ(word, "->") << line;
    layers[folder];
    while (words >> word) layers[folder].insert(word);
  }
  return layers;
}

// All folders that can be reached along the arrows.
std::set<std::string> Reach(const Layers& layers, const std::string& from) {
  std::set<std::string> reached;
  std::vector<std::string> todo = {from};
  while (!todo.empty()) {
    const std::string folder = todo.back();
    todo.pop_back();
    for (const std::string& next : layers.at(folder)) {
      if (reached.insert(next).second) todo.push_back(next);
    }
  }
  return reached;
}

TEST(Layers, EveryFolderIsListedAndEveryListedFolderExists) {
  const Layers layers = ReadLayers();
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(kSource)) {
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
    if (entry.is_regular_file()) {
      EXPECT_EQ(entry.path().filename(), "LAYERS") << "a loose file";
    }
  }
  for (const auto& [folder, uses] : layers) {
    EXPECT_TRUE(folders.contains(folder)) << folder;
    for (const std::string& use : uses) EXPECT_TRUE(layers.contains(use)) << use;
  }
  EXPECT_EQ(folders.size(), layers.size());
}

TEST(Layers, ArrowsNeverFormACircle) {
  const Layers layers = ReadLayers();
  for (const auto& [folder, uses] : layers) {
    EXPECT_FALSE(Reach(layers, folder).contains(folder)) << folder;
  }
}

TEST(Layers, EveryIncludeFollowsAnArrow) {
  const Layers layers = ReadLayers();
  const std::regex include("^\\s*#\\s*include\\s+\"([a-z_]+)/[^\"]+\"");
  size_t checked = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kSource)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cc") continue;
    const std::string folder = fs::relative(entry.path(), kSource).begin()->string();
    const std::set<std::string> allowed = Reach(layers, folder);
    std::ifstream file(entry.path());
    std::string line;
    while (std::getline(file, line)) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      const std::string used = match[1];
      ++checked;
      EXPECT_TRUE(used == folder || allowed.contains(used))
          << entry.path().string() << " includes from " << used << "/, which " << folder
          << "/ may not use";
    }
  }
  EXPECT_GT(checked, 100u);
}

}  // namespace
}  // namespace culprit::TEST_FILE
