import type { Caller } from "#accounts/identity";
import { type Catalog, reverseRelationship } from "#catalog";
import type { Config } from "#config";
import { makeRequestPlanner, type PlannedRequest } from "#planner";
import type {
  CountMethod,
  DeleteIntent,
  InsertIntent,
  Intent,
  OrderTerm,
  ReadIntent,
  ResponseOptions,
  RowCondition,
  RowPayload,
  RowRange,
  RowSelection,
  SelectItem,
  UpdateIntent,
} from "#planner/intent";
import type { CacheHits } from "#runtime";
import type { Collection } from "./collections/collections.ts";
import type { NestedCollection } from "./collections/relations.ts";
import type { PathStep } from "./parse/address.ts";
import { equalsCondition } from "./parse/parameters.ts";

/** The options of responses whose rows are JSON. */
const RESPONSE_OPTIONS: ResponseOptions = {
  formats: [{ kind: "media", type: "application/json" }],
  includesBody: true,
  maxAffected: null,
};

/** The options of a change. A path names one row; tables with inherited rows may have several with the same key. */
const CHANGE_OPTIONS: ResponseOptions = { ...RESPONSE_OPTIONS, maxAffected: 1 };

type RowsQuery = {
  readonly select: readonly SelectItem[];
  readonly conditions?: readonly RowCondition[];
  readonly order?: readonly OrderTerm[];
  readonly window?: RowRange;
};

export function makeReadIntent({ table }: Collection, query: RowsQuery, count: CountMethod | null = null): ReadIntent {
  return { kind: "read", target: targetOf(table), selection: toShape(query), count, page: null };
}

export function makeInsertIntent(
  { table, returnsInserted: showsNew }: Collection,
  query: RowsQuery,
  payload: RowPayload,
): InsertIntent {
  const returned = showsNew ? "rows" : "nothing";
  const write = { target: targetOf(table), selection: toShape(query), returned, count: null } as const;
  // A single row omits columns that are not sent; in a list, rows may have different columns.
  return { kind: "insert", ...write, payload, missingAsDefault: payload.isArray, upsert: null, single: false };
}

type UpdateValues = { readonly payload: RowPayload; readonly missingAsDefault: boolean };

export function makeUpdateIntent({ table }: Collection, query: RowsQuery, update: UpdateValues): UpdateIntent {
  const write = { target: targetOf(table), selection: toShape(query), returned: "rows", count: null } as const;
  return { kind: "update", ...write, ...update, returnsUnchangedRows: true };
}

export function makeDeleteIntent({ table }: Collection, query: RowsQuery): DeleteIntent {
  return { kind: "delete", target: targetOf(table), selection: toShape(query), returned: "nothing", count: null };
}

export function toShape({ select, conditions = [], order = [], window }: RowsQuery): RowSelection {
  return {
    select,
    conditions: conditions.map((value) => ({ path: [], value })),
    orders: order.length > 0 ? [{ path: [], value: order }] : [],
    ranges: window ? [{ path: [], value: window }] : [],
  };
}

export function targetOf({ schema, name }: { readonly schema: string; readonly name: string }) {
  return { schema, name };
}

/** Returns the conditions for a row: its key, and its parents. */
export function rowConditions({ collection, key, nested }: PathStep, parents: readonly PathStep[]): RowCondition[] {
  const named = collection.key.map(({ column }, index) => equalsCondition(column.name, key[index]!));
  return [...named, ...parentConditions(nested, parents)];
}

/** Returns the conditions for rows that refer to the last parent, and for the parents themselves. */
export function parentConditions(nested: NestedCollection | null, parents: readonly PathStep[]): RowCondition[] {
  const parent = parents.at(-1);
  if (!nested || !parent) return [];
  const values = foreignKeyValues(nested, parent);
  const ancestors = parents.slice(0, -1);
  if (values && ancestors.length === 0) return [...values].map(([column, value]) => equalsCondition(column, value));
  const conditions = rowConditions(parent, ancestors);
  const related: RowCondition = {
    kind: "related",
    relation: nested.name,
    found: reverseRelationship(nested.relationship),
    negated: false,
    condition: { kind: "and", negated: false, conditions },
  };
  // This is in addition to the condition on the parent: an index on the foreign key can find the rows.
  return [...(values ? [...values].map(([column, value]) => equalsCondition(column, value)) : []), related];
}

/** Returns the values of the foreign key; null if it refers to columns outside the parent's key. */
function foreignKeyValues(
  { relationship }: NestedCollection,
  { collection, key }: PathStep,
): ReadonlyMap<string, string> | null {
  const values = new Map(collection.key.map(({ column }, index) => [column.name, key[index]!]));
  const pairs = relationship.columns.map(({ source, target }) => [target, values.get(source)] as const);
  return pairs.every((pair): pair is [string, string] => pair[1] !== undefined) ? new Map(pairs) : null;
}

export type PlanIntent = (
  catalog: Catalog,
  caller: Pick<Caller, "role">,
  intent: Intent,
  planKey?: object | undefined,
) => PlannedRequest;

export function makeResourcePlanner(
  { maxPageSize, anonRole }: Pick<Config, "maxPageSize" | "anonRole">,
  hits: CacheHits,
): PlanIntent {
  const planRequest = makeRequestPlanner(
    {
      aggregates: false,
      maxRows: maxPageSize,
      safeWrites: true,
      legacyTargetNames: false,
      explainEnabled: false,
      // The digest of the whole response precedes it.
      neverStreams: true,
      anonymousRole: anonRole,
    },
    hits,
  );
  return (catalog, { role }, intent, planKey) => {
    const options = intent.kind === "update" || intent.kind === "delete" ? CHANGE_OPTIONS : RESPONSE_OPTIONS;
    return planRequest(intent, options, catalog, role, planKey);
  };
}
