import { createClient } from "graphql-ws";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Service } from "../../service/wiring/service.ts";
import { useDatabase } from "../database.ts";
import { startGateway, stopped } from "../program.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";

const database = useDatabase();

/** Requests wait so long for the first schema. */
const WAIT_MS = 10_000;

/** Asks again where the machine is too busy to build the schema in that time. */
const ask = async (url: string): Promise<unknown> => {
  const begun = performance.now();
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ query: "{ __typename }" }),
  });
  if (response.status === 503 && performance.now() - begun >= WAIT_MS) return ask(url);
  return response.json();
};

describe("a service that has not loaded GraphQL", () => {
  let service: Service;
  let loads: number;
  beforeEach(async () => {
    loads = 0;
    const onGraphqlLoad = () => void loads++;
    service = await serve(database, { GRAPHQL_PRELOAD: "off" }, { onGraphqlLoad });
  });
  afterEach(() => service.stop());

  test("the first requests load GraphQL, once, and are answered", async () => {
    for (const path of ["health", "health/ready"]) expect((await fetch(`${service.url}/${path}`)).status).toBe(200);
    expect(service.graphql.state()).toMatchObject({ fault: null, isBuildingFirst: false });
    expect(loads).toBe(0);
    const answer = { data: { __typename: "Query" } };
    expect(await Promise.all([ask(service.url), ask(service.url)])).toEqual([answer, answer]);
    expect(await ask(service.url)).toEqual(answer);
    expect(loads).toBe(1);
  });

  test("so does the first WebSocket", async () => {
    const client = createClient({
      url: `${service.url.replace("http", "ws")}/graphql`,
      webSocketImpl: WebSocket,
      retryAttempts: 0,
    });
    for await (const { data } of client.iterate({ query: "{ __typename }" }))
      expect(data).toEqual({ __typename: "Query" });
    await client.dispose();
    expect(loads).toBe(1);
  });

  test("the start page loads nothing, and has a sample query for each table once it is loaded", async () => {
    const readPage = async () => (await fetch(service.url)).text();
    const link = "opens with a GraphQL query of them";
    const before = await readPage();
    expect(before).toContain(link);
    expect(before).not.toContain("<h3>GraphQL</h3>");
    expect(loads).toBe(0);
    await ask(service.url);
    const after = await readPage();
    expect(after).toContain("<h3>GraphQL</h3>");
    expect(after).not.toContain(link);
  });

  test("a service that stops while it loads waits for neither", async () => {
    const answer = ask(service.url).catch(() => null);
    await expect.poll(() => loads).toBe(1);
    await service.stop();
    await answer;
  });
});

test("requests that load it do not wait as long as starts of workers that replace others", async () => {
  const impatient = await serve(database, { GRAPHQL_PRELOAD: "off" }, { schemaWaitMs: 0 });
  expect(await ask(impatient.url)).toEqual({ data: { __typename: "Query" } });
  await impatient.stop();
});

test.each([{ GRAPHQL_PRELOAD: "on" }, { GRAPHQL_PERSISTED_OPERATIONS: import.meta.dirname }])(
  "with %o it is loaded at the start",
  async (settings) => {
    const preloading = await serve(database, { GRAPHQL_PRELOAD: "off", ...settings });
    expect(preloading.graphql.sampleQuery("users")).toMatch(/^\{ users/);
    await preloading.stop();
  },
);

test("a folder of registered operations that does not exist ends the start", async () => {
  await expect(serve(database, { GRAPHQL_PRELOAD: "off", GRAPHQL_PERSISTED_OPERATIONS: "/nowhere" })).rejects.toThrow(
    "GRAPHQL_PERSISTED_OPERATIONS is not a folder: /nowhere",
  );
});

test("workers that replace others load it before they serve, once it was used", async () => {
  const gateway = await startGateway(database, { WEB_CONCURRENCY: "2" });
  const countBuilds = () => gateway.logged().split("the GraphQL schema was built").length - 1;
  const countReloads = () => gateway.printed().split("… reloaded").length - 1;
  // A signal during a reload begins no other.
  const reload = async () => {
    const reloads = countReloads();
    gateway.child.kill("SIGUSR2");
    await until(() => countReloads() === reloads + 1);
  };
  await reload();
  expect(countBuilds()).toBe(0);
  // The request is not repeated: another worker could receive it. The workers' log is another stream than the responses.
  await fetch(`${gateway.url}/graphql?query={__typename}`);
  await until(() => countBuilds() >= 1);
  await reload();
  await until(() => countBuilds() >= 3);
  expect(await stopped(gateway, "SIGTERM")).toBe(0);
  expect(countBuilds()).toBe(3);
});
