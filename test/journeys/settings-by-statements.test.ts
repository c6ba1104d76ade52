import { env } from "node:process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { tokenFor } from "../graphql.ts";
import { openWire } from "../postgres-wire.ts";
import { serve } from "../serve.ts";

const usual = env.CALLER_SETTINGS;
beforeAll(() => {
  env.CALLER_SETTINGS = "statements";
});
afterAll(() => {
  if (usual === undefined) delete env.CALLER_SETTINGS;
  else env.CALLER_SETTINGS = usual;
});

// The tests of these files again, with a SET LOCAL for each of the caller's settings. The query makes them modules of their own.
// `npm run test:long -- statements` runs all files of the table interface, of GraphQL and of the journeys so.
const FILES = [
  "journeys/security-matrix",
  "rest-gateway/table/operators",
  "rest-gateway/table/bulk",
  "rest-gateway/table/nested-insert",
  "rest-gateway/table/nested-update",
  "rest-gateway/table/conditional-requests",
  "rest-gateway/table/table-batch",
  "rest-gateway/table/errors",
  "rest-gateway/table/since-13",
  "rest-gateway/table/role-claim",
  "rest-gateway/table/hidden-values",
  "graphql/operations/operation-transaction",
  "graphql/operations/live-queries",
  "graphql/server/bulk-mutations",
  "graphql/server/request/handle-request",
];

const database = useDatabase();

test("a service of these tests sets what a caller has by statements", async () => {
  const sent: string[] = [];
  await using opened = new AsyncDisposableStack();
  const listen = () => (bytes: Buffer) => void sent.push(bytes.toString("latin1"));
  const wire = opened.adopt(await openWire(database.url, { listen }), (each) => each.close());
  const service = opened.adopt(await serve({ ...database, url: wire.url }), (each) => each.stop());
  const headers = { apikey: tokenFor(1), Authorization: `Bearer ${tokenFor(1)}` };
  expect((await fetch(`${service.url}/rest/v1/articles`, { headers })).status).toBe(200);
  expect(sent.join("")).toContain('set local "request.jwt.claims" = ');
});

for (const file of FILES) {
  describe(file, async () => {
    await import(`../${file}.test.ts?by=statements`);
  });
}
