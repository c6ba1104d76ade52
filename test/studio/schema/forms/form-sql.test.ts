import type pg from "pg";
import { describe, expect, test } from "vitest";
import {
  addColumn,
  alterColumn,
  type ColumnForm,
  type ColumnState,
  commentOnColumn,
  dropColumn,
  NEW_COLUMN,
  renameColumn,
} from "../../../../studio/schema/forms/column-sql.ts";
import {
  addCheck,
  addForeignKey,
  addUnique,
  createIndex,
  dropConstraint,
  dropIndex,
  validateConstraint,
} from "../../../../studio/schema/forms/constraint-sql.ts";
import {
  alterPolicy,
  applyTemplate,
  changeGrants,
  createPolicy,
  dropPolicy,
  POLICY_TEMPLATES,
  type PolicyForm,
  setRowSecurity,
} from "../../../../studio/schema/forms/policy-sql.ts";
import {
  addEnumLabel,
  commentOnTable,
  createEnum,
  createTable,
  dropTable,
  publishTable,
  renameTable,
  type TableForm,
} from "../../../../studio/schema/forms/table-sql.ts";
import { useClient, useDatabase } from "../../../database.ts";

const database = useDatabase();
const owner = useClient(database.ownerUrl);

const rows = async (sql: string, values: unknown[] = []) => (await owner.query(sql, values)).rows;

/** Runs a file of the current migration again, which happens each time an earlier one changes. */
async function runTwice(sql: string): Promise<void> {
  for (let round = 0; round < 2; round++) await owner.query(sql);
}

/** Names with characters that SQL must quote. */
const NAMES = ["plain", 'quo"te', "Semi;colon", "drop table x;--", "$$ end $$", "it's", "back\\slash", "Größe ☃"];
const ROLES = ["anon", "authenticated", "admin", "service_role"];

const column = (form: Partial<ColumnForm>): ColumnForm => ({ ...NEW_COLUMN, ...form });
const key = column({ name: "id", type: "bigint", identity: "always", notNull: true });
const nobody = { column: "", table: { schema: "public", name: "" }, organisation: "", user: "" };

function tableForm(name: string, form: Partial<TableForm> = {}): TableForm {
  return {
    schema: "public",
    name,
    comment: "",
    columns: [key],
    primaryKey: ["id"],
    checks: [],
    access: { template: "none", owner: "", membership: nobody, roles: ROLES },
    publish: false,
    ...form,
  };
}

describe.each(NAMES)("with the name %s", (name) => {
  const table = { schema: "public", name: `${name} t` };
  const columnName = `${name} c`;

  test("a table is created with columns, constraints, policies and comments", async () => {
    const type = { schema: "public", name: `${name} e` };
    await runTwice(createEnum({ ...type, labels: [name, "second"] }));
    const form = tableForm(table.name, {
      comment: `${name}\n'quoted' \\ -- ; $$`,
      columns: [
        key,
        column({
          name: columnName,
          default: "'x'",
          notNull: true,
          unique: true,
          check: "length(id::text) > 0 -- always",
          comment: name,
        }),
        column({ name: "kind", type: `public."${type.name.replaceAll('"', '""')}"` }),
        column({ name: "price", type: "numeric(10, 2);", default: "0;" }),
        column({ name: "parent", type: "bigint", references: { table, column: "id", onDelete: "set null" } }),
        column({ name: "user_id", type: "bigint", default: "auth.uid()" }),
      ],
      checks: ["price >= 0", "id <> parent"],
      access: { template: "owner reads and writes", owner: "user_id", membership: nobody, roles: ROLES },
      publish: true,
    });
    await runTwice(createTable(form));
    const found = await rows(
      `select obj_description(oid) as comment, relrowsecurity as secured, relreplident as identity,
        (select array_agg(conname::text order by conname) from pg_constraint where conrelid = c.oid and contype <> 'n') as constraints,
        (select array_agg(polname::text order by polname) from pg_policy where polrelid = c.oid) as policies
       from pg_class as c where relname = $1 and relkind = 'r'`,
      [table.name],
    );
    expect(found).toEqual([
      {
        comment: form.comment,
        secured: true,
        identity: "f",
        constraints: expect.arrayContaining([
          `${table.name}_pkey`,
          `${table.name}_${columnName}_key`,
          `${table.name}_parent_fkey`,
        ]),
        policies: ["admin_all", "all_own"],
      },
    ]);
    expect(found[0]!.constraints).toHaveLength(6);
  });

  test("a column is added, changed, renamed and dropped", async () => {
    await runTwice(addColumn(table, column({ name: `${name} n`, type: "text", default: "'1'", comment: name })));
    const from: ColumnState = { name: `${name} n`, type: "text", default: "'1'::text", notNull: false, comment: name };
    const to: ColumnState = { name: `${name} r`, type: "int", default: "2", notNull: true, comment: "" };
    await runTwice(alterColumn(table, { from, to, using: "" }));
    const changed = `select format_type(atttypid, atttypmod) as type, attnotnull as required,
        pg_get_expr(adbin, adrelid) as default, col_description(attrelid, attnum) as comment
      from pg_attribute as a left join pg_attrdef on adrelid = attrelid and adnum = attnum
      where attrelid = (select oid from pg_class where relname = $1 and relkind = 'r') and attname = $2`;
    expect(await rows(changed, [table.name, to.name])).toEqual([
      { type: "integer", required: true, default: "2", comment: null },
    ]);
    await runTwice(
      alterColumn(table, {
        from: to,
        to: { ...to, type: "text", default: "", notNull: false },
        using: `"${to.name.replaceAll('"', '""')}"::text || 'x'`,
      }),
    );
    expect(await rows(changed, [table.name, to.name])).toMatchObject([
      { type: "text", required: false, default: null },
    ]);
    await runTwice(renameColumn(table, to.name, `${name} again`));
    await runTwice(commentOnColumn(table, `${name} again`, name));
    await runTwice(dropColumn(table, `${name} again`, { cascade: true }));
    expect(await rows(changed, [table.name, `${name} again`])).toEqual([]);
  });

  test("constraints and indexes are added and dropped", async () => {
    const constraint = `${name} k`;
    const index = { schema: "public", name: `${name} i` };
    const reference = {
      columns: ["parent"],
      target: table,
      targetColumns: ["id"],
      onDelete: "cascade",
      onUpdate: "set null",
    } as const;
    await runTwice(addForeignKey(table, { ...reference, name: constraint, notValid: true }));
    await runTwice(validateConstraint(table, constraint));
    const valid = "select convalidated as valid, confdeltype as deleted from pg_constraint where conname = $1";
    expect(await rows(valid, [constraint])).toEqual([{ valid: true, deleted: "c" }]);
    await runTwice(addCheck(table, { name: constraint, condition: "price < 100 -- cheap", notValid: false }));
    await runTwice(addUnique(table, { name: constraint, columns: [columnName, "kind"], nullsNotDistinct: true }));
    await runTwice(dropConstraint(table, constraint, { cascade: true }));
    expect(await rows(valid, [constraint])).toEqual([]);
    const form = {
      name: index.name,
      method: "btree",
      columns: [columnName],
      expression: "price * 2",
      unique: true,
      where: "price > 1;",
    } as const;
    await runTwice(createIndex(table, { ...form, concurrently: false }));
    const indexed =
      "select pg_get_expr(indpred, indrelid) as where from pg_index where indexrelid = (select oid from pg_class where relname = $1)";
    expect(await rows(indexed, [index.name])).toEqual([{ where: "(price > (1)::numeric)" }]);
    await runTwice(dropIndex(index, { concurrently: false }));
    await runTwice(createIndex(table, { ...form, concurrently: true }));
    await runTwice(dropIndex(index, { concurrently: true }));
    expect(await rows(indexed, [index.name])).toEqual([]);
  });

  test("policies are created, changed and dropped", async () => {
    const policy: PolicyForm = {
      name: `${name} p`,
      command: "update",
      permissive: false,
      roles: ["public"],
      using: "true",
      check: "id > 0 -- ok",
    };
    await runTwice(createPolicy(table, policy));
    const found =
      "select permissive, roles::text[] as roles, cmd, qual, with_check from pg_policies where tablename = $1 and policyname = $2";
    expect(await rows(found, [table.name, policy.name])).toEqual([
      { permissive: "RESTRICTIVE", roles: ["public"], cmd: "UPDATE", qual: "true", with_check: "(id > 0)" },
    ]);
    const insert: PolicyForm = {
      ...policy,
      name: `${name} q`,
      command: "insert",
      permissive: true,
      roles: ["anon", "admin"],
    };
    await runTwice(alterPolicy(table, policy.name, insert));
    expect(await rows(found, [table.name, policy.name])).toEqual([]);
    expect(await rows(found, [table.name, insert.name])).toMatchObject([
      { cmd: "INSERT", qual: null, roles: ["admin", "anon"] },
    ]);
    for (const command of ["all", "select", "delete"] as const)
      await runTwice(createPolicy(table, { ...insert, command }));
    await runTwice(dropPolicy(table, insert.name));
    expect(await rows(found, [table.name, insert.name])).toEqual([]);
    await runTwice(setRowSecurity(table, { isEnabled: false }));
    await runTwice(setRowSecurity(table, { isEnabled: true }));
  });

  test.each(POLICY_TEMPLATES)("the template “%s” can be applied", async (template) => {
    const membership = { column: "parent", table, organisation: "id", user: "user_id" };
    const form = { template, owner: "user_id", membership, writable: [columnName], roles: ROLES };
    await runTwice(applyTemplate(table, form));
    const protection = "select relrowsecurity from pg_class where relname = $1 and relkind = 'r'";
    expect(await rows(protection, [table.name])).toEqual([{ relrowsecurity: true }]);
  });

  test("privileges are granted and revoked, the type gets a label, and the table another name", async () => {
    const granted =
      "select has_table_privilege('anon', oid, 'delete') as granted from pg_class where relname = $1 and relkind = 'r'";
    await runTwice(changeGrants(table, { anon: ["select"] }, { anon: ["delete", "update"], public: ["select"] }));
    expect(await rows(granted, [table.name])).toEqual([{ granted: true }]);
    await runTwice(changeGrants(table, { anon: ["delete", "update"], public: ["select"] }, {}));
    expect(await rows(granted, [table.name])).toEqual([{ granted: false }]);
    await runTwice(addEnumLabel({ schema: "public", name: `${name} e` }, `${name} third`, name));
    await runTwice(addEnumLabel({ schema: "public", name: `${name} e` }, `${name} last`, null));
    expect(
      await rows(
        "select enumlabel as label from pg_enum join pg_type as t on t.oid = enumtypid where typname = $1 order by enumsortorder",
        [`${name} e`],
      ),
    ).toEqual([name, `${name} third`, "second", `${name} last`].map((label) => ({ label })));
    await runTwice(commentOnTable(table, ""));
    await runTwice(publishTable(table));
    await runTwice(renameTable(table, `${name} renamed`));
    await runTwice(dropTable({ ...table, name: `${name} renamed` }, { cascade: true }));
    expect(await rows("select from pg_class where relname = $1", [`${name} renamed`])).toEqual([]);
  });
});

describe("the policies of a template", () => {
  const as = async (role: string, sub: string, sql: string) => {
    await owner.query("begin");
    try {
      await owner.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify({ sub, role })]);
      await owner.query(`set local role ${role}`);
      return await owner.query(sql).then(
        ({ rowCount }) => rowCount,
        (error: pg.DatabaseError) => error.code,
      );
    } finally {
      await owner.query("rollback");
    }
  };

  test("let everybody read, and only administrators write", async () => {
    await owner.query(
      createTable(
        tableForm("read", {
          columns: [key, column({ name: "word" })],
          access: { template: "everybody reads", owner: "", membership: nobody, roles: ROLES },
        }),
      ),
    );
    await owner.query("insert into public.read (word) values ('a')");
    expect(await as("anon", "", "select from public.read")).toBe(1);
    expect(await as("authenticated", "1", "insert into public.read (word) values ('b')")).toBe("42501");
    expect(await as("admin", "1", "update public.read set word = 'b'")).toBe(1);
  });

  test("let owners read and write their rows", async () => {
    const columns = [
      key,
      column({ name: "word" }),
      column({ name: "user_id", type: "bigint", default: "auth.uid()", notNull: true }),
    ];
    await owner.query(
      createTable(
        tableForm("owned", {
          columns,
          access: { template: "owner reads and writes", owner: "user_id", membership: nobody, roles: ROLES },
        }),
      ),
    );
    await owner.query("insert into public.owned (word, user_id) values ('a', 1), ('b', 2)");
    expect(await as("authenticated", "1", "select from public.owned")).toBe(1);
    expect(await as("authenticated", "1", "update public.owned set word = 'c'")).toBe(1);
    expect(await as("authenticated", "1", "insert into public.owned (word) values ('d')")).toBe(1);
    expect(await as("authenticated", "1", "update public.owned set user_id = 2")).toBe("42501");
    expect(await as("anon", "", "select from public.owned")).toBe("42501");
    expect(await as("admin", "1", "select from public.owned")).toBe(2);
  });

  test("let members read and write the rows of their organisation", async () => {
    await owner.query(
      createTable(
        tableForm("members", {
          columns: [column({ name: "org", type: "bigint" }), column({ name: "member", type: "bigint" })],
          primaryKey: ["org", "member"],
          access: { template: "everybody reads", owner: "", membership: nobody, roles: ROLES },
        }),
      ),
    );
    await owner.query("insert into public.members values (1, 10), (2, 20)");
    const membership = {
      column: "org_id",
      table: { schema: "public", name: "members" },
      organisation: "org",
      user: "member",
    };
    const columns = [key, column({ name: "org_id", type: "bigint" })];
    await owner.query(
      createTable(
        tableForm("shared", {
          columns,
          access: { template: "members read and write", owner: "", membership, roles: ROLES },
        }),
      ),
    );
    await owner.query("insert into public.shared (org_id) values (1), (1), (2)");
    expect(await as("authenticated", "10", "select from public.shared")).toBe(2);
    expect(await as("authenticated", "10", "insert into public.shared (org_id) values (2)")).toBe("42501");
    expect(await as("authenticated", "10", "insert into public.shared (org_id) values (1)")).toBe(1);
    expect(await as("authenticated", "30", "select from public.shared")).toBe(0);
  });

  test("name only roles that exist", async () => {
    const sql = createTable(
      tableForm("plain", {
        columns: [key, column({ name: "word" })],
        access: { template: "everybody reads", owner: "", membership: nobody, roles: ["anon"] },
      }),
    );
    expect(sql).toContain('to "anon"');
    expect(sql).not.toMatch(/service_role|authenticated|"admin"/);
    await runTwice(sql);
  });
});
