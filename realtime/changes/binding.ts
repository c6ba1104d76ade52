import { hash } from "node:crypto";
import type { Column } from "../../engine/catalog/columns.ts";
import type { CatalogKeeper } from "../../engine/catalog/keep.ts";
import type { QualifiedName } from "../../engine/catalog/qualified-name.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Statement } from "../../engine/database/statement.ts";
import { ApiError } from "../../engine/errors.ts";
import { memoized } from "../../engine/memoized.ts";
import { quotedName } from "../../engine/quoted-name.ts";
import type { BindingRequest } from "../join-request.ts";
import { spellWord } from "../protocol.ts";
import type { BlindSpots } from "./blind-spots.ts";
import { type Condition, parseFilter } from "./filter.ts";
import { isFrugal } from "./frugal-pattern.ts";
import type { Published } from "./published.ts";
import { type Asked, comparison, isPattern, valueType } from "./question.ts";
import { isKnownHere, makeRowTest, type RowTest } from "./row-test.ts";
import { type Sight, sightOf } from "./sight.ts";

/** Which changes a client wants to hear of. */
export type Binding = {
  readonly id: number;
  readonly event: "*" | "INSERT" | "UPDATE" | "DELETE";
  /** Null: any. */
  readonly schema: string | null;
  readonly table: string | null;
  readonly tests: readonly RowTest[];
  /** Null: all columns that the subscriber may read. None: the key. */
  readonly select: ReadonlySet<string> | null;
};

/** What a binding is read against. */
export type BindingGround = {
  readonly catalog: Pick<CatalogKeeper, "current" | "reload">;
  readonly role: string;
  readonly published: Published;
  readonly blindSpots: BlindSpots;
  /** Of a caller whom everybody can be. */
  readonly isAnonymous: boolean;
  /** Asks Postgres as the subscriber's role; rejects with its own error. */
  readonly ask: (statement: Statement) => Promise<Rows>;
  /** The same of the values of a filter, which with patterns among them may take any time. */
  readonly readValues: (statement: Statement, hasPattern: boolean) => Promise<Rows>;
};

type Rows = readonly (readonly (string | null)[])[];

const EVENTS = ["*", "INSERT", "UPDATE", "DELETE"] as const;
const ID_BITS = 27;

/** The id of each request, distinct for distinct ones: the client compares them, and none is 0. */
export function bindingIds(requests: readonly BindingRequest[]): readonly number[] {
  const taken = new Map<number, string>();
  return requests.map((request) => {
    const text = JSON.stringify(request);
    let id = Number.parseInt(hash("sha256", text, "hex").slice(0, 8), 16) % 2 ** ID_BITS || 1;
    while (taken.has(id) && taken.get(id) !== text) id++;
    taken.set(id, text);
    return id;
  });
}

/** What one join asks for: many bindings of one table ask Postgres the same. */
export function makeBindingReader(ground: BindingGround) {
  const answers = memoized((statement: string) => ground.ask(JSON.parse(statement)));
  const values = memoized((asked: string) => {
    const { statement, hasPattern } = JSON.parse(asked);
    return ground.readValues(statement, hasPattern);
  });
  const own: BindingGround = {
    ...ground,
    ask: (statement) => answers(JSON.stringify(statement)),
    readValues: (statement, hasPattern) => values(JSON.stringify({ statement, hasPattern })),
  };
  return (request: BindingRequest, id: number) => resolveBinding(request, id, own);
}

/** Null: nobody here may hear of such changes, and nobody is told why: that would tell what there is. */
async function resolveBinding(
  request: BindingRequest,
  id: number,
  { catalog, role, isAnonymous, published, blindSpots, ask, readValues }: BindingGround,
): Promise<Binding | null> {
  const event = EVENTS.find((name) => name === spellWord(request.event ?? "*").toUpperCase());
  const schema = nameOrAny(request.schema, "public");
  const table = nameOrAny(request.table, null);
  const filter = request.filter ?? "";
  const conditions = typeof filter === "string" ? parseFilter(filter) : null;
  const names = request.select ?? null;
  if (names !== null && !Array.isArray(names)) return null;
  if (isAnonymous && !conditions?.every(isFrugal)) return null;
  if (!event || !conditions || !(await published.has(schema, table))) return null;
  const select = names && new Set(names.map(spellWord));
  if (schema === null || table === null) {
    return conditions.length > 0 || select ? null : { id, event, schema, table, tests: [], select: null };
  }
  const named = [...conditions.map(({ column }) => column), ...(select ?? [])];
  const ground = { catalog, role, ask };
  const open = findOpen(ground, { schema, name: table }, named) ?? (await meet(ground, { schema, name: table }, named));
  if (!open) return null;
  const { found, sight } = open;
  const columns = await published.columns(found);
  if (columns && !named.every((column) => columns.has(column))) return null;
  const isBlind = columns && typeof sight.rows === "object" && (await blindSpots(found, columns)).length > 0;
  if (isBlind) return null;
  const tests = await readTests(conditions, found, readValues);
  return tests && { id, event, schema, table, tests, select };
}

type Open = { readonly found: Table; readonly sight: Sight };
type OpenGround = Pick<BindingGround, "catalog" | "role" | "ask">;

/** The table, where the role may read it and all of these columns, as far as the catalogue knows. */
function findOpen({ catalog, role }: OpenGround, name: QualifiedName, columns: readonly string[]): Open | null {
  const current = catalog.current();
  const found = current.findTable(name);
  const sight = found && sightOf(current, found, role);
  return sight && columns.every((column) => sight.columns.has(column)) ? { found, sight } : null;
}

const IS_GRANTED = `
  select has_any_column_privilege($1::text, 'select')
    and coalesce(bool_and(has_column_privilege($1::text, name, 'select')), true)
  from json_array_elements_text($2::json) as name`;

/** What was made, or granted, a moment ago may not be in the catalogue yet. */
async function meet(ground: OpenGround, name: QualifiedName, columns: readonly string[]): Promise<Open | null> {
  const { catalog, ask } = ground;
  if (!catalog.current().schemas.get(name.schema)?.exposed) return null;
  const values = [quotedName(name.schema, name.name), JSON.stringify(columns)];
  try {
    const [row] = await ask({ text: IS_GRANTED, values });
    if (row?.[0] !== "t") return null;
  } catch (error) {
    return unlessFailed(error);
  }
  await catalog.reload();
  return findOpen(ground, name, columns);
}

/** `*`, and no name at all, stand for any. */
function nameOrAny(value: unknown, absent: string | null): string | null {
  if (value === undefined || value === null || value === "") return absent;
  return value === "*" ? null : spellWord(value);
}

/** Postgres reads the values, and says whether the operators fit; null when it refuses one. */
async function readTests(
  conditions: readonly Condition[],
  table: Table,
  readValues: BindingGround["readValues"],
): Promise<readonly RowTest[] | null> {
  if (conditions.length === 0) return [];
  const values: string[] = [];
  const expressions = conditions.flatMap((condition) => trials(condition, table, (value) => `$${values.push(value)}`));
  try {
    const statement = { text: `select ${expressions.map(({ sql }) => sql).join(", ")}`, values };
    const [row = []] = await readValues(
      statement,
      conditions.some(({ operator }) => isPattern(operator)),
    );
    return conditions.map((condition) => {
      const own = expressions.flatMap((trial, at) =>
        trial.of === condition && trial.isCanonical ? [row[at] ?? null] : [],
      );
      return makeRowTest(condition, own, table.columns.get(condition.column)!.baseType);
    });
  } catch (error) {
    return unlessFailed(error);
  }
}

/** What cannot be answered now is no fault of what was asked for. */
function unlessFailed(error: unknown): null {
  if (error instanceof ApiError && error.status >= 500) throw error;
  return null;
}

type Trial = { readonly of: Condition; readonly sql: string; readonly isCanonical: boolean };

/** The condition held against no row at all, and its values as the column's type writes them: a cast would write a boolean otherwise. */
function trials(condition: Condition, table: Table, parameter: (value: string) => string): readonly Trial[] {
  const { operator, values, column } = condition;
  const known = table.columns.get(column)!;
  const nothing = `(null::${known.sqlType})`;
  const trial = (sql: string, isCanonical = false): Trial => ({ of: condition, sql, isCanonical });
  if (operator === "is") return [trial(`${nothing} is ${values[0]}`)];
  const asked: Asked = operator === "neq" || operator === "in" || operator === "isdistinct" ? "eq" : operator;
  return values.flatMap((value) => {
    const place = parameter(value);
    // Held against a text, so that a pattern which cannot be read is found out.
    const left = asked === "match" || asked === "imatch" ? `coalesce(${nothing}, '')` : nothing;
    const compared = trial(comparison(left, asked, place, known));
    return asked === "eq" || isKnownHere(condition, known.baseType)
      ? [compared, trial(canonical(place, known, table), true)]
      : [compared];
  });
}

/** Null where equal texts may be written differently, by a collation that takes no notice of capitals perhaps. */
function canonical(value: string, { baseType, position }: Column, { oid }: Table): string {
  const written = `concat(${value}::${valueType({ baseType })})`;
  return baseType.name === "text" || baseType.name === "varchar"
    ? `case when (select collisdeterministic from pg_catalog.pg_collation as c join pg_catalog.pg_attribute as a
        on c.oid = attcollation where attrelid = ${oid} and attnum = ${position}) then ${written} end`
    : written;
}
