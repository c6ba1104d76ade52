import { expect, test } from "vitest";
import { useContent } from "./content.ts";
import { rolledBackAfter } from "./rolled-back.ts";

const content = useContent();

const withAccounts = rolledBackAfter(
  content,
  `insert into auth.users (user_id, username) values (1, 'alice'), (2, 'bob');
   insert into auth.user_roles (user_id, role) values (1, 'admin'), (2, 'admin');
   insert into content_service.table_views (schema_name, table_name, name, query, saved_by)
     values ('public', 'users', 'hers', '', 1), ('public', 'users', 'anybody''s', '', null), ('public', 'users', 'of a stranger', '', 99)`,
);

const mayChange = (name: string, user: number | null) =>
  `select content_service.may_change_view(view, ${user}) from content_service.table_views as view where name = '${name.replace("'", "''")}'`;

test.each([
  ["hers", 1, true],
  ["hers", 2, false],
  ["hers", null, false],
  ["anybody's", 1, true],
  ["anybody's", null, true],
  ["of a stranger", 2, true],
] as const)("a view (%s) by %s: may be changed: %s", (name, user, expected) =>
  withAccounts(async ({ value }) => {
    expect(await value(mayChange(name, user))).toBe(expected);
  }),
);

test.each([
  ["is disabled", "update auth.users set disabled_at = now() where user_id = 1"],
  ["has another role", "update auth.user_roles set role = 'authenticated' where user_id = 1"],
])("a view is everybody's when the administrator who saved it %s", (_, change) =>
  withAccounts(async ({ rows, value }) => {
    expect(await value(mayChange("hers", 2))).toBe(false);
    await rows(change);
    expect(await value(mayChange("hers", 2))).toBe(true);
  }),
);

test("names are unique for a table", () =>
  withAccounts(async ({ rows, refusal }) => {
    const insert = (table: string) =>
      `insert into content_service.table_views (schema_name, table_name, name, query) values ('public', '${table}', 'hers', '')`;
    expect(await refusal(insert("users"))).toBe("23505");
    await rows(insert("articles"));
  }));
