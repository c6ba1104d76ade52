import { expect, test } from "vitest";
import { useService } from "../../serve.ts";

const service = useService({ settings: { REST_REQUIRE_APIKEY: "false", SERVER_TIMING: "true" } });

async function stagesOf(path: string, options: RequestInit = {}) {
  const response = await fetch(service.url + path, options);
  await response.arrayBuffer();
  const durations = new Map(
    (response.headers.get("server-timing") ?? "").split(", ").map((stage): [string, number] => {
      const [name, duration] = stage.split(";dur=");
      return [name!, Number(duration)];
    }),
  );
  return { status: response.status, durations, names: [...durations.keys()] };
}

const READ = ["route", "authenticate", "parse", "plan", "query", "run", "respond"];

test("the table interface reports the stages by our names, then by those of PostgREST", async () => {
  const { names, durations } = await stagesOf("/rest/v1/articles");
  expect(names).toEqual([...READ, "jwt", "transaction", "response"]);
  expect(durations.get("jwt")).toBe(durations.get("authenticate"));
  expect(durations.get("response")).toBe(durations.get("respond"));
  expect(durations.get("transaction")).toBeCloseTo(durations.get("query")! + durations.get("run")!, 0);
  expect((await stagesOf("/api/v1/articles")).names).toEqual(READ);
});

test.each([
  ["of a token", 401, "/rest/v1/articles", { headers: { Authorization: "Bearer a.b.c" } }, ["jwt"]],
  ["of a filter", 400, "/rest/v1/articles?id=one", {}, ["parse", "jwt"]],
  ["of Postgres", 400, "/rest/v1/articles?id=eq.one", {}, ["parse", "plan", "jwt", "transaction"]],
] as const)("an error %s has the stages that the request reached", async (_, status, path, options, stages) => {
  const postgrest = ["parse", "plan", "jwt", "transaction", "response"];
  const answer = await stagesOf(path, options);
  expect([answer.status, answer.names.filter((name) => postgrest.includes(name))]).toEqual([status, stages]);
});

test("the OpenAPI document has all stages of PostgREST, and OPTIONS those without the database", async () => {
  const all = ["jwt", "parse", "plan", "response", "transaction"];
  expect((await stagesOf("/rest/v1/", { method: "HEAD" })).names).toEqual(expect.arrayContaining(all));
  for (const path of ["/rest/v1/", "/rest/v1/articles", "/rest/v1/rpc/nothing"]) {
    const { names } = await stagesOf(path, { method: "OPTIONS" });
    expect(names).toEqual(expect.arrayContaining(["jwt", "parse"]));
    expect(names).not.toContain("transaction");
  }
});
