/** A result exists when its query has run once: before that run it is not known which audience shares it. Its first state is `current`. */
export const RESULT_STATES = {
  current: "It has all commits that were delivered, and readers.",
  marked: "A commit that came while the query was opened may be missing; it waits until the commit is visible.",
  queued: "It waits for its turn to run.",
  awaitingVisibility: "It has its turn, and waits until the commits that were judged by its rows are visible.",
  running: "Its query runs, and the run includes all commits that were delivered.",
  overtaken: "Its query runs, and another run has to follow.",
  outdated: "Definitions that it depends on may have changed: its readers get other results when they are loaded.",
  kept: "It has all commits that were delivered, and no readers; a client that reconnects continues from it.",
  behind: "It lacks a commit, and has no readers: it runs when a client reconnects.",
  closed: "It is not used any more.",
} as const;

export const RESULT_EVENTS = {
  joined: "A reader joins.",
  left: "The last reader leaves.",
  expired: "Nobody has joined for a while, or the service stops.",
  noted: "It was made, and a commit that was noted while its query was opened affects it.",
  committed: "A visible commit may have changed it, and only a run can tell how.",
  asked: "A reader needs a run that begins from now on.",
  outdated: "Definitions have changed, or changes of the stream were missed.",
  turn: "Its turn to run has come.",
  visible: "All commits that were judged by its rows are visible.",
  finished: "The run has ended with a result.",
  separated: "The run shows that readers may belong to other audiences now.",
  failed: "The run has failed, and is repeated.",
  refused: "The run has failed for good.",
} as const;

export const RESULT_ACTIONS = {
  takeTurn: "take a turn of the queue",
  takeTurnLater: "take a turn of the queue after a pause",
  awaitVisibility: "judge commits without its rows, and wait until the others are visible",
  run: "run the query",
  accept: "make the run's result the current version",
  putBack: "leave the run's commits and waiting readers to the next run",
  release: "let the readers go on that wait for a run",
  mark: "deliver it with the next commits, when the definitions are loaded",
  keep: "begin the time for which it is kept",
  reuse: "end that time",
  forget: "remove it from the index and from the results",
  regroup: "open the query again for each reader",
  fail: "give the error to the readers",
} as const;

export type ResultState = keyof typeof RESULT_STATES;
export type ResultEvent = keyof typeof RESULT_EVENTS;
export type ResultAction = keyof typeof RESULT_ACTIONS;

export type Transition = readonly [next: ResultState, ...actions: readonly ResultAction[]];

const OUTDATE: Transition = ["outdated", "mark"];
const REGROUP: Transition = ["closed", "forget", "regroup"];
const CLOSE: Transition = ["closed", "forget"];
const FAIL: Transition = ["closed", "forget", "fail"];

/** An event without an entry has no effect in the state, such as a turn that the result does not need any more. */
export const TRANSITIONS: Readonly<Record<ResultState, Readonly<Partial<Record<ResultEvent, Transition>>>>> = {
  current: {
    left: ["kept", "keep"],
    noted: ["marked"],
    committed: ["queued", "takeTurn"],
    asked: ["queued", "takeTurn"],
    outdated: OUTDATE,
  },
  marked: {
    left: ["behind", "keep"],
    committed: ["queued", "takeTurn"],
    asked: ["queued", "takeTurn"],
    outdated: OUTDATE,
  },
  queued: {
    left: ["behind", "release", "keep"],
    outdated: OUTDATE,
    turn: ["awaitingVisibility", "awaitVisibility"],
  },
  awaitingVisibility: {
    left: ["behind", "release", "keep"],
    outdated: OUTDATE,
    visible: ["running", "run"],
  },
  running: {
    left: ["behind", "putBack", "release", "keep"],
    committed: ["overtaken"],
    asked: ["overtaken"],
    outdated: OUTDATE,
    finished: ["current", "accept"],
    separated: REGROUP,
    failed: ["queued", "putBack", "takeTurnLater"],
    refused: FAIL,
  },
  overtaken: {
    left: ["behind", "putBack", "release", "keep"],
    outdated: OUTDATE,
    finished: ["queued", "accept", "takeTurn"],
    separated: REGROUP,
    failed: ["queued", "putBack", "takeTurnLater"],
    refused: FAIL,
  },
  outdated: { left: CLOSE, committed: REGROUP, asked: REGROUP },
  kept: {
    joined: ["current", "reuse"],
    expired: CLOSE,
    committed: ["behind"],
    outdated: CLOSE,
  },
  behind: {
    joined: ["queued", "reuse", "takeTurn"],
    expired: CLOSE,
    outdated: CLOSE,
  },
  closed: {},
};

/** The states in which a run is still to begin. */
const BEFORE_RUN: ReadonlySet<ResultState> = new Set(["queued", "awaitingVisibility", "overtaken"]);

export function isRunComing(state: ResultState): boolean {
  return BEFORE_RUN.has(state);
}

export function nextState(state: ResultState, event: ResultEvent): Transition {
  return TRANSITIONS[state][event] ?? [state];
}
