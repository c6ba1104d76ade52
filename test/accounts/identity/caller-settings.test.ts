import { expect, test } from "vitest";
import { makeMissingRoleWarning, roleSettings } from "../../../accounts/identity/caller-settings.ts";

test("role settings include those that any user may set, and exclude those that a role cannot have", () => {
  const settings = new Map([
    ["statement_timeout", "5s"],
    ["default_text_search_config", "pg_catalog.german"],
    ["app.tenant", "blue"],
    ["session_replication_role", "replica"],
    ["search_path", "elsewhere"],
    ["role", "postgres"],
    ["transaction_timeout", "1s"],
    ["extra_float_digits", "-15"],
    ["DateStyle", "German, DMY"],
    ["pgrst.db_schemas", "api"],
  ]);
  const free = new Set([...settings.keys()].filter((name) => name !== "session_replication_role"));
  const role = {
    name: "r",
    superuser: false,
    canLogin: false,
    bypassesRowSecurity: false,
    settings,
    userSettable: free,
  };
  expect(roleSettings(role)).toEqual([
    ["statement_timeout", "5s"],
    ["default_text_search_config", "pg_catalog.german"],
    ["app.tenant", "blue"],
  ]);
  expect(roleSettings(undefined)).toEqual([]);
});

test("a read-only role makes the current transaction read-only", () => {
  const settingsOf = (value: string) => {
    const settings = new Map([["default_transaction_read_only", value]]);
    const free = new Set(settings.keys());
    return roleSettings({
      name: "r",
      superuser: false,
      canLogin: false,
      bypassesRowSecurity: false,
      settings,
      userSettable: free,
    });
  };
  for (const value of ["on", "TRUE", "yes", "1"]) expect(settingsOf(value)).toEqual([["transaction_read_only", "on"]]);
  expect(settingsOf("off")).toEqual([["default_transaction_read_only", "off"]]);
});

test("a missing role is logged once for as long as it is missing", () => {
  const result: unknown[] = [];
  const warn = makeMissingRoleWarning({ warn: (about: object) => result.push(about) });
  const look = (anonRole: string, ...roles: string[]) => {
    result.length = 0;
    const known = new Map(roles.map((name) => [name, {}]));
    warn({ anonRole, loginRole: "authenticator", catalog: { roles: known as never } });
    return [...result];
  };
  expect(look("anon", "anon")).toEqual([]);
  expect(look("anon")).toEqual([{ role: "anon" }]);
  expect(look("anon", "other")).toEqual([]);
  expect(look("guest")).toEqual([{ role: "guest" }]);
  expect(look("guest", "guest")).toEqual([]);
  expect(look("guest")).toEqual([{ role: "guest" }]);
});
