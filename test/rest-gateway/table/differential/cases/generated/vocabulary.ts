import fc from "fast-check";

type Kind = "number" | "text" | "flag" | "list" | "json";
type Relation = { readonly to: string; readonly many: boolean };
type Table = {
  readonly key: string;
  readonly columns: Readonly<Record<string, Kind>>;
  readonly relations: Readonly<Record<string, Relation>>;
};

export const TABLES: Readonly<Record<string, Table>> = {
  works: {
    key: "id",
    columns: {
      id: "number",
      title: "text",
      year: "number",
      price: "number",
      on_show: "flag",
      tags: "list",
      details: "json",
    },
    relations: {
      artists: { to: "artists", many: false },
      labels: { to: "labels", many: false },
      exhibitions: { to: "exhibitions", many: true },
      maker: { to: "artists", many: false },
      placements: { to: "placements", many: false },
    },
  },
  artists: {
    key: "id",
    columns: { id: "number", name: "text", born: "number", died: "number", country: "text", age: "number" },
    relations: {
      works: { to: "works", many: true },
      countries: { to: "countries", many: false },
      masterpiece: { to: "works", many: false },
    },
  },
  countries: {
    key: "code",
    columns: { code: "text", name: "text" },
    relations: { artists: { to: "artists", many: true } },
  },
  labels: {
    key: "work_id",
    columns: { work_id: "number", body: "text" },
    relations: { works: { to: "works", many: false } },
  },
  placements: {
    key: "work_id",
    columns: { work_id: "number", room_floor: "number" },
    relations: { rooms: { to: "rooms", many: false }, works: { to: "works", many: false } },
  },
  rooms: { key: "number,floor", columns: { floor: "number", number: "number", name: "text" }, relations: {} },
  exhibitions: {
    key: "id",
    columns: { id: "number", title: "text" },
    relations: {
      works: { to: "works", many: true },
      "people!curator_id": { to: "people", many: false },
    },
  },
  people: {
    key: "id",
    columns: { id: "number", name: "text", phone: "text" },
    relations: { boss_id: { to: "people", many: false } },
  },
  numbers: {
    key: "n",
    columns: { n: "number", word: "text", even: "flag", half: "number", part: "number", square: "number" },
    relations: {},
  },
};

export const words = fc.constantFrom(
  "Water Lilies",
  "Claude",
  "FR",
  "NL",
  "two",
  "four",
  "",
  "a,b",
  'say "hi"',
  "(x)",
  "naïve ★",
  "null",
);
export const numbers = fc.oneof(fc.integer({ min: -3, max: 12 }), fc.integer({ min: 1600, max: 1930 })).map(String);
export const CASTS = ["text", "int", "float8", "numeric"];

/** An operator and its value, both of the kind. */
const OPERATIONS: Readonly<Record<Kind, fc.Arbitrary<string>>> = {
  number: fc.oneof(
    fc
      .tuple(fc.constantFrom("eq", "neq", "gt", "gte", "lt", "lte", "isdistinct"), numbers)
      .map(([operator, n]) => `${operator}.${n}`),
    fc.array(numbers, { maxLength: 4 }).map((list) => `in.(${list.join(",")})`),
    fc
      .tuple(
        fc.constantFrom("eq", "gt", "lt", "gte", "lte"),
        fc.constantFrom("any", "all"),
        fc.array(numbers, { maxLength: 3 }),
      )
      .map(([operator, quantifier, list]) => `${operator}(${quantifier}).{${list.join(",")}}`),
    fc.constantFrom("is.null", "not.is.null"),
  ),
  text: fc.oneof(
    fc
      .tuple(fc.constantFrom("eq", "neq", "gt", "lte", "isdistinct"), words)
      .map(([operator, word]) => `${operator}.${word}`),
    fc
      .tuple(fc.constantFrom("like", "ilike"), fc.constantFrom("*a*", "The*", "*e", "_*", "%25o%25", "*"))
      .map(([operator, pattern]) => `${operator}.${pattern}`),
    fc
      .tuple(fc.constantFrom("match", "imatch"), fc.constantFrom("^[A-M]", "e$", "[aeiou]{2}", "x|o"))
      .map(([operator, pattern]) => `${operator}.${pattern}`),
    fc.array(words, { minLength: 1, maxLength: 3 }).map((list) => `in.(${list.map(quoted).join(",")})`),
    fc.constantFrom("is.null", "not.is.null"),
  ),
  flag: fc.constantFrom("is.true", "is.false", "is.null", "is.unknown", "not.is.true", "eq.true", "neq.false"),
  list: fc
    .tuple(
      fc.constantFrom("cs", "cd", "ov", "eq"),
      fc.constantFrom("{water}", "{night,water}", "{}", "{flowers,water}"),
    )
    .map(([operator, list]) => `${operator}.${list}`),
  json: fc.constantFrom("is.null", "not.is.null", "neq.1", 'cs.{"media":["oil"]}'),
};

/** Inside a logic tree a value that could be read as its end is quoted. */
function inTree(operation: string): string {
  const [, operator = "", value = ""] = /^((?:not\.)?[a-z]+(?:\((?:any|all)\))?\.)(.*)$/s.exec(operation)!;
  return operator + (/[,()"]/.test(value) ? quoted(value) : value);
}

/** Null, but for one in so many. */
export function sometimes<T>(arbitrary: fc.Arbitrary<T>, oneIn: number): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: oneIn - 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });
}

const columnsOf = (table: string) => Object.entries(TABLES[table]!.columns);
export const columnOf = (table: string) => fc.constantFrom(...columnsOf(table));

export function filterOf(table: string): fc.Arbitrary<[column: string, operation: string]> {
  return columnOf(table).chain(([column, kind]) =>
    fc
      .tuple(fc.boolean(), OPERATIONS[kind])
      .map(([negated, operation]) => [
        column,
        negated && !operation.startsWith("not.") ? `not.${operation}` : operation,
      ]),
  );
}

export function treeOf(table: string, depth: number): fc.Arbitrary<string> {
  const leaf = filterOf(table)
    .filter(([, operation]) => !operation.includes("in.("))
    .map(([column, operation]) => `${column}.${inTree(operation)}`);
  const branch = fc
    .tuple(
      fc.constantFrom("and", "or", "not.and", "not.or"),
      fc.array(depth > 0 ? treeOf(table, depth - 1) : leaf, { minLength: 1, maxLength: 3 }),
    )
    .map(([operator, parts]) => `${operator}(${parts.join(",")})`);
  return depth > 0 ? fc.oneof(leaf, branch) : leaf;
}

function quoted(value: string): string {
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
