import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  nextState,
  RESULT_ACTIONS,
  RESULT_EVENTS,
  RESULT_STATES,
  type ResultAction,
  type ResultEvent,
  type ResultState,
  TRANSITIONS,
} from "../../../live/queries/result-states.ts";
import { REPOSITORY } from "../../repository.ts";

const STATES = Object.keys(RESULT_STATES) as ResultState[];
const EVENTS = Object.keys(RESULT_EVENTS) as ResultEvent[];
const PAIRS = STATES.flatMap((state) => EVENTS.map((event) => ({ state, event })));
const TRANSITION_LIST = PAIRS.flatMap(({ state, event }) => {
  const transition = TRANSITIONS[state][event];
  if (!transition) return [];
  const [next, ...actions] = transition;
  return [{ state, event, next, actions }];
});

const WITHOUT_READERS: readonly ResultState[] = ["kept", "behind"];
const WITH_RUN: readonly ResultState[] = ["running", "overtaken"];
/** A reader may wait for a run. */
const AWAITED: readonly ResultState[] = ["queued", "awaitingVisibility", "running", "overtaken", "outdated"];

describe("the states of a result", () => {
  test.each(PAIRS)("$event in $state has no effect unless the table says so", ({ state, event }) => {
    const known = TRANSITION_LIST.find((each) => each.state === state && each.event === event);
    expect(nextState(state, event)).toEqual(known ? [known.next, ...known.actions] : [state]);
  });

  test("are all reached, and no event leads out of the last one alone", () => {
    const reached = new Set<ResultState>(["current"]);
    for (const state of reached) for (const each of TRANSITION_LIST) if (each.state === state) reached.add(each.next);
    expect([...reached].toSorted()).toEqual(STATES.toSorted());
    const left = new Set(TRANSITION_LIST.map(({ state }) => state));
    expect(STATES.filter((state) => !left.has(state))).toEqual(["closed"]);
  });

  test("use all events and actions", () => {
    expect(new Set(TRANSITION_LIST.map(({ event }) => event))).toEqual(new Set(EVENTS));
    expect(new Set(TRANSITION_LIST.flatMap(({ actions }) => actions))).toEqual(new Set(Object.keys(RESULT_ACTIONS)));
  });

  test.each<[ResultAction[], string, (of: (typeof TRANSITION_LIST)[number]) => boolean]>([
    [["takeTurn", "takeTurnLater"], "it begins to wait for a turn", ({ next }) => next === "queued"],
    [["awaitVisibility"], "its turn has come", ({ event }) => event === "turn"],
    [["run"], "all is visible", ({ event }) => event === "visible"],
    [["accept"], "a run has ended with a result", ({ event }) => event === "finished"],
    [
      ["putBack"],
      "a run ends without a result, and the result stays",
      ({ state, next, event }) =>
        WITH_RUN.includes(state) && event !== "finished" && ["queued", ...WITHOUT_READERS].includes(next),
    ],
    [["keep"], "the last reader leaves it", ({ event, next }) => event === "left" && next !== "closed"],
    [["reuse"], "a reader joins it in that time", ({ event }) => event === "joined"],
    [["forget"], "it is closed", ({ next }) => next === "closed"],
    [["mark"], "it is outdated, and has readers", ({ next }) => next === "outdated"],
    [
      ["regroup", "fail"],
      "it is closed, and has readers",
      ({ state, event, next }) => next === "closed" && event !== "left" && !WITHOUT_READERS.includes(state),
    ],
    [
      ["release"],
      "nobody is left who could make a run",
      ({ state, event, next }) => AWAITED.includes(state) && event === "left" && next !== "closed",
    ],
  ])("%s is done if and only if %s", (actions, _when, isDone) => {
    for (const transition of TRANSITION_LIST)
      expect({ ...transition, isDone: transition.actions.some((each) => actions.includes(each)) }).toEqual({
        ...transition,
        isDone: isDone(transition),
      });
  });

  test("after a change of definitions no run of the old result is accepted", () => {
    for (const state of STATES.filter((each) => each !== "closed"))
      expect(["outdated", "closed"]).toContain(nextState(state, "outdated")[0]);
    expect(EVENTS.map((event) => nextState("outdated", event)[0])).not.toContain("current");
  });
});

const README = readFileSync(join(REPOSITORY, "live/README.md"), "utf8");

test("the README has the states and events as they are in the code", () => {
  const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
    [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  const columns = STATES.filter((state) => state !== "closed");
  const cellOf = (state: ResultState, event: ResultEvent) => {
    const [next, ...actions] = TRANSITIONS[state][event] ?? [];
    if (next === undefined) return "";
    return actions.length > 0 ? `${next}: ${actions.join(", ")}` : next;
  };
  const states = STATES.map((state) => [`\`${state}\``, RESULT_STATES[state]]);
  const events = EVENTS.map((event) => [
    `\`${event}\``,
    RESULT_EVENTS[event],
    ...columns.map((state) => cellOf(state, event)),
  ]);
  expect(README).toContain(table(["state", "meaning"], states));
  expect(README).toContain(table(["event", "meaning", ...columns], events));
});
