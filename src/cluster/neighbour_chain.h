// SPDX-License-Identifier: Apache-2.0
//
// NeighbourChain: average or complete linkage of one connected component. Goes
// from a cluster to its nearest neighbour, from there to that one's nearest, and
// so on; two clusters that are each other's nearest are joined. For these
// linkages, with ties settled by lowest ranks, that gives exactly the joins of
// the method that searches all clusters for the best pair each time.
//
// Two clusters are linked if a pair of theirs is an edge. The rest of their
// pairs stand in blocks (a node of the tree x a node of the tree, without any
// edge), of which at first only a bound is known: below `least`. Blocks are
// looked into when their link is the best by its bound: first by bounds of
// pairs, then exactly. Every pair is aligned at most once.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/fixed.h"
#include "cluster/linkage.h"

namespace culprit::cluster {

struct Mean {
  uint64_t sum = 0;
  uint64_t count = 1;
};
// Negative, 0 or positive as x < y, x == y, x > y, without rounding. Counts are
// below 2^32.
int CompareMeans(const Mean& x, const Mean& y);

class NeighbourChain {
 public:
  // The source must outlive the chain.
  NeighbourChain(const std::vector<SimilarPair>& edges, Linkage linkage, Fixed least,
                 PairSource& source);

  std::vector<Joined> Run();  // once; in any order

 private:
  using Node = uint32_t;  // leaves first, then what was joined, in that order
  struct Block {
    Node x = 0;
    Node y = 0;
    uint64_t bound = 0;  // of the sum of its similarities
    bool by_pairs = false;
  };
  struct Link {
    uint64_t known = 0;
    uint64_t bound = 0;  // sum of the blocks' bounds
    std::vector<Block> blocks;
  };
  struct Neighbour {
    Node node = 0;
    uint32_t link = 0;
  };
  struct Cluster {
    Rank lowest = 0;
    uint32_t size = 1;
    bool alive = true;
    Node left = 0;  // of a joined one
    Node right = 0;
    std::vector<Neighbour> neighbours;  // by node; some no longer alive
  };

  Mean MeanOf(const Cluster& a, const Cluster& b, const Link& link) const;
  bool Nearest(Node node, Neighbour& nearest);
  void LookInto(Link& link, const Cluster& a, const Cluster& b);
  void LookIntoBlock(Link& link, size_t block);
  Node Join(Node a, Node b);
  uint32_t Combine(const Neighbour* from_a, const Neighbour* from_b, Node a, Node b);
  void DropDead(Cluster& cluster);
  std::vector<Rank> Members(Node node) const;

  Linkage linkage_;
  Fixed least_;
  PairSource* source_;
  std::vector<Cluster> clusters_;
  std::vector<Link> links_;
  size_t leaves_ = 0;
};

}  // namespace culprit::cluster
