//===- SearchOptions.h - The constants of the exact search ------*- C++ -*-===//
//
// The tuning constants of the search for the cheapest plan, in one place. The
// defaults are those of `--partition=cheapest`. benchmarks/ablation.py measures
// the search with single parts of it switched off, and docs/AutoSharding.md
// explains the method and has the results. No value makes a result wrong: the
// lower bound reported always holds, and every plan found is one of the space.
// The constants decide how fast the two meet.
//
// "Work" counts pairs of rows that elimination joins or compares, and ways to
// deliver a tensor. It does not depend on a clock, so that equal inputs have
// equal results on all machines. Two million take about a second.
//
// Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_SEARCHOPTIONS_H
#define SHARDC_AUTOSHARDING_SEARCHOPTIONS_H

#include <cstddef>
#include <cstdint>

namespace shardc {

/// The layout graph of one tensor (CostGraph.h, SearchMoves.h).
struct LayoutGraphOptions {
  /// Most layouts of a graph that is stored as a matrix of distances. In larger
  /// graphs costs are relaxed along the edges.
  size_t maxMatrix = 128;
  /// Most layouts that are delivered by one Steiner tree. Larger sets are
  /// delivered one layout after another, in all ways.
  size_t maxTreeLayouts = 8;
  /// Beam width over the ways to deliver a set of layouts, in a beam search.
  size_t maxBeamWays = 16;
};

/// The dual lower bound (DualBound.h, TensorBound.h).
struct BoundOptions {
  /// Most sweeps of one stage.
  int maxSweeps = 60;
  /// Sweeps before momentum sets in.
  int numPlainSweeps = 3;
  /// Tensor classes with less than 1 / `minorPart` of the members of a larger
  /// class at a port are ignored there in the first sweeps. 0: none is.
  int minorPart = 4;
  /// Users of a tensor that the bound counts, in graphs of at most `smallGraph`
  /// layouts and in larger ones. Time is exponential in them.
  size_t maxUsersSmall = 4, maxUsers = 3;
  int smallGraph = 64;
  /// Layouts wanted so far that the bound of completing a tensor counts.
  size_t maxWanted = 3;
  /// Pruning shrinks the graph of a tensor once at most this many layouts are
  /// left: making a larger matrix takes longer than some sweeps.
  size_t maxPart = 64;
  /// Whether strategies whose bound exceeds the guess are dropped before
  /// elimination.
  bool prunes = true;
};

/// Equivalence classes of ops, by which programs with repeated layers are
/// bounded first (OpEquivalenceClasses.h).
struct ClassOptions {
  /// Whether classes are used; otherwise every op is a class of its own.
  bool isUsed = true;
  /// Ops are equivalent if their neighbourhoods are, this many tensors away.
  int radius = 2;
  /// Classes are used if there are this many times more ops than classes.
  int minGain = 5;
  /// The bound of the first level is raised until a sweep adds less than the
  /// part `progress` of it, and is assumed to be too low by the part `slack`.
  /// Both are relative to the cost of one of the repeated layers.
  double progress = 4e-4, slack = 3e-2;
  /// The same for finer levels, relative to the cost of all layers, times
  /// `levelGain` for each level after the second.
  double finerProgress = 1e-5, finerSlack = 3e-5, levelGain = 0.1;
};

/// Guesses of the optimum (ShardingSearch.h).
struct GuessOptions {
  /// The first guess exceeds the bound by this many times the gain of the last
  /// sweep: with classes, and with every op on its own.
  double firstWidth = 4, firstFineWidth = 1;
  /// If no plan is below a guess, the next one exceeds the bound by this factor
  /// more.
  double widening = 16;
  /// A guess is skipped unless it exceeds the bound by this factor more than
  /// the highest cost below which no plan exists.
  double minGrowth = 4;
  /// A guess this many times above the bound becomes infinite.
  double hopeless = 100;
  /// Sweeps after each of which strategies are dropped for all later branches.
  int numDropSweeps = 3;
};

/// Variable elimination and its beams (Elimination.h, JoinOrder.h).
struct EliminationOptions {
  /// Beam width of the quick search for a plan within the gap; 0: there is
  /// none.
  size_t quickBeam = 32;
  /// Work of all quick searches together, as a multiple of `maxWork`.
  size_t quickWork = 4;
  /// Beam width after a cut-off. It is doubled up to `maxBeam` until a plan is
  /// found.
  size_t beam = 64, maxBeam = 512;
  /// Rows compared for dominance before a beam keeps the best, as a multiple of
  /// its width.
  size_t comparedBeams = 8;
  /// Whether dominated rows are dropped.
  bool dropsDominated = true;
  /// A tensor open in more parts than these links a new part to the last of
  /// them only.
  size_t maxNeighbours = 8;
  /// The weight of log2 of the rows of two tables in the order of joins, beside
  /// log2 of the layouts of the tensors left open.
  double rowWeight = 0.01;
};

/// Branch and bound over latencies of collectives (CheapestPlan.h).
struct LatencyOptions {
  /// Whether the search branches; otherwise it stops with the best plan found
  /// without latencies.
  bool branches = true;
  /// The target is above the bound by this part of the distance to the best
  /// plan; branches above it are postponed. 1: none is.
  double targetPart = 1.0 / 3;
  /// Searches that are always allowed, whatever the number of strategies.
  int64_t minSearches = 8;
  /// Branches visited per search allowed. Most need no search of their own.
  int64_t visitsPerSearch = 64;
  /// A branch may do 1 / `branchPart` of the work of the root; all searches
  /// together `totalWork` times that work.
  size_t branchPart = 16, totalWork = 2;
};

/// Plans in the order of their cost (KBestPlans.h).
struct KBestOptions {
  /// Searches that are always allowed, whatever the number of strategies.
  int64_t minSearches = 16;
  /// All searches together may look at 1 / `totalPart` of `maxBranchOptions`.
  int64_t totalPart = 4;
  /// Each search has 1 / `searchPart` of the limits of the first one.
  int64_t searchPart = 16;
};

/// The cheapest plan within a limit of memory (MemoryConstrainedSearch.h).
struct MemoryOptions {
  /// The first price makes the memory of the cheapest plan cost this part of
  /// the plan.
  double firstPrice = 1.0 / 1024;
  /// The factor of a raise of the price, the most raises, and the number of
  /// times that the last raise is then halved.
  double raise = 4;
  int numRaises = 10, numHalvings = 4;
  /// A search at a price has 1 / `searchPart` of the limits of the first one,
  /// and the gap `pricedGap`.
  int64_t searchPart = 8;
  double pricedGap = 1e-2;
  /// Most plans tried in the order of their cost, if a price has found one that
  /// fits; and otherwise, with at most `maxSearchesInVain` searches.
  int maxTries = 64, maxTriesInVain = 8;
  int64_t maxSearchesInVain = 16;
};

struct SearchOptions {
  /// The smallest relative gap by time.
  double minGap = 1e-6;
  /// By time, a plan is accepted if it costs at most this part more than the
  /// lower bound.
  double gap = 1e-4;
  /// Work of the first search, after which it falls back to a beam.
  size_t maxWork = 2'000'000;
  /// Strategies that all branches together may look at; each looks at all
  /// strategies of the problem.
  int64_t maxBranchOptions = 1'000'000;
  /// Whether a search falls back to a beam after `maxWork`; otherwise it finds
  /// nothing.
  bool usesBeam = true;

  LayoutGraphOptions graphs;
  BoundOptions bound;
  ClassOptions classes;
  GuessOptions guess;
  EliminationOptions elimination;
  LatencyOptions latency;
  KBestOptions kBest;
  MemoryOptions memory;
};

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_SEARCHOPTIONS_H
