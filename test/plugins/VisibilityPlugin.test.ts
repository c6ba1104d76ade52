import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { GraphQLSchema, isInterfaceType, isObjectType, validateSchema } from "grafast/graphql";
import { makeSchema } from "graphile-build";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadCatalog } from "../../catalog/load-catalog.ts";
import { findHiddenElements, pruneSchema } from "../../graphql/schemas/prune-schema.ts";
import { privilegesOf } from "../../graphql/schemas/role-schemas.ts";
import { type RolePrivileges, visibilityRuleOf } from "../../plugins/VisibilityPlugin.ts";
import { runToCompletion } from "../../runtime/concurrency/stepwise.ts";
import { openPreset, type PresetOptions } from "./open-preset.ts";

const ROLES = ["anon", "authenticated", "admin", "service_role"];
const sqlOf = (name: string) => readFile(new URL(name, import.meta.url), "utf8");

describe.each([
  ["our own", {}],
  ["odd", { template: "empty", sql: await sqlOf("odd-schema.sql") }],
  ["full of clashing names", { template: "empty", sql: await sqlOf("clashing-schema.sql") }],
  ["polymorphic", { template: "empty", sql: await sqlOf("polymorphic-schema.sql") }],
] satisfies [string, PresetOptions][])("visibility in a database that is %s", (_, options) => {
  const opened = new AsyncDisposableStack();
  let schema: GraphQLSchema;
  let privileges: (roles: readonly string[]) => RolePrivileges;

  beforeAll(async () => {
    const { owner, preset } = opened.use(await openPreset(options));
    ({ schema } = await makeSchema(preset));
    const catalogOptions = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
    const { catalog } = await loadCatalog(owner, catalogOptions);
    privileges = (roles) => privilegesOf(catalog, roles);
  });
  afterAll(() => opened.disposeAsync());

  test("nothing is hidden from a caller with all privileges", () => {
    expect([...runToCompletion(findHiddenElements(schema, privileges(ROLES)))]).toEqual([]);
  });

  test("everything is hidden from a caller without privileges", () => {
    const none = privileges([]);
    const hidden = runToCompletion(findHiddenElements(schema, none));
    const needsPrivilege = (field: object) => visibilityRuleOf(field)?.(none) === false;
    const ofTables = Object.values(schema.getTypeMap()).filter(
      (type) => (isObjectType(type) || isInterfaceType(type)) && Object.values(type.getFields()).some(needsPrivilege),
    );
    expect(ofTables).toContain(schema.getQueryType());
    expect(ofTables.filter((type) => !hidden.has(type))).toEqual([]);
  });

  test.each([1, 2, 3, 4])("a caller with some privileges has a valid schema (%i)", (seed) => {
    const isGranted = (...what: unknown[]) =>
      createHash("sha256")
        .update(JSON.stringify([seed, ...what]))
        .digest()
        .readUInt8() < 128;
    const hidden = runToCompletion(
      findHiddenElements(schema, {
        may: (privilege, { name }, column = "") => isGranted(privilege, name, column),
        mayExecute: (oid) => isGranted(oid),
        ownValueOf: () => null,
      }),
    );
    const pruned = runToCompletion(pruneSchema(schema, { hidden, withheld: new Map() }));
    expect(hidden.size).toBeGreaterThan(0);
    expect(Object.keys(pruned.getTypeMap()).length).toBeGreaterThan(0);
    expect(validateSchema(new GraphQLSchema({ ...pruned.toConfig(), assumeValid: false }))).toEqual([]);
  });
});
