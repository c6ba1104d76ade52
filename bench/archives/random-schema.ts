import fc from "fast-check";
import pg from "pg";

const quote = pg.escapeIdentifier;

type ColumnType = { readonly sql: string; readonly samples: readonly string[] };

const TYPES: readonly ColumnType[] = [
  { sql: "integer", samples: ["0", "-7", "2147483647"] },
  { sql: "bigint", samples: ["9007199254740993"] },
  { sql: "numeric(12, 4)", samples: ["1.5000", "-99999999.9999"] },
  { sql: "double precision", samples: ["0.1", "'NaN'", "'-Infinity'", "1e-300"] },
  { sql: "text", samples: ["''", "'(7,secret of another)'", "'a\"b\\c,\n''d'", "'NULL'", "'\\N'", "'äß€😀'"] },
  { sql: "character varying(40)", samples: ["'(1,2)'", "' padded '"] },
  { sql: "character(5)", samples: ["'ab'"] },
  { sql: "boolean", samples: ["true", "false"] },
  { sql: "json", samples: [`'{"a": [1,  2]}'`, "'null'"] },
  { sql: "jsonb", samples: [`'{"t": "t"}'`, "'\"x\"'"] },
  { sql: "uuid", samples: ["'11111111-2222-3333-4444-555555555555'"] },
  { sql: "timestamp with time zone", samples: ["'2024-02-29 23:59:59.999999+05:30'", "'infinity'"] },
  { sql: "timestamp", samples: ["'0044-03-15 12:00:00 BC'"] },
  { sql: "date", samples: ["'2024-02-29'"] },
  { sql: "interval", samples: ["'1 mon -3 days 04:05:06.7'"] },
  { sql: "bytea", samples: ["'\\x00ff'", "''"] },
  { sql: "integer[]", samples: ["'{}'", "'{1,NULL,3}'", "'[2:3]={5,6}'", "'{{1,2},{3,4}}'"] },
  { sql: "text[]", samples: [`'{"a,b",NULL,"NULL",""}'`] },
  { sql: "point", samples: ["'(1.5,-2)'"] },
  { sql: "inet", samples: ["'10.0.0.1/8'"] },
  { sql: "int4range", samples: ["'[1,5)'", "'empty'"] },
  { sql: "bit varying(9)", samples: ["B'101'"] },
  { sql: "tsvector", samples: ["'fat:2 cat:1A'"] },
];

type Column = {
  readonly name: string;
  readonly type: number;
  readonly kind: "plain" | "not null" | "default" | "generated" | "dropped" | "added";
};
type Table = {
  readonly name: string;
  readonly columns: readonly Column[];
  readonly key: "none" | "plain" | "always" | "by default";
  readonly form: "plain" | "unlogged" | "list" | "hash" | "range" | "parent";
  readonly rows: readonly (readonly number[])[];
  readonly hasIndex: boolean;
  readonly hasComment: boolean;
  readonly callsFunction: boolean;
};
export type RandomSchema = {
  readonly schema: string;
  /** The function that defaults, constraints, indexes, policies and views call. */
  readonly function: string;
  readonly types: readonly string[];
  readonly tables: readonly Table[];
};

/** Matches names of system columns, and names that no schema may have. */
const SYSTEM_NAME = /^(tableoid|xmin|xmax|cmin|cmax|ctid|pg_.*|information_schema)$/;
const ODD_NAMES = [
  "a.b",
  "it's",
  'say "t"',
  "$1",
  "Größe",
  " ",
  "€😀",
  "select",
  "x".repeat(50),
  "%I",
  "\\n",
  "-- t",
  "/*",
];

export type SchemaNames = { readonly aliases: readonly string[]; readonly words: readonly string[] };

/** Generates a schema with the given names and odd ones, and its rows. */
export function randomSchema({ aliases, words }: SchemaNames): fc.Arbitrary<RandomSchema> {
  const usable = (names: readonly string[]) => names.filter((each) => !SYSTEM_NAME.test(each));
  const name = fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...usable(aliases)) },
    { weight: 4, arbitrary: fc.constantFrom(...usable(words)) },
    { weight: 1, arbitrary: fc.constantFrom(...ODD_NAMES) },
  );
  const column = fc.record<Column>({
    name,
    type: fc.nat(TYPES.length + 3),
    kind: fc.constantFrom("plain", "plain", "plain", "not null", "default", "generated", "dropped", "added"),
  });
  const table = fc.record<Table>({
    name,
    columns: fc.uniqueArray(column, { minLength: 1, maxLength: 6, selector: ({ name: key }) => key }),
    key: fc.constantFrom("none", "plain", "always", "by default"),
    form: fc.constantFrom("plain", "plain", "unlogged", "list", "hash", "range", "parent"),
    rows: fc.array(fc.array(fc.nat(9), { minLength: 7, maxLength: 7 }), { maxLength: 5 }),
    hasIndex: fc.boolean(),
    hasComment: fc.boolean(),
    callsFunction: fc.boolean(),
  });
  return fc.record<RandomSchema>({
    schema: name,
    function: name,
    types: fc.uniqueArray(name, { minLength: 3, maxLength: 3 }),
    tables: fc.uniqueArray(table, { minLength: 1, maxLength: 5, selector: ({ name: key }) => key }),
  });
}

type WrittenSchema = { readonly statements: readonly string[]; readonly tables: readonly WrittenTable[] };
/** A table that holds rows of its own, with an expression per column. */
export type WrittenTable = { readonly name: string; readonly columns: readonly string[] };

export function writeSchema({ schema, function: functionName, types, tables }: RandomSchema): WrittenSchema {
  // Each table also defines a type, so types avoid the names of tables.
  const taken = new Set(tables.map(({ name }) => name));
  const own = types.map((name) => `${quote(schema)}.${quote(taken.has(name) ? `${name}_` : name)}`);
  const called = `${quote(schema)}.${quote(functionName)}`;
  const columnTypes = [
    ...TYPES,
    { sql: own[0]!, samples: ["'one'", "'two, three'"] },
    { sql: own[1]!, samples: ["'(7,\"x,y\",two)'".replace("two", "one"), "'(,,)'"] },
    { sql: own[2]!, samples: ["'short'"] },
    { sql: `${own[1]}[]`, samples: [`'{"(1,a,one)",NULL}'`] },
  ];
  const statements = [
    `create schema if not exists ${quote(schema)}`,
    `create function ${called}(${quote(types[0]!)} integer) returns integer immutable language sql return abs($1)`,
    `create type ${own[0]} as enum ('one', 'two, three')`,
    `create type ${own[1]} as (${quote(types[0]!)} integer, ${quote(types[1]!)} text, ${quote(types[2]!)} ${own[0]})`,
    `create domain ${own[2]} as text constraint ${quote(types[0]!)} check (length(value) < 20)`,
  ];
  const written = tables.map((table) => new TableWriter({ schema, called, table, types: columnTypes }).write());
  return {
    statements: [...statements, ...written.flatMap((table) => table.statements)],
    tables: written.flatMap((table) => table.tables),
  };
}

class TableWriter {
  readonly #schema: string;
  readonly #table: Table;
  readonly #types: readonly ColumnType[];
  /** The quoted name of the schema's function. */
  readonly #called: string;

  constructor(given: {
    readonly schema: string;
    readonly called: string;
    readonly table: Table;
    readonly types: readonly ColumnType[];
  }) {
    this.#schema = given.schema;
    this.#table = given.table;
    this.#types = given.types;
    this.#called = given.called;
  }

  write(): WrittenSchema {
    const { name, columns, form, rows, hasIndex, hasComment, callsFunction } = this.#table;
    const table = this.#name(name);
    const kept = columns.filter(({ kind }) => kind !== "dropped");
    const names = ["id of row", ...kept.map((column) => column.name)];
    const statements = [
      `create ${form === "unlogged" ? "unlogged " : ""}table ${table} (${this.#definitions().join(", ")})${this.#partitioning()}`,
      ...this.#parts(),
      ...columns
        .filter(({ kind }) => kind === "dropped")
        .map((column) => `alter table ${table} drop column ${quote(column.name)}`),
      ...columns
        .filter(({ kind }) => kind === "added")
        .map((column) => `alter table ${table} add column ${this.#definition(column)}`),
      ...rows.map((picks, index) => this.#insert(table, picks, index)),
      ...(form === "parent" ? rows.map((picks, index) => this.#insert(this.#part("child"), picks, index + 100)) : []),
      ...(hasIndex ? [`create index ${quote(`${name}_index`)} on ${table} (("id of row" + 1))`] : []),
      ...(hasComment
        ? [`comment on column ${table}.${quote(names.at(-1)!)} is 'It''s ${name.replaceAll("'", "")}'`]
        : []),
      ...(callsFunction ? this.#callers(table, names) : []),
    ];
    const stored =
      form === "parent" ? [table, this.#part("child")] : this.#isPartitioned() ? this.#partNames() : [table];
    return { statements, tables: stored.map((each) => ({ name: each, columns: names.map(quote) })) };
  }

  /** Returns statements whose objects call the function, and a view of all columns. */
  #callers(table: string, names: readonly string[]): string[] {
    const call = `${this.#called}("id of row")`;
    const last = quote(names.at(-1)!);
    return [
      `alter table ${table} add constraint ${last} check (${call} >= 0)`,
      `create index on ${table} (${call})`,
      `alter table ${table} enable row level security`,
      `create policy ${last} on ${table} using (${call} < 1000) with check (exists (select from ${table} as ${last} where ${call} = 1))`,
      `create view ${this.#part("view")} as select ${last}.*, ${call} as "called value" from ${table} as ${last}`,
    ];
  }

  #name(name: string): string {
    return `${quote(this.#schema)}.${quote(name)}`;
  }

  #part(suffix: string): string {
    return this.#name(`${this.#table.name} ${suffix}`);
  }

  #partNames(): string[] {
    return [this.#part("first"), this.#part("second")];
  }

  #isPartitioned(): boolean {
    return ["list", "hash", "range"].includes(this.#table.form);
  }

  #partitioning(): string {
    return this.#isPartitioned() ? ` partition by ${this.#table.form} ("id of row")` : "";
  }

  #definitions(): string[] {
    const { key, columns } = this.#table;
    // Before Postgres 17, partitions have no identity columns.
    const isIdentity =
      (key === "always" || key === "by default") && !this.#isPartitioned() && this.#table.form !== "parent";
    const identity = isIdentity ? ` generated ${key} as identity` : "";
    const id = `"id of row" integer${identity}${key === "none" ? "" : " primary key"}`;
    return [id, ...columns.filter(({ kind }) => kind !== "added").map((column) => this.#definition(column))];
  }

  #definition({ name, type, kind }: Column): string {
    const { sql, samples } = this.#types[type]!;
    if (kind === "generated")
      return `${quote(name)} integer generated always as (${this.#called}("id of row") * 2) stored`;
    const suffix =
      kind === "not null" ? " not null" : kind === "default" || kind === "added" ? ` default ${samples[0]}` : "";
    return `${quote(name)} ${sql}${suffix}`;
  }

  #parts(): string[] {
    const { name, form } = this.#table;
    if (form === "parent")
      return [`create table ${this.#part("child")} ("own column" text) inherits (${this.#name(name)})`];
    if (!this.#isPartitioned()) return [];
    const [first, second] = this.#partNames();
    const bounds = {
      list: ["in (1, 2)", "default"],
      hash: ["with (modulus 2, remainder 0)", "with (modulus 2, remainder 1)"],
      range: ["from (minvalue) to (3)", "from (3) to (maxvalue)"],
    }[form as "list" | "hash" | "range"].map((bound) => (bound === "default" ? bound : `for values ${bound}`));
    return [
      `create table ${first} partition of ${this.#name(name)} ${bounds[0]}`,
      `create table ${second} (like ${this.#name(name)} including all)`,
      `alter table ${this.#name(name)} attach partition ${second} ${bounds[1]}`,
    ];
  }

  #insert(table: string, picks: readonly number[], index: number): string {
    const columns = this.#table.columns.filter(({ kind }) => kind !== "dropped" && kind !== "generated");
    const values = columns.map(({ type, kind }, at) => {
      const { samples } = this.#types[type]!;
      const pick = picks[at]!;
      return pick > 7 && kind !== "not null" ? "null" : samples[pick % samples.length]!;
    });
    const names = ["id of row", ...columns.map(({ name }) => name)].map(quote);
    return `insert into ${table} (${names.join(", ")}) overriding system value values (${[index + 1, ...values].join(", ")})`;
  }
}
