import { describe, expect, test } from "vitest";
import { identifiesUser, isCallerByDefault, refersByUuid } from "../../../../studio/tables/edit/user-columns.ts";

type Catalog = Parameters<typeof identifiesUser>[0];
type Target = { schema: string; name: string };

const tableWith = (at: Target, key: string, references: Readonly<Record<string, Target>>) => ({
  ...at,
  primary_key: [key],
  foreign_keys: Object.entries(references).map(([column, target]) => ({ columns: [column], target })),
});
const ACCOUNTS = { schema: "auth", name: "users" };
const MEMBERS = { schema: "public", name: "members" };
const PROFILES = { schema: "public", name: "profiles" };
const FILMS = { schema: "public", name: "films" };

/** `auth.users` refers to members, whose key it shares; profiles refer to `auth.users` by their key. */
const catalogWith = (uid: string) =>
  ({
    tables: [
      tableWith(ACCOUNTS, "user_id", { user_id: MEMBERS }),
      tableWith(MEMBERS, "id", {}),
      tableWith(PROFILES, "id", { id: ACCOUNTS }),
      tableWith(FILMS, "id", { director: PROFILES }),
    ],
    functions: [{ schema: "auth", name: "uid", returns: uid }],
  }) as unknown as Catalog;

const column = (name: string, base_type = "bigint", expression: string | null = null) => ({
  name,
  base_type,
  default: expression,
});

describe("a column identifies users", () => {
  const catalog = catalogWith("bigint");
  const table = (references: Readonly<Record<string, Target>>) => tableWith(FILMS, "id", references) as never;

  test.each<[string, Target]>([
    ["the accounts", ACCOUNTS],
    ["the table whose key the accounts share", MEMBERS],
    ["a table that shares the key of the accounts", PROFILES],
  ])("that refers to %s", (_to, target) => {
    expect(identifiesUser(catalog, table({ author: target }), column("author"))).toBe(true);
    expect(identifiesUser(catalog, table({ author: target }), column("title"))).toBe(false);
  });

  test("but not one that refers to a table which only refers to users", () => {
    expect(identifiesUser(catalog, table({ film: FILMS }), column("film"))).toBe(false);
  });

  test("by its default", () => {
    for (const expression of ["auth.uid()", "(auth.uid())::text", "COALESCE(auth.uid(), 1)"]) {
      expect(isCallerByDefault({ default: expression })).toBe(true);
      expect(identifiesUser(catalog, table({}), column("author", "bigint", expression))).toBe(true);
    }
    for (const expression of [null, "myauth.uid()", "gen_random_uuid()"])
      expect(isCallerByDefault({ default: expression })).toBe(false);
  });
});

test.each([
  ["bigint", "bigint", false],
  ["uuid", "bigint", true],
  ["uuid", "uuid", true],
  ["text", "bigint", false],
  ["text", "uuid", true],
  ["bigint", "uuid", false],
])("a column of type %s refers to users by uuid, where auth.uid() is a %s: %s", (type, uid, expected) => {
  expect(refersByUuid(catalogWith(uid), column("author", type))).toBe(expected);
});
