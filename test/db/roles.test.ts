import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";

const content = useContent();

describe("the login of requests", () => {
  test.each(["select from public.users", "select from api.versions", "select from auth.users", "select auth.uid()"])(
    "may not by itself: %s",
    async (statement) => {
      await expect(content.requests.query(statement)).rejects.toMatchObject({ code: "42501" });
    },
  );

  test.each(["anon", "authenticated", "admin", "service_role"])("can become %s", async (role) => {
    await content.requests.query("begin");
    await content.requests.query(`set local role ${role}`);
    expect((await content.requests.query("select from public.users")).rowCount).toBe(3);
    await content.requests.query("rollback");
  });

  test("cannot become the owner", async () => {
    await expect(content.requests.query("set role postgres")).rejects.toMatchObject({ code: "42501" });
  });
});

test("no role of a request can create a permanent object", async () => {
  for (const role of ["anon", "authenticated", "admin", "service_role"]) {
    for (const schema of ["public", "auth", "api", "content_service", "extensions"]) {
      await content.requests.query("begin");
      await content.requests.query(`set local role ${role}`);
      const attempt = content.requests.query(`create table ${schema}.mine (id int)`);
      await expect(attempt, `${role} in ${schema}`).rejects.toMatchObject({ code: "42501" });
      await content.requests.query("rollback");
    }
  }
});

test("a new object has no privileges until they are granted", async () => {
  await content.owner.query("begin");
  await content.owner.query(`
    create table public.fresh (id int);
    create function public.fresh() returns int language sql as 'select 1';
  `);
  for (const role of ["anon", "authenticated", "admin", "service_role"]) {
    const { rows } = await content.owner.query(
      `select has_any_column_privilege($1, 'public.fresh', 'select, insert, update') as table,
        has_function_privilege($1, 'public.fresh()', 'execute') as function`,
      [role],
    );
    expect(rows, role).toEqual([{ table: false, function: false }]);
  }
  await content.owner.query("rollback");
});
