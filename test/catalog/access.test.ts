import { beforeAll, describe, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import { loadCatalog } from "../../catalog/load-catalog.ts";
import type { TablePrivilege } from "../../catalog/privileges.ts";
import { useFixture } from "../fixture.ts";
import { makeFixture, tableOf } from "./fixture.ts";

let catalog: Catalog;
const fixture = useFixture(makeFixture);
beforeAll(async () => {
  catalog = await fixture.load();
});

async function askPostgres(question: string, values: readonly unknown[]): Promise<boolean> {
  const { rows } = await fixture.owner.query<{ answer: boolean }>(`select ${question} as answer`, [...values]);
  return rows[0]!.answer;
}

const quoted = ({ schema, name }: { schema: string; name: string }) =>
  `"${schema.replaceAll('"', '""')}"."${name.replaceAll('"', '""')}"`;

describe("roles", () => {
  test("are those that the login role can set", () => {
    const names = ["login", "anon", "base", "user", "admin", "reserved", "service", "auditor", 'Odd "role"=x/y'];
    // Since Postgres 16 a grant can leave out the right to become the role, or its privileges.
    if (catalog.server.version >= 160000) names.push("bare");
    expect([...catalog.roles.keys()].sort()).toEqual([...names.map(fixture.role), "pg_read_all_data"].sort());
    expect(catalog.roles.get(fixture.role("service"))?.bypassesRowSecurity).toBe(true);
    expect(catalog.roles.get(fixture.role("login"))?.canLogin).toBe(true);
  });

  test("have their settings; those for this database take precedence", () => {
    const user = catalog.roles.get(fixture.role("user"))!;
    expect(Object.fromEntries(user.settings)).toEqual({
      statement_timeout: "3s",
      search_path: "a, b",
      TimeZone: "UTC",
      "app.tenant": "blue",
      log_min_messages: "debug1",
    });
    // Only a superuser may set which statements are logged.
    expect([...user.userSettable].sort()).toEqual(["TimeZone", "app.tenant", "search_path", "statement_timeout"]);
    expect(catalog.roles.get(fixture.role("login"))!.settings.get("pgrst.db_max_rows")).toBe("5");
    expect(catalog.database).toMatchObject({ name: fixture.name, comment: "of tests" });
    expect(catalog.database.settings.get("app.answer")).toBe("42=x");
  });

  test("inherit the same roles as in Postgres", async () => {
    const names = [...catalog.roles.keys()];
    for (const role of names) {
      for (const other of names) {
        const expected = await askPostgres("pg_has_role($1, $2, 'usage')", [role, other]);
        expect([role, other, catalog.hasRole(role, other)]).toEqual([role, other, expected]);
      }
    }
  });
});

describe("privileges", () => {
  test("on tables and columns are the same as in Postgres, for every role", async () => {
    const privileges: TablePrivilege[] = ["select", "insert", "update", "delete", "truncate", "references", "trigger"];
    const tables = ["films", "directors", "actors", "awards", "film_titles"].map((name) => tableOf(catalog, name));
    const faults: string[] = [];
    let granted = 0;
    for (const role of catalog.roles.keys()) {
      for (const table of tables) {
        for (const privilege of privileges) {
          const onTable = await askPostgres("has_table_privilege($1, $2, $3)", [role, quoted(table), privilege]);
          if (onTable) granted++;
          if (catalog.hasPrivilege(role, privilege, table) !== onTable)
            faults.push(`${role} ${privilege} ${table.name}`);
          if (!["select", "insert", "update", "references"].includes(privilege)) continue;
          for (const column of table.columns.keys()) {
            const onColumn = await askPostgres("has_column_privilege($1, $2, $3, $4)", [
              role,
              quoted(table),
              column,
              privilege,
            ]);
            if (catalog.hasPrivilege(role, privilege, table, column) !== onColumn) {
              faults.push(`${role} ${privilege} ${table.name} ${column}`);
            }
          }
        }
      }
    }
    expect(faults).toEqual([]);
    expect(granted).toBeGreaterThan(10);
  });

  test("on schemas and functions are the same as in Postgres, for every role", async () => {
    const faults: string[] = [];
    for (const role of catalog.roles.keys()) {
      for (const schema of catalog.schemas.values()) {
        for (const privilege of ["usage", "create"] as const) {
          const expected = await askPostgres("has_schema_privilege($1, $2, $3)", [role, schema.name, privilege]);
          if (catalog.hasPrivilege(role, privilege, schema) !== expected)
            faults.push(`${role} ${privilege} ${schema.name}`);
        }
        for (const routine of [...schema.routines.values()].flat()) {
          const expected = await askPostgres("has_function_privilege($1, $2::oid, 'execute')", [role, routine.oid]);
          if (catalog.hasPrivilege(role, "execute", routine) !== expected) faults.push(`${role} ${routine.name}`);
        }
      }
    }
    expect(faults).toEqual([]);
  });

  test("a role that the login role cannot set has none, and a superuser has all", async () => {
    const films = tableOf(catalog, "films");
    expect(catalog.hasPrivilege(fixture.role("outside"), "select", films)).toBe(false);
    expect(catalog.hasRole(fixture.role("outside"), fixture.role("outside"))).toBe(false);
    const { catalog: ofSuperuser } = await loadCatalog(fixture.owner, { ...fixture.options, loginRole: "postgres" });
    expect(ofSuperuser.hasPrivilege("postgres", "truncate", tableOf(ofSuperuser, "awards"))).toBe(true);
    expect(ofSuperuser.roles.has(fixture.role("outside"))).toBe(true);
  });

  test("follow a grant", async () => {
    const before = catalog.hasPrivilege(fixture.role("anon"), "delete", tableOf(catalog, "actors"));
    await fixture.owner.query(`grant delete on api.actors to ${fixture.role("anon")}`);
    const after = await fixture.load(catalog);
    expect(before).toBe(false);
    expect(after.hasPrivilege(fixture.role("anon"), "delete", tableOf(after, "actors"))).toBe(true);
  });
});
