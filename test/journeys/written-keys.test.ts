import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { connect, tokenOf } from "../rest-gateway/mcp/agents.ts";
import { useService } from "../serve.ts";
import {
  createTables,
  KEY_KINDS,
  type KeyKind,
  POLICY_NAMES,
  type PolicyName,
  partOf,
  treeOf,
} from "./keyed-tables.ts";

const ANN = { role: "authenticated", sub: "ann" };

const database = useDatabase({ template: "empty", sql: createTables() });
const owner = useClient(database.ownerUrl);
const service = useService({
  database,
  settings: {
    MCP: "write",
    MCP_RATE_LIMIT: "0",
    OAUTH_SERVER: "on",
    REST_REQUIRE_APIKEY: "false",
  },
});
const agent = useFixture(() => connect(new URL("/mcp", service.url), ANN));

type Row = Readonly<Record<string, unknown>>;

/** `done`, or the code of the error. */
type Outcome = string;

/** A pair of tables with a row of Ann's in each, and one of somebody else's. */
type Cell = {
  readonly kind: KeyKind;
  readonly tree: string;
  readonly part: string;
  readonly key: Row;
  readonly partKey: Row;
  /** A key that no row has. */
  newKey(): Row;
};

const outcomeOf = (status: number, text: string): Outcome => {
  const code = /"code":\s*"(\w+)"/.exec(text)?.[1];
  return status < 300 && !text.includes('"errors"') ? "done" : (code ?? `${status} ${text}`);
};

async function send(method: string, path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(service.url + path, {
    method,
    headers: { Authorization: `Bearer ${tokenOf(ANN)}`, "Content-Type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return outcomeOf(response.status, await response.text());
}

const typeOf = (table: string) => table.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
const fieldOf = (table: string) => table.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

const mutate = (field: string, type: string, input: unknown) =>
  send("POST", "/graphql", {
    query: `mutation ($i: ${type}) { ${field}(input: $i) { label } }`,
    variables: { i: input },
  });

async function callTool(name: string, given: object): Promise<Outcome> {
  const { content } = await agent.callTool({ name, arguments: { ...given } });
  const [first] = content as { text: string }[];
  const { text } = first!;
  return text.startsWith("Rows of") ? "done" : (/\((\w{5})\)/.exec(text)?.[1] ?? text);
}

const asFilter = (key: Row) =>
  Object.entries(key)
    .map(([name, value]) => `${name}=eq.${value}`)
    .join("&") || "label=eq.old";
const resourceOf = (table: string) => `/api/v1/${table.replaceAll("_", "-")}`;
const asPath = (key: Row) => Object.values(key).join(",");
const newLeaf = ({ newKey }: Cell) => ({ ...newKey(), label: "leaf" });
const nested = ({ tree, key }: Cell, prefer: string, row: object) =>
  send("PATCH", `/rest/v1/${tree}?${asFilter(key)}`, { label: "changed", ...row }, { Prefer: `nested=${prefer}` });

type Way = {
  readonly name: string;
  write(cell: Cell): Promise<Outcome>;
  /** The labels of both tables after it, where rows can be read. */
  readonly labels: string;
  readonly needs?: "key" | "nested";
  /** The outcome if rows can be added and changed, but not be read. */
  readonly unread: Outcome;
  /** The outcome if Postgres accepts no value for the key. */
  readonly always?: Outcome;
  /** The outcome if rows have no key. */
  readonly keyless?: Outcome;
};

const MINIMAL = { Prefer: "return=minimal" };
const REPRESENTATION = { Prefer: "return=representation" };
const MERGE = { Prefer: "resolution=merge-duplicates" };
const ADDED = "new,old,other / part";
const CHANGED = "changed,other / part";
/** Nothing was found to be changed. */
const UNCHANGED = "done, nothing";

const WAYS: readonly Way[] = [
  {
    name: "POST",
    write: ({ tree, newKey }) => send("POST", `/rest/v1/${tree}`, { ...newKey(), label: "new" }, MINIMAL),
    labels: ADDED,
    unread: "done",
  },
  {
    name: "POST, return=representation",
    write: ({ tree, newKey }) => send("POST", `/rest/v1/${tree}`, { ...newKey(), label: "new" }, REPRESENTATION),
    labels: ADDED,
    unread: "42501",
  },
  {
    name: "POST of a list",
    write: ({ tree, newKey }) =>
      send(
        "POST",
        `/rest/v1/${tree}`,
        ["new", "newer"].map((label) => ({ ...newKey(), label })),
        MINIMAL,
      ),
    labels: "new,newer,old,other / part",
    unread: "done",
  },
  {
    name: "POST of CSV",
    write: ({ tree, newKey }) => {
      const row = { ...newKey(), label: "new" };
      const csv = `${Object.keys(row)}\n${Object.values(row)}`;
      return send("POST", `/rest/v1/${tree}`, csv, { ...MINIMAL, "Content-Type": "text/csv" });
    },
    labels: ADDED,
    unread: "done",
  },
  {
    name: "PUT",
    write: ({ tree, key }) =>
      send("PUT", `/rest/v1/${tree}?${asFilter(key)}`, { ...key, label: "changed", owner: "ann" }, MINIMAL),
    labels: CHANGED,
    unread: "42501",
    always: "428C9",
    keyless: "PGRST105",
  },
  {
    name: "PATCH",
    write: ({ tree, key }) => send("PATCH", `/rest/v1/${tree}?${asFilter(key)}`, { label: "changed" }, MINIMAL),
    labels: CHANGED,
    unread: UNCHANGED,
  },
  {
    name: "PATCH of a list by key",
    write: ({ tree, key }) => send("PATCH", `/rest/v1/${tree}`, [{ ...key, label: "changed" }], MINIMAL),
    labels: CHANGED,
    unread: UNCHANGED,
    keyless: "21000",
  },
  {
    name: "PATCH with operators",
    write: ({ tree, key }) =>
      send("PATCH", `/rest/v1/${tree}?${asFilter(key)}`, { label: { $min: "changed" } }, { Prefer: "operators" }),
    labels: CHANGED,
    unread: UNCHANGED,
  },
  {
    name: "upsert of a known key",
    write: ({ tree, key }) => send("POST", `/rest/v1/${tree}`, { ...key, label: "changed" }, MERGE),
    labels: CHANGED,
    unread: "42501",
    always: "428C9",
    needs: "key",
  },
  {
    name: "upsert of a new row",
    write: ({ tree, newKey }) => send("POST", `/rest/v1/${tree}`, { ...newKey(), label: "new" }, MERGE),
    labels: ADDED,
    unread: "42501",
    needs: "key",
  },
  {
    name: "nested=insert",
    write: (cell) =>
      send(
        "POST",
        `/rest/v1/${cell.tree}`,
        { ...cell.newKey(), label: "new", [cell.part]: [newLeaf(cell)] },
        { Prefer: "nested=insert" },
      ),
    labels: "new,old,other / leaf,part",
    unread: "42501",
    needs: "nested",
  },
  {
    name: "nested=update",
    write: (cell) => nested(cell, "update", { [cell.part]: [{ ...cell.partKey, label: "leaf" }] }),
    labels: "changed,other / leaf",
    unread: "PGRST185",
    needs: "nested",
  },
  {
    name: "nested=upsert",
    write: (cell) => nested(cell, "upsert", { [cell.part]: [{ ...cell.partKey, label: "part" }, newLeaf(cell)] }),
    labels: "changed,other / leaf,part",
    unread: "PGRST185",
    needs: "nested",
  },
  {
    name: "nested=replace",
    write: (cell) => nested(cell, "replace", { [cell.part]: [newLeaf(cell)] }),
    labels: "changed,other / leaf",
    unread: "PGRST185",
    needs: "nested",
  },
  {
    name: "a batch with references",
    write: (cell) => {
      const { kind, tree, part, newKey } = cell;
      const references = kind.primaryKey.map((name) => [`tree_${name}`, { $ref: `0#/0/${name}` }]);
      const operations = [
        { method: "POST", path: `/${tree}`, headers: REPRESENTATION, body: { ...newKey(), label: "new" } },
        { method: "POST", path: `/${part}`, body: { ...newLeaf(cell), ...Object.fromEntries(references) } },
      ];
      return send("POST", "/rest/v1/", operations, { "Content-Type": "application/vnd.batch+json" });
    },
    labels: "new,old,other / leaf,part",
    unread: "42501",
  },
  {
    name: "POST /api/v1",
    write: ({ tree, newKey }) => send("POST", resourceOf(tree), { ...newKey(), label: "new" }),
    labels: ADDED,
    unread: "done",
  },
  {
    name: "POST of a list, /api/v1",
    write: ({ tree, newKey }) => send("POST", resourceOf(tree), [{ ...newKey(), label: "new" }]),
    labels: ADDED,
    unread: "done",
  },
  {
    name: "PATCH /api/v1",
    write: ({ tree, key }) => send("PATCH", `${resourceOf(tree)}/${asPath(key)}`, { label: "changed" }),
    labels: CHANGED,
    unread: "RESOURCE_NOT_FOUND",
    needs: "key",
  },
  {
    name: "PUT /api/v1",
    write: ({ tree, key }) => send("PUT", `${resourceOf(tree)}/${asPath(key)}`, { label: "changed", owner: "ann" }),
    labels: CHANGED,
    unread: "RESOURCE_NOT_FOUND",
    needs: "key",
  },
  {
    name: "createThing",
    write: ({ tree, newKey }) =>
      mutate(`create${typeOf(tree)}`, `Create${typeOf(tree)}Input!`, { ...newKey(), label: "new" }),
    labels: ADDED,
    unread: "PERMISSION_DENIED",
  },
  {
    name: "createThing with related rows",
    write: (cell) =>
      mutate(`create${typeOf(cell.tree)}`, `Create${typeOf(cell.tree)}Input!`, {
        ...cell.newKey(),
        label: "new",
        [`${fieldOf(cell.part)}s`]: [newLeaf(cell)],
      }),
    labels: "new,old,other / leaf,part",
    unread: "PERMISSION_DENIED",
    needs: "nested",
  },
  {
    name: "updateThings",
    write: ({ tree, key }) =>
      mutate(`update${typeOf(tree)}s`, `[Update${typeOf(tree)}sInput!]!`, [{ ...key, label: "changed" }]),
    labels: CHANGED,
    unread: UNCHANGED,
    needs: "key",
  },
  {
    name: "insert_rows of MCP",
    write: ({ tree, newKey }) => callTool("insert_rows", { table: tree, rows: [{ ...newKey(), label: "new" }] }),
    labels: ADDED,
    unread: "42501",
  },
  {
    name: "update_rows of MCP",
    write: ({ tree, key }) =>
      callTool("update_rows", {
        table: tree,
        where: Object.entries(key).map(([column, value]) => ({ column, value })),
        set: { label: "changed" },
      }),
    labels: CHANGED,
    unread: UNCHANGED,
    needs: "key",
  },
];

const BEFORE = "old,other / part";

async function seed(kind: KeyKind, policy: PolicyName): Promise<Cell> {
  const tree = treeOf(kind, policy);
  const part = partOf(kind, policy);
  let keys = 0;
  const newKey = () => kind.newKey(++keys);
  await owner.query(`truncate public.${tree}, public.${part}`);
  const insert = async (table: string, row: Row): Promise<Row> => {
    const names = Object.keys(row);
    const places = names.map((_, index) => `$${index + 1}`);
    const { rows } = await owner.query(
      `insert into public.${table} (${names}) values (${places}) returning *`,
      Object.values(row),
    );
    return Object.fromEntries(kind.primaryKey.map((name) => [name, rows[0][name]]));
  };
  const key = await insert(tree, { ...newKey(), label: "old", owner: "ann" });
  await insert(tree, { ...newKey(), label: "other", owner: "bob" });
  const reference = Object.fromEntries(Object.entries(key).map(([name, value]) => [`tree_${name}`, value]));
  const partKey = await insert(part, { ...newKey(), ...reference, label: "part", owner: "ann" });
  return { kind, tree, part, key, partKey, newKey };
}

async function labelsOf({ tree, part }: Cell): Promise<string> {
  const read = async (table: string) => {
    const { rows } = await owner.query(`select string_agg(label, ',' order by label) as labels from public.${table}`);
    return rows[0].labels;
  };
  return `${await read(tree)} / ${await read(part)}`;
}

function expected(way: Way, kind: KeyKind, policy: PolicyName): readonly [Outcome, string] {
  const refused = kind.primaryKey.length === 0 ? way.keyless : kind.isAlwaysGenerated ? way.always : undefined;
  if (refused) return [refused, BEFORE];
  if (policy !== "unread" || way.unread === "done") return ["done", way.labels];
  return way.unread === UNCHANGED ? ["done", BEFORE] : [way.unread, BEFORE];
}

describe.each(KEY_KINDS)("rows whose key is $name", (kind) => {
  const ways = WAYS.filter(({ needs }) => needs === undefined || kind.primaryKey.length > 0);
  describe.each(POLICY_NAMES)("with the policy %s", (policy) => {
    test.each(ways)("by $name", async (way) => {
      const cell = await seed(kind, policy);
      const outcome = await way.write(cell);
      expect([outcome, await labelsOf(cell)]).toEqual(expected(way, kind, policy));
    });
  });
});

describe("a key that the writer chooses, where Postgres would generate one", () => {
  const cases = KEY_KINDS.filter(({ name }) => ["by_default", "serial", "uuid"].includes(name));
  test.each(cases)("is taken by PUT: $name", async (kind) => {
    const cell = await seed(kind, "own");
    const id = kind.name === "uuid" ? randomUUID() : 4711;
    const row = { id, label: "new", owner: "ann" };
    expect(await send("PUT", `/rest/v1/${cell.tree}?id=eq.${id}`, row, MINIMAL)).toBe("done");
    expect(await labelsOf(cell)).toBe(ADDED);
  });
});
