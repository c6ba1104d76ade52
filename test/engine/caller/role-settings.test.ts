import { expect, test } from "vitest";
import { settingsOfRole } from "../../../engine/caller/role-settings.ts";

test("of a role's settings those hold that any login may set for itself", () => {
  const settings = new Map([
    ["statement_timeout", "5s"],
    ["app.tenant", "blue"],
    ["session_replication_role", "replica"],
    ["pgrst.db_schemas", "api"],
  ]);
  const role = { name: "r", superuser: false, canLogin: false, bypassesRowSecurity: false, settings };
  expect(settingsOfRole(role)).toEqual([
    ["statement_timeout", "5s"],
    ["app.tenant", "blue"],
  ]);
  expect(settingsOfRole(undefined)).toEqual([]);
});
