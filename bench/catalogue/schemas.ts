/** The size and shape of a generated schema of tables that refer to each other. */
export type SchemaSize = {
  readonly tables: number;
  /** The columns of each table, including the key and foreign keys. */
  readonly columns: number;
  readonly foreignKeys: number;
  /** The targets of references. `random`: any earlier table. `chain`: the previous table. */
  readonly shape: "random" | "chain";
  /** The number of roles that may each use one table, besides those that may use all. */
  readonly roles: number;
};

/** `gitlab` and `wide` are as large as real schemas; `roles` has a role and a policy for each table. */
export const SCHEMAS = {
  gitlab: { tables: 1_000, columns: 10, foreignKeys: 1_700, shape: "random", roles: 10 },
  thousands: { tables: 3_000, columns: 10, foreignKeys: 5_100, shape: "random", roles: 10 },
  wide: { tables: 2_000, columns: 20, foreignKeys: 3_900, shape: "random", roles: 10 },
  chain: { tables: 400, columns: 4, foreignKeys: 399, shape: "chain", roles: 1 },
  large: { tables: 10_000, columns: 4, foreignKeys: 10_000, shape: "random", roles: 10 },
  roles: { tables: 10_000, columns: 3, foreignKeys: 0, shape: "random", roles: 10_000 },
} as const satisfies Readonly<Record<string, SchemaSize>>;

export type SchemaName = keyof typeof SCHEMAS;

/** The number of tables per transaction. Statements hold locks until the end of their transaction, so there are several. */
const TABLES_AT_ONCE = 200;

const TYPES = ["text", "int", "boolean", "timestamptz", "jsonb", "bigint", "numeric", "date", "text[]"];

/** Returns the SQL of the schema, in transactions of a bounded size. The same size always gives the same SQL. */
export function schemaSql({ tables, columns, foreignKeys, shape, roles }: SchemaSize): string[] {
  const draw = generator(tables + foreignKeys);
  const keysOf = new Map<number, number[]>();
  for (let key = 0; key < foreignKeys; key++) {
    const table = shape === "chain" ? key + 2 : 2 + (key % (tables - 1));
    const target = shape === "chain" ? table - 1 : 1 + Math.floor(draw() * (table - 1));
    keysOf.set(table, [...(keysOf.get(table) ?? []), target]);
  }
  const statements = Array.from({ length: tables }, (_, index) => {
    const number = index + 1;
    const targets = keysOf.get(number) ?? [];
    const references = targets.map((target, at) => `ref_${at}_id bigint references thing_${target}`);
    const plain = Array.from(
      { length: Math.max(0, columns - 1 - targets.length) },
      (_, at) => `column_${at} ${TYPES[at % TYPES.length]}`,
    );
    const role = number <= roles ? `create role role_${number}; grant role_${number} to authenticator;` : "";
    const grantees = ["authenticated", ...(role ? [`role_${number}`] : [])];
    return `${role}
      create table thing_${number} (${["id bigint primary key", ...references, ...plain].join(", ")});
      grant select, insert, update, delete on thing_${number} to ${grantees.join(", ")};
      alter table thing_${number} enable row level security;
      create policy everybody on thing_${number} using (true);`;
  });
  const batches: string[] = [];
  for (let first = 0; first < statements.length; first += TABLES_AT_ONCE) {
    batches.push(statements.slice(first, first + TABLES_AT_ONCE).join("\n"));
  }
  return batches;
}

/** Returns a generator of numbers from 0 to below 1 that only depend on the seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
