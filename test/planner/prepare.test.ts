import { expect, test } from "vitest";
import { makeRequestPlanner } from "../../planner/prepare.ts";
import { JSON_FORMAT } from "./fixture-database.ts";
import { at, eq, read } from "./intents.ts";
import { catalog } from "./planner.ts";

const response = { formats: [JSON_FORMAT], includesBody: true, maxAffected: null };
const workById = (id: string) => read("works", { conditions: [at("", eq("id", id))] });

function makePlanner() {
  const hits = { found: 0, missed: 0 };
  const plan = makeRequestPlanner(
    { aggregates: true, maxRows: null, safeWrites: true, legacyTargetNames: true, explainEnabled: true },
    hits,
  );
  return { plan, hits };
}

test("a plan is found by its intent and by its plan key, and kept once", () => {
  const { plan, hits } = makePlanner();
  const [one, other] = [{}, {}];
  const planned = plan(workById("1"), response, catalog, "anon");
  expect(plan(workById("2"), response, catalog, "anon", one)).toBe(planned);
  expect(plan(workById("3"), response, catalog, "anon", one)).toBe(planned);
  expect(plan(workById("4"), response, catalog, "anon", other)).toBe(planned);
  expect(hits).toEqual({ found: 3, missed: 1 });
});

test("a plan key gets a new plan with each catalogue, and none that was made with an earlier one", () => {
  const { plan } = makePlanner();
  const key = {};
  const planned = plan(workById("1"), response, catalog, "anon", key);
  const newer = { ...catalog };
  const replanned = plan(workById("1"), response, newer, "anon", key);
  expect(replanned).not.toBe(planned);
  expect(plan(workById("1"), response, newer, "anon", key)).toBe(replanned);
  expect(plan(workById("1"), response, catalog, "anon", key)).not.toBe(planned);
});

test("a plan belongs to one role", () => {
  const { plan } = makePlanner();
  expect(plan(workById("1"), response, catalog, "anon", {})).not.toBe(
    plan(workById("1"), response, catalog, "authenticated", {}),
  );
});
