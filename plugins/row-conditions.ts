import { sqlValueWithCodec, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { MAX_SEARCHED_RELATIONS, type SearchOperator } from "#planner/intent";
import type { SearchedPart } from "#planner/search-sql";
import type { ColumnComparison } from "#planner/shown-tables";
import { ApiError } from "#runtime";
import { castToComparable } from "./codecs.ts";
import { haveValues } from "./operators.ts";
import {
  type BindValue,
  OPERATORS,
  operatorFamilyOf,
  SEARCH_SQL,
  searchedFormOf,
  searchQueryOf,
} from "./row-operators.ts";
import type { Codec, PgRelation, PgTable } from "./table.ts";

/** The meaning of a field of a `where` input. */
export type ConditionField =
  | { readonly kind: "and" | "or" | "not" }
  /** Searches words in the texts of columns and of related rows together. */
  | { readonly kind: "search" }
  | { readonly kind: "column"; readonly column: string; readonly codec: Codec }
  /** The row that the relation leads to. */
  | { readonly kind: "related row"; readonly relation: PgRelation; readonly fields: () => ConditionFields }
  /** The rows that refer to this one, with a quantifier. */
  | { readonly kind: "related rows"; readonly relation: PgRelation; readonly fields: () => ConditionFields };

/** The fields of a `where` input by name. */
export type ConditionFields = ReadonlyMap<string, ConditionField>;

export type InputObject = Readonly<Record<string, unknown>>;

export const QUANTIFIERS = {
  some: "At least one of the rows meets the condition.",
  every: "Every one of the rows meets the condition, or there are none.",
  none: "None of the rows meets the condition.",
} as const;

const MATCHES_ALL = sql`true`;
const TOO_FAR = `At most ${MAX_SEARCHED_RELATIONS} relations may lead to a searched field.`;
const ONE_OPERATOR = "A search has a rank and a highlight only with exactly one operator, such as wfts.";
const MATCHES_NONE = sql`false`;
/** A comparison with null: neither the condition nor its negation is met. */
const UNKNOWN = sql`null::pg_catalog.bool`;

/** The condition that a `where` value sets on a row. */
export function conditionOf(fields: ConditionFields, where: InputObject, row: SQL, bind: BindValue): SQL {
  const conditions = Object.entries(where).flatMap(([name, value]) => {
    const field = fields.get(name);
    return field ? conditionOfField(field, fields, value, row, bind) : [];
  });
  return joinConditions(conditions, "and");
}

function conditionOfField(
  field: ConditionField,
  fields: ConditionFields,
  value: unknown,
  row: SQL,
  bind: BindValue,
): SQL {
  if (value === null) return UNKNOWN;
  switch (field.kind) {
    case "and":
    case "or":
      return joinConditions(
        (value as readonly InputObject[]).map((each) => conditionOf(fields, each, row, bind)),
        field.kind,
      );
    case "not":
      return sql`(not ${conditionOf(fields, value as InputObject, row, bind)})`;
    case "search":
      return conditionOfSearch(fields, value as InputObject, row, bind);
    case "column":
      return conditionOfColumn(field.codec, value as InputObject, sql`${row}.${sql.identifier(field.column)}`, bind);
    case "related row":
      return existsRelated(field, row, (related) => conditionOf(field.fields(), value as InputObject, related, bind));
    case "related rows":
      return joinConditions(
        Object.entries(value as InputObject).map(([quantifier, condition]) =>
          conditionOfRows(field, quantifier as keyof typeof QUANTIFIERS, condition as InputObject | null, row, bind),
        ),
        "and",
      );
  }
}

/** A comparison that the column of each matching row meets; with `in`, one value of the list must be equal. */
export type ColumnValueComparison = {
  readonly column: string;
  readonly codec: Codec;
  readonly operator: ColumnComparison["operator"] | "in";
  readonly value: unknown;
};

const COMPARISONS: ReadonlySet<string> = new Set(["eq", "in", "gt", "gte", "lt", "lte"]);

/** The comparisons that each row meeting the `where` value meets. Other conditions may narrow the rows further. */
export function columnComparisonsOf(fields: ConditionFields, where: InputObject): ColumnValueComparison[] {
  return Object.entries(where).flatMap(([name, value]): ColumnValueComparison[] => {
    const field = fields.get(name);
    if (!field || value === null) return [];
    if (field.kind === "and")
      return (value as readonly InputObject[]).flatMap((each) => columnComparisonsOf(fields, each));
    if (field.kind === "related row") {
      // The joining columns have the same values in the row and the related row.
      const { localAttributes, remoteAttributes } = field.relation;
      const ofRelated = columnComparisonsOf(field.fields(), value as InputObject);
      return ofRelated.flatMap(({ column, ...compared }) => {
        const local = localAttributes[remoteAttributes.indexOf(column)];
        return local === undefined ? [] : [{ ...compared, column: local }];
      });
    }
    if (field.kind !== "column") return [];
    const { column, codec } = field;
    return Object.entries(value as InputObject).flatMap(([operator, compared]) =>
      compared === null || !COMPARISONS.has(operator)
        ? []
        : [{ column, codec, operator: operator as ColumnValueComparison["operator"], value: compared }],
    );
  });
}

type RelatedField = Extract<ConditionField, { readonly kind: "related row" | "related rows" }>;

function conditionOfRows(
  field: RelatedField,
  quantifier: keyof typeof QUANTIFIERS,
  condition: InputObject | null,
  row: SQL,
  bind: BindValue,
): SQL {
  if (condition === null) return UNKNOWN;
  const of = (related: SQL) => conditionOf(field.fields(), condition, related, bind);
  switch (quantifier) {
    case "some":
      return existsRelated(field, row, of);
    case "none":
      return sql`(not ${existsRelated(field, row, of)})`;
    case "every":
      return sql`(not ${existsRelated(field, row, (related) => sql`${of(related)} is not true`)})`;
  }
}

/** The related rows are read in the caller's role, so that policies hold for them too. */
function existsRelated({ relation }: RelatedField, row: SQL, condition: (related: SQL) => SQL): SQL {
  const related = sql.identifier(Symbol(relation.remoteResource.name));
  return sql`exists (select 1 from ${relation.remoteResource.from as SQL} as ${related} where ${joinRelation(relation, row, related)} and ${condition(related)})`;
}

/** The related rows of a row. */
export function joinRelation(relation: PgRelation, row: SQL, related: SQL): SQL {
  return sql.join(joinPairs(relation, row, related), " and ");
}

/** The conditions by which the rows of a relation are joined. */
export function joinPairs(
  { localAttributes, remoteAttributes, remoteResource }: PgRelation,
  row: SQL,
  related: SQL,
): SQL[] {
  const valueAt = (_: Codec, index: number) => sql`${row}.${sql.identifier(localAttributes[index]!)}`;
  return haveValues(remoteResource as PgTable, remoteAttributes, related, valueAt);
}

function conditionOfSearch(fields: ConditionFields, search: InputObject, row: SQL, bind: BindValue): SQL {
  const { fields: searched, ...operators } = search;
  const parts = (searched as readonly InputObject[]).map((each) => searchedPart(fields, each, row));
  if (parts.length === 0) return MATCHES_NONE;
  const conditions = Object.entries(operators).map(([operator, value]) => {
    if (value === null) return UNKNOWN;
    return sql`(${SEARCH_SQL.found(parts, searchQueryOf(operator as SearchOperator, value, bind))})`;
  });
  return joinConditions(conditions, "and");
}

/** The rank of a match, or the searched text with the words marked. */
export type SearchResult = "rank" | "highlight";

/** The result of a search for a row. A field has one value, so the search has only one operator. */
export function searchResultOf(
  result: SearchResult,
  fields: ConditionFields,
  search: InputObject,
  row: SQL,
  bind: BindValue,
): SQL {
  const { fields: searched, ...operators } = search;
  const [given, ...others] = Object.entries(operators);
  if (!given || others.length > 0) throw new ApiError("invalid", "VALIDATION_ERROR", ONE_OPERATOR);
  const parts = (searched as readonly InputObject[]).map((each) => searchedPart(fields, each, row));
  const [operator, words] = given;
  if (words === null || parts.length === 0) return sql`null::${SEARCH_RESULT_CODECS[result].sqlType}`;
  const query = searchQueryOf(operator as SearchOperator, words, bind);
  if (result === "rank") return SEARCH_SQL.rank(parts, query);
  return SEARCH_SQL.highlight(
    parts.map(({ value }) => value),
    query,
  );
}

export const SEARCH_RESULT_CODECS: Readonly<Record<SearchResult, Codec>> = {
  rank: TYPES.float4,
  highlight: TYPES.text,
};

/** A column of the row, or of all rows that a relation leads to. */
function searchedPart(fields: ConditionFields, item: InputObject, row: SQL, relations = 0): SearchedPart<SQL> {
  const [[name, inner] = ["", null]] = Object.entries(item);
  const field = fields.get(name)!;
  if (field.kind === "column") {
    const [value, codec] = castToComparable(sql`${row}.${sql.identifier(field.column)}`, field.codec);
    return { form: searchedFormOf(codec), value };
  }
  if (relations === MAX_SEARCHED_RELATIONS) throw new ApiError("invalid", "VALIDATION_ERROR", TOO_FAR);
  const { relation, fields: below } = field as RelatedField;
  const related = sql.identifier(Symbol(relation.remoteResource.name));
  const { value } = searchedPart(below(), inner as InputObject, related, relations + 1);
  const source = sql` from ${relation.remoteResource.from as SQL} as ${related} where ${joinRelation(relation, row, related)}`;
  return { form: "text", value: SEARCH_SQL.joined(value, source) };
}

function conditionOfColumn(codec: Codec, operators: InputObject, column: SQL, bind: BindValue): SQL {
  const supported = OPERATORS[operatorFamilyOf(codec)];
  const conditions = Object.entries(operators).map(([name, value]) => {
    if (name === "isNull") return conditionOnNull(column, value, bind);
    // `is distinct from null` is always known.
    if (value === null && name !== "isdistinct") return UNKNOWN;
    const [compared, comparedCodec] = castToComparable(column, codec);
    return supported[name]!.condition(compared, comparedCodec, value, bind);
  });
  return joinConditions(conditions, "and");
}

function conditionOnNull(column: SQL, value: unknown, bind: BindValue): SQL {
  if (value === null) return UNKNOWN;
  if (typeof value !== "boolean") return sql`((${column} is null) = ${bind(value, TYPES.boolean)})`;
  return value ? sql`(${column} is null)` : sql`(${column} is not null)`;
}

function joinConditions(conditions: readonly SQL[], operator: "and" | "or"): SQL {
  if (conditions.length === 0) return operator === "and" ? MATCHES_ALL : MATCHES_NONE;
  if (conditions.length === 1) return conditions[0]!;
  return sql`(${sql.join([...conditions], ` ${operator} `)})`;
}

/** The value as a parameter of a statement. */
export const bindWithCodec: BindValue = (value, codec) => sqlValueWithCodec(value, codec);
