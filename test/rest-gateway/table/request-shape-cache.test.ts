import { describe, expect, test } from "vitest";
import { bindRequest, makeRequestPlanner } from "../../../planner/prepare.ts";
import { NO_BODY } from "../../../rest-gateway/table/parse/body.ts";
import { canonicalQueryString } from "../../../rest-gateway/table/parse/query-string.ts";
import { parseTableRequest, type RawTableRequest } from "../../../rest-gateway/table/parse/request.ts";
import {
  RequestShapeCache,
  requestShape,
  type ShapedRequest,
} from "../../../rest-gateway/table/request-shape-cache.ts";
import { catalog } from "../../planner/planner.ts";

const deployment = {
  schemas: ["api", "other"],
  rootFunction: null,
  describesItself: true,
  txOverride: true,
  timeZones: new Set(["UTC"]),
};
const plan = makeRequestPlanner({
  aggregates: true,
  maxRows: 100,
  safeWrites: true,
  legacyTargetNames: false,
  explainEnabled: true,
});

function toRaw(url: string): RawTableRequest {
  const [path = "", rawQuery = ""] = url.split("?");
  return { method: "GET", path, rawQuery, headers: {}, content: NO_BODY };
}

type PlainRequest = Omit<ShapedRequest, "planKey">;

function understand(url: string): PlainRequest {
  const request = parseTableRequest(toRaw(url), deployment);
  if (request.action.kind !== "statement") throw new Error(`It is ${request.action.kind}`);
  return { request, intent: request.action.intent };
}

function recall(forms: RequestShapeCache, url: string, { role = "anon", over = catalog } = {}): ShapedRequest | null {
  const raw = toRaw(url);
  return forms.find(requestShape(raw)!, raw.rawQuery, role, over);
}

/** Adds the shape of a request that the cache does not have, like the interface. */
function learn(url: string) {
  const forms = new RequestShapeCache();
  expect(recall(forms, url)).toBeNull();
  const learnt = understand(url);
  const raw = toRaw(url);
  const planKey = forms.add(requestShape(raw)!, raw.rawQuery, "anon", learnt);
  return { forms, learnt, planKey };
}

function result({ request, intent }: PlainRequest, planKey?: object) {
  const responseOptions = { formats: request.accept, includesBody: true, maxAffected: null };
  const planned = plan(intent, responseOptions, catalog, "anon", planKey);
  const { plan: bound, statement, stream: long } = bindRequest(planned, intent);
  return { asked: request, intent, plan: bound, statement, probe: long?.probe, rows: long?.rows() };
}

describe("a request of a cached shape", () => {
  test.each([
    ["/works?id=eq.1", "/works?id=eq.2"],
    [
      "/works?select=id,artists(name)&id=gt.1&order=id.desc&limit=5",
      "/works?select=id,artists(name)&id=gt.9&order=id.desc&limit=5",
    ],
    ["/works?id=gte.1&id=lt.5&title=not.eq.a", "/works?id=gte.2&id=lt.7&title=not.eq.%C3%A4+b"],
    ["/works?title=neq.", "/works?title=neq.eq.%22x%22,(y)"],
    [
      "/works?title=gt.a&limit=3&id=gt.1&select=id,n:title&title=lt.z",
      "/works?title=gt.b%2C&limit=3&id=gt.2&select=id,n:title&title=lt.%F0%9F%98%80",
    ],
  ])("%s, then %s: is handled as if it were parsed and planned again", (one, other) => {
    const { forms, learnt, planKey } = learn(one);
    const first = result(learnt, planKey);
    const recalled = recall(forms, other)!;
    expect(recalled.planKey).toBe(planKey);
    const { canonicalQuery, ...request } = recalled.request;
    const again = result({ intent: recalled.intent, request }, recalled.planKey);
    expect(again).toEqual(result(understand(other)));
    expect(again).not.toEqual(first);
    expect(canonicalQuery).toBe(canonicalQueryString(request.parameters));
  });

  test("has its own query string in Content-Location, also if columns have the names of operators", () => {
    const { forms } = learn("/works?order=eq.desc,lt.asc&select=gt.max()&id=eq.1");
    const { request } = recall(forms, "/works?order=eq.desc,lt.asc&select=gt.max()&id=eq.2")!;
    expect(request.canonicalQuery).toBe(canonicalQueryString(request.parameters));
  });

  test("is not shared with another role, for which it may have another meaning", () => {
    const { forms } = learn("/works?id=eq.1");
    expect(recall(forms, "/works?id=eq.1", { role: "authenticated" })).toBeNull();
    expect(recall(forms, "/works?id=eq.1")).not.toBeNull();
  });

  test("is evicted when the schema changes", async () => {
    const { forms } = learn("/works?id=eq.1");
    expect(recall(forms, "/works?id=eq.1", { over: { ...catalog } })).toBeNull();
    expect(recall(forms, "/works?id=eq.1")).toBeNull();
  });
});

describe("the cache of shapes", () => {
  /** 200 columns, with other names each time. */
  const wide = (n: number) => `/works?select=${Array.from({ length: 200 }, (_, at) => `a${n}_${at}:title`).join(",")}`;

  test("keeps shapes by their size, and anonymous ones do not evict those of other roles", () => {
    const forms = new RequestShapeCache(undefined, "anon");
    const add = (url: string, role: string) => {
      const raw = toRaw(url);
      forms.add(requestShape(raw)!, raw.rawQuery, role, understand(url));
    };
    recall(forms, "/works?limit=1");
    add("/works?id=eq.1", "authenticated");
    add("/works?id=eq.1", "anon");
    for (let n = 0; n < 120; n++) add(wide(n), "anon");
    expect(recall(forms, wide(119))).not.toBeNull();
    expect(recall(forms, wide(0))).toBeNull();
    expect(recall(forms, "/works?id=eq.1")).toBeNull();
    expect(recall(forms, "/works?id=eq.2", { role: "authenticated" })).not.toBeNull();
  });
});
