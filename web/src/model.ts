// SPDX-License-Identifier: Apache-2.0
//
// The parts a report is made of, as src/analyze writes them and docs/report.md
// describes them. A part is one JSON document with a name; the overview says
// which parts there are. Times are nanoseconds. Rows of large tables are
// columns here, because columns compress better and load faster.

export interface Overview {
  format: number;
  tool: string;
  corpus: {
    name: string;
    traces: number;
    instances: number;
    events: number;
    skipped: { what: string; count: number }[];
    unreadable: string[];
  };
  // Both sum to total_ns: what the threads of the instances did themselves, and
  // the same with every wait followed to what was behind it.
  time: { total_ns: number; own: TimeShare[]; behind: TimeShare[] };
  findings: Finding[];
  coverage: { coverable_ns: number; curves: Curve[] };
  scenarios: Scenario[];
  clusters: number;
  detail_size: number; // clusters in one part of details
  parts: string[];
}

export interface TimeShare {
  key: string;
  ns: number;
}

export interface Finding {
  cluster: string;
  sentence: string;
  time_ns: number;
  status: string;
  command: string;
}

// Points are ⟨traces opened, time covered⟩.
export interface Curve {
  name: string;
  points: [number, number][];
}

export interface Scenario {
  name: string;
  instances: number;
  total_ns: number;
  p50_ns: number;
  p90_ns: number;
  max_ns: number;
  // Counts of instances in [1 µs · 2^(i/2), 1 µs · 2^((i+1)/2)).
  histogram: number[];
}

export interface ClusterColumns {
  id: string[];
  kind: string[]; // "wait", "run"
  class: string[]; // of waits
  summary: string[];
  place: string[];
  cost_ns: number[];
  distinct_ns: number[];
  time_ns: number[];
  gain_ns: number[];
  events: number[];
  instances: number[];
  traces: number[];
  p50_ns: number[];
  p95_ns: number[];
  max_ns: number[];
  part_of: number[]; // row, or -1
  signature: string[];
  status: string[];
}

// Frames are indexes into `names`.
export interface ClusterDetails {
  first: number; // row of the first one
  names: string[];
  clusters: {
    segments: { shared?: number[]; variants?: number[][] }[];
    patterns: { frames: number[]; cost_ns: number }[];
    patterns_left_out: number;
    scenarios: { name: string; time_ns: number }[];
    examples: string[];
    by_trace: [string, number][];
    traces_left_out: number;
    below: { running_ns: number; ready_ns: number; hardware_ns: number; unexplained_ns: number };
  }[];
}

// A tree of frames; node 0 is the root. Values are self plus children. `fast`
// and `slow`: of the instances below the median and above the 90th percentile
// of their scenario, per instance, so that they can be compared.
export interface FlameTree {
  names: string[];
  frame: number[];
  parent: number[];
  total_ns: number[];
  fast_ns: number[];
  slow_ns: number[];
  instances: number;
  fast_instances: number;
  slow_instances: number;
  before_ns?: number[]; // of an older recording
  before_instances?: number;
  left_out_ns: number;
}

// The critical paths of a scenario laid over each other. A node's children
// explain it; of a wait what is behind it.
export interface Chains {
  scenario: string;
  names: string[];
  instances: number;
  fast_instances: number;
  slow_instances: number;
  fast_below_ns: number;
  slow_above_ns: number;
  parent: number[]; // -1: of the instance's own thread
  kind: string[]; // wait, running, not sampled, ready, preempted, hardware
  class: string[];
  stack: number[][]; // leaf first, the frames that tell most
  total_ns: number[];
  fast_ns: number[];
  slow_ns: number[];
  events: number[];
  left_out_ns: number;
}

// Instance number i is the part "instance-i".
export interface InstanceIndex {
  names: string[];
  scenarios: string[];
  dur_ns: number[];
}

export interface InstanceView {
  name: string;
  scenario: string;
  dur_ns: number;
  threads: { name: string; device: boolean }[];
  // In pre-order: a parent stands before its children; times since the begin.
  segments: {
    thread: number[];
    kind: string[];
    note: string[];
    begin_ns: number[];
    dur_ns: number[];
    parent: number[];
    text: string[];
  };
  left_out: number;
}

export interface ImpactTable {
  rows: {
    component: string;
    d_scn_ns: number;
    d_wait_ns: number;
    d_run_ns: number;
    d_waitdist_ns: number;
    ia_wait: number;
    ia_run: number;
    ia_opt: number;
  }[];
  total_ns: number;
}

export interface ContrastView {
  scenario: string;
  fast_below_ns: number;
  slow_above_ns: number;
  fast_instances: number;
  slow_instances: number;
  itc: number;
  ttc: number;
  pruned_ns: number;
  patterns_left_out: number;
  patterns: {
    wait: string[];
    unwait: string[];
    running: string[];
    cost_ns: number;
    count: number;
    instances: number;
    traces: number;
    slow_only: boolean;
    ratio: number | null; // null: fast ones never do it
    p_value: number;
    examples: string[];
  }[];
}

export interface SignatureRow {
  name: string;
  kind: string;
  status: string;
  owner: string;
  note: string;
  common: string[];
  clusters: string[];
  time_ns: number;
}

// Kinds of work of a guarded program, as its profile has them.
export interface UnitTypes {
  program: string;
  floor_ns: number;
  types: {
    name: string;
    unit: string;
    samples: number;
    p50_ns: number;
    p99_ns: number;
    max_ns: number;
    threshold_ns: number;
    slow: number; // reports of slow units
    longest_ns: number; // of these
    // Counts of units in [1 µs · 2^(i/2), 1 µs · 2^((i+1)/2)).
    histogram: number[];
  }[];
}

// What system calls alone say of each trace.
export interface InferenceView {
  traces: {
    path: string;
    profile: string;
    against: string[] | null;
    syscalls: number;
    profiled: number;
    named: number;
    null_rows: number | null;
    functions: {
      function: string;
      score: number;
      own: number;
      co_owners: string[];
      symbols: string[];
      unit_count: number;
    }[];
    excess_calls: { symbol: string; calls: number; expected: number; excess: number }[];
    warnings: string[];
    notes: string[];
  }[];
}
