import { expect, test } from "vitest";
import type { Catalog } from "../../../catalog/catalog.ts";
import { SurfaceCache } from "../../../rest-gateway/mcp/surface-cache.ts";
import { readRecordedCatalog } from "../../planner/recorded-catalog.ts";

const config = { mcp: "read", schemas: ["api"], mcpSchemas: null, mcpMaxRows: 100 } as const;
const callerWith = (scope: string) => ({ role: "anon", claims: { oauth_grant_id: "1", scope } });
const SCOPES = Array.from({ length: 20 }, (_, index) => `read:t${index}`);

function openCache(first: Catalog) {
  let catalog = first;
  const cache = new SurfaceCache({ config, catalog: () => catalog });
  return { of: (scope: string) => cache.of(callerWith(scope)), use: (next: Catalog) => (catalog = next) };
}

test("a full cache still answers from what it has, and is emptied only for another entry", async () => {
  const cache = openCache(await readRecordedCatalog());
  const made = SCOPES.map((scope) => cache.of(scope));
  expect(SCOPES.map((scope) => cache.of(scope)).every((again, index) => again === made[index])).toBe(true);
  await cache.of("read");
  expect(cache.of(SCOPES[0]!)).not.toBe(made[0]);
});

test("each catalogue has its own tools, also while another one is in use", async () => {
  const [one, other] = [await readRecordedCatalog(), await readRecordedCatalog()];
  const cache = openCache(one);
  const ofOne = cache.of("read");
  cache.use(other);
  const ofOther = cache.of("read");
  expect((await ofOther).catalog).toBe(other);
  cache.use(one);
  expect(cache.of("read")).toBe(ofOne);
  expect((await ofOne).catalog).toBe(one);
});

test("tools that could not be made are made again, and those of another catalogue stay", async () => {
  const catalog = await readRecordedCatalog();
  const broken = { ...catalog, hasPrivilege: () => raise() } as unknown as Catalog;
  const cache = openCache(broken);
  const refused = cache.of("read");
  cache.use(catalog);
  const made = cache.of("read");
  await expect(refused).rejects.toThrow("broken");
  expect(cache.of("read")).toBe(made);
  cache.use(broken);
  const again = cache.of("read");
  expect(again).not.toBe(refused);
  await expect(again).rejects.toThrow("broken");
});

function raise(): never {
  throw new Error("broken");
}
