import { expect, test } from "vitest";
import { type HealthState, healthRoutes, isReady } from "../../http/health.ts";
import type { GatewayRequest } from "../../http/request.ts";

const WELL: HealthState = {
  databaseFault: () => null,
  lacksPrimary: () => false,
  lacksConnections: () => false,
  pingDatabase: async () => {},
  replicas: () => [],
  schemaFault: () => null,
  isSchemaAwaited: () => false,
  uptimeMs: () => 1_000,
  leftOut: () => [],
  backups: () => null,
  walArchive: () => null,
  workers: () => null,
  stoppedWork: () => [],
  acceptsWork: () => true,
};

/** Returns a function that asks the three addresses one after the other and returns their answers. */
function probe(condition: Partial<HealthState>) {
  const routes = healthRoutes({ ...WELL, ...condition });
  return async () => {
    const statuses: number[] = [];
    for (const path of ["/health", "/health/live", "/health/ready"]) {
      statuses.push((await routes[path]!.GET!({} as GatewayRequest)).status);
    }
    return statuses;
  };
}

test("the service is healthy when the database responds", async () => {
  expect(await probe({})()).toEqual([200, 200, 200]);
});

test("an unresponsive database is 503, and the service is still live", async () => {
  const silent = () => Promise.reject(new Error("no answer"));
  expect(await probe({ pingDatabase: silent })()).toEqual([503, 200, 503]);
});

test("a database that is known to be unavailable is 503 immediately, although a check succeeded just before", async () => {
  let fault: string | null = null;
  const ask = probe({ databaseFault: () => fault });
  expect(await ask()).toEqual([200, 200, 200]);
  fault = "connection lost";
  expect(await ask()).toEqual([503, 200, 503]);
  fault = null;
  expect(await ask()).toEqual([200, 200, 200]);
});

test("concurrent probes share one query", async () => {
  let questions = 0;
  const ask = probe({ pingDatabase: async () => void questions++ });
  await Promise.all(Array.from({ length: 100 }, ask));
  expect(questions).toBe(1);
});

test("a service that is stopping is not ready, but still live", async () => {
  expect(await probe({ acceptsWork: () => false })()).toEqual([200, 200, 503]);
});

test("parts that are missing in the GraphQL schema are reported as degraded", async () => {
  const hidden = { object: "table public.payroll", isPublic: false };
  const leftOut = Array.from({ length: 29 }, (_, index) => ({ object: `function public.f${index}()`, isPublic: true }));
  const routes = healthRoutes({ ...WELL, leftOut: () => [hidden, ...leftOut] });
  const { status, body } = await routes["/health"]!.GET!({} as GatewayRequest);
  expect([status, JSON.parse(String(body))]).toEqual([
    200,
    {
      status: "degraded",
      reason: "GraphQL is served without 30 objects of the database that its schema cannot be built with.",
      leftOut: leftOut.slice(0, 20).map(({ object }) => object),
    },
  ]);
  expect(await probe({ leftOut: () => leftOut })()).toEqual([200, 200, 200]);
});

test("requests that wait for connections that the database refuses are reported", async () => {
  const routes = healthRoutes({ ...WELL, lacksConnections: () => true });
  const { status, body } = await routes["/health"]!.GET!({} as GatewayRequest);
  expect([status, JSON.parse(String(body))]).toEqual([
    200,
    { status: "degraded", reason: "Requests wait for connections, because the database accepts no more." },
  ]);
});

test("a schema that could not be reloaded is degraded, and still served", async () => {
  const routes = healthRoutes({ ...WELL, schemaFault: () => "syntax error" });
  const answer = await routes["/health"]!.GET!({} as GatewayRequest);
  expect(answer).toMatchObject({ status: 200, body: expect.stringContaining("degraded") });
});

test("a first schema that is still being built is degraded, and keeps the service from being ready for a minute", async () => {
  const routes = healthRoutes({ ...WELL, isSchemaAwaited: () => true });
  const answer = await routes["/health"]!.GET!({} as GatewayRequest);
  const reason = "The GraphQL schema is still being built.";
  expect([answer.status, JSON.parse(String(answer.body))]).toEqual([200, { status: "degraded", reason }]);
  expect(await probe({ isSchemaAwaited: () => true })()).toEqual([200, 200, 503]);
  expect(await probe({ isSchemaAwaited: () => true, uptimeMs: () => 60_000 })()).toEqual([200, 200, 200]);
  expect(await isReady({ ...WELL, isSchemaAwaited: () => true })).toBe(false);
  expect(await isReady(WELL)).toBe(true);
});

test("background work that has ended is reported as degraded, with its name", async () => {
  const { GET } = healthRoutes({ ...WELL, stoppedWork: () => ["tasks of callers"] })["/health"]!;
  const { status, body } = await GET!({} as GatewayRequest);
  expect([status, String(body)]).toEqual([200, expect.stringContaining("degraded")]);
  expect(String(body)).toContain("tasks of callers");
});
