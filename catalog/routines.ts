import type { CatalogQuery } from "./catalog-query.ts";
import {
  baseTypeOf,
  type CatalogTypes,
  type DataType,
  MEDIA_TYPE,
  type QualifiedName,
  type TypeAttribute,
} from "./data-types.ts";
import type { Grants } from "./privileges.ts";
import { parseSettings } from "./roles.ts";

/** Postgres resolves `row.count` to `count(row)` if the row has no such column. */
const ROW_AGGREGATES = `
  select distinct p.proname as name
  from pg_aggregate a join pg_proc p on p.oid = a.aggfnoid join pg_type t on t.oid = p.proargtypes[0]
  where a.aggkind = 'n' and p.pronargs = 1 and (t.typtype = 'c' or t.typname in
    ('any', 'anyelement', 'anynonarray', 'anycompatible', 'anycompatiblenonarray', 'record'))
  order by p.proname`;

const MEDIA_TYPE_NAME = new RegExp(MEDIA_TYPE);

export type Routine = QualifiedName & {
  readonly oid: number;
  readonly kind: "function" | "aggregate";
  /** The input arguments (in, inout and variadic), in order. */
  readonly arguments: readonly RoutineArgument[];
  readonly returns: RoutineReturn;
  readonly volatility: "immutable" | "stable" | "volatile";
  readonly language: string;
  readonly securityDefiner: boolean;
  /** True for `returns null on null input`. */
  readonly strict: boolean;
  /** False if Postgres may inline its query into the calling query, and the query may read tables with row-level security. */
  readonly showsAllRows: boolean;
  /** The settings of the function's `set … to …` clauses. */
  readonly settings: ReadonlyMap<string, string>;
  readonly owner: string;
  readonly comment: string | null;
  readonly extension: string | null;
  readonly grants: Grants;
};

export type RoutineArgument = {
  readonly name: string | null;
  readonly mode: "in" | "inout" | "variadic";
  readonly type: DataType;
  readonly required: boolean;
  readonly default: string | null;
};

export type RoutineReturn = {
  /** The shape is `composite` also if there are out arguments or `returns table`, even with one column. */
  readonly shape: "void" | "scalar" | "composite";
  readonly type: DataType;
  readonly set: boolean;
  /** `rows 1` declares at most one row. */
  readonly estimatedRows: number;
  /** Out, inout and table arguments; empty if there are none and the type describes the result. */
  readonly columns: ReadonlyMap<string, TypeAttribute>;
};

type RoutineRow = {
  oid: number;
  schema: string;
  name: string;
  prokind: "f" | "a";
  types: number[];
  modes: ("i" | "o" | "b" | "v" | "t")[] | null;
  names: string[] | null;
  inputs: number;
  withDefault: number;
  defaults: (string | null)[] | null;
  returns: number;
  set: boolean;
  estimatedRows: number;
  volatility: keyof typeof VOLATILITIES;
  language: string;
  securityDefiner: boolean;
  strict: boolean;
  settings: string[] | null;
  owner: string;
  acl: string;
  comment: string | null;
  extension: string | null;
};

const VOLATILITIES = { i: "immutable", s: "stable", v: "volatile" } as const;

/** $1 is the exposed schemas, $2 the schemas whose tables are read; functions of their rows are read in any schema. */
const ROUTINES = `
  select p.oid, n.nspname as schema, p.proname as name, p.prokind,
    coalesce(p.proallargtypes, string_to_array(p.proargtypes::text, ' ')::oid[]) as types,
    p.proargmodes::text[] as modes, p.proargnames as names, p.pronargs as inputs, p.pronargdefaults as "withDefault",
    case when p.pronargdefaults > 0 then array(
      select pg_get_function_arg_default(p.oid, i)
      from generate_series(1, coalesce(cardinality(p.proallargtypes), p.pronargs)) i
    ) end as defaults,
    p.prorettype as returns, p.proretset as set, p.prorows as "estimatedRows", p.provolatile as volatility,
    l.lanname as language, p.prosecdef as "securityDefiner", p.proisstrict as strict, p.proconfig as settings,
    pg_get_userbyid(p.proowner) as owner,
    array_to_string(coalesce(p.proacl, acldefault('f', p.proowner)), E'\\n') as acl,
    d.description as comment, e.extname as extension
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
    left join pg_description d on d.classoid = 'pg_proc'::regclass and d.objoid = p.oid
    left join pg_depend x on x.classid = 'pg_proc'::regclass and x.objid = p.oid and x.deptype = 'e'
    left join pg_extension e on e.oid = x.refobjid
  where p.prokind in ('f', 'a') and p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
    and (p.pronamespace = any ($1) or p.proargtypes[0] in (
      select reltype from pg_class where relnamespace = any ($2) and relkind in ('r', 'p', 'v', 'm', 'f')
    ))
  order by n.nspname, p.proname, p.pronargs, p.oid`;

export function readRoutines(
  read: CatalogQuery,
  exposed: readonly number[],
  schemas: readonly number[],
): Promise<RoutineRow[]> {
  return read("routines", ROUTINES, [exposed, schemas]);
}

type RoutineDetails = { readonly grants: Grants; readonly isOpen: boolean };

export function toRoutine(row: RoutineRow, types: CatalogTypes, { grants, isOpen }: RoutineDetails): Routine {
  const { oid, schema, name, language, securityDefiner, strict, owner, comment, extension } = row;
  return {
    oid,
    schema,
    name,
    kind: row.prokind === "a" ? "aggregate" : "function",
    arguments: toArguments(row, types),
    returns: toReturns(row, types),
    volatility: VOLATILITIES[row.volatility],
    language,
    securityDefiner,
    strict,
    showsAllRows: isOpen || !isInlined(row),
    settings: parseSettings((row.settings ?? []).map((setting) => ({ setting }))),
    owner,
    comment,
    extension,
    grants,
  };
}

/** True if Postgres inlines the query of the function into the calling query (`inline_set_returning_function`). */
function isInlined({ language, set, volatility, securityDefiner, strict, settings }: RoutineRow): boolean {
  return language === "sql" && set && volatility !== "v" && !securityDefiner && !strict && settings === null;
}

const INPUT_MODES = { i: "in", b: "inout", v: "variadic" } as const;

function toArguments(row: RoutineRow, types: CatalogTypes): RoutineArgument[] {
  const firstWithDefault = row.inputs - row.withDefault;
  const inputs: RoutineArgument[] = [];
  row.types.forEach((type, index) => {
    const mode = row.modes?.[index] ?? "i";
    if (mode === "o" || mode === "t") return;
    inputs.push({
      name: row.names?.[index] || null,
      mode: INPUT_MODES[mode],
      type: types.of(type),
      required: inputs.length < firstWithDefault,
      default: row.defaults?.[index] ?? null,
    });
  });
  return inputs;
}

function toReturns(row: RoutineRow, types: CatalogTypes): RoutineReturn {
  const type = types.of(row.returns);
  const columns = new Map<string, TypeAttribute>();
  row.types.forEach((oid, index) => {
    const mode = row.modes?.[index] ?? "i";
    if (mode === "i" || mode === "v") return;
    // Postgres gives this name to an unnamed out argument.
    const name = row.names?.[index] || `column${columns.size + 1}`;
    columns.set(name, { name, type: types.of(oid), sqlType: types.of(oid).sqlName, comment: null });
  });
  const shape =
    type.kind === "pseudo" && type.name === "void"
      ? "void"
      : columns.size > 0 || baseTypeOf(type).kind === "composite"
        ? "composite"
        : "scalar";
  return { shape, type, set: row.set, estimatedRows: row.estimatedRows, columns };
}

/**
 * A handler for a media type, defined in SQL: a function or aggregate that returns a domain named like the media type
 * (`create domain "text/csv" as text`).
 */
export type MediaHandler = {
  /** The media type in lower case; two stars stand for any media type. */
  readonly mediaType: string;
  /** An aggregate computes the body from rows; a function returns the body. */
  readonly routine: Routine;
  /** The table whose rows an aggregate takes; null for any rows (`anyelement`) and for functions. */
  readonly table: QualifiedName | null;
};

export function toMediaHandlers(routines: Iterable<Routine>): MediaHandler[] {
  const handlers: MediaHandler[] = [];
  for (const routine of routines) {
    const { type, set } = routine.returns;
    if (type.kind !== "domain" || set || !MEDIA_TYPE_NAME.test(type.name)) continue;
    const mediaType = type.name.toLowerCase();
    if (routine.kind === "function") {
      handlers.push({ mediaType, routine, table: null });
      continue;
    }
    const input = routine.arguments[0]?.type;
    if (routine.arguments.length !== 1 || !input) continue;
    if (input.kind === "composite" && input.table) handlers.push({ mediaType, routine, table: input.table });
    if (input.kind === "pseudo" && input.name === "anyelement") handlers.push({ mediaType, routine, table: null });
  }
  return handlers;
}

type AggregateRow = { name: string };

/** The names of aggregates whose argument can be a whole row. */
export async function readRowAggregates(read: CatalogQuery): Promise<string[]> {
  const rows = await read<AggregateRow>("row aggregates", ROW_AGGREGATES);
  return rows.map(({ name }) => name);
}
