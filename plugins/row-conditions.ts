import { isEnumCodec, listOfCodec, sqlValueWithCodec, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { memoizePerObject } from "#runtime";
import { itemCodecOf } from "./ArrayDimensionsPlugin.ts";
import { baseCodecOf, castToComparable } from "./codecs.ts";
import { toOriginalCodec } from "./IdScalarPlugin.ts";
import { equals, type OperatorName, operatorOf } from "./operators.ts";
import type { Codec, PgRelation, PgTable } from "./table.ts";

/** What a field of a `where` input stands for. */
export type ConditionField =
  | { readonly kind: "and" | "or" | "not" }
  | { readonly kind: "column"; readonly column: string; readonly codec: Codec }
  /** The row that the relation leads to. */
  | { readonly kind: "related row"; readonly relation: PgRelation; readonly fields: () => ConditionFields }
  /** The rows that refer to this one, with a quantifier. */
  | { readonly kind: "related rows"; readonly relation: PgRelation; readonly fields: () => ConditionFields };

/** The fields of a `where` input by name. */
export type ConditionFields = ReadonlyMap<string, ConditionField>;

/** Adds a value to the statement, or a parameter whose values are known later. */
export type BindValue = (value: unknown, codec: Codec) => SQL;

/** The operators that a type has besides `isNull`. */
export type OperatorFamily = "ordered" | "equality" | "text" | "list" | "range" | "json" | "full text" | "none";

type OperatorOperand = "value" | "list of values" | "text" | "search";

export type RowOperator = {
  readonly operand: OperatorOperand;
  readonly description: string;
  readonly condition: (column: SQL, codec: Codec, value: unknown, bind: BindValue) => SQL;
};

type RowOperators = Readonly<Record<string, RowOperator>>;

type InputObject = Readonly<Record<string, unknown>>;

export const QUANTIFIERS = {
  some: "At least one of the rows meets the condition.",
  every: "Every one of the rows meets the condition, or there are none.",
  none: "None of the rows meets the condition.",
} as const;

const MATCHES_ALL = sql`true`;
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

/** Read in the caller's role, so that policies hold for the related rows too. */
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
  return localAttributes.map((column, index) => {
    const name = remoteAttributes[index]!;
    const { codec } = (remoteResource as PgTable).codec.attributes[name]!;
    return equals(codec, sql`${related}.${sql.identifier(name)}`, sql`${row}.${sql.identifier(column)}`);
  });
}

function conditionOfColumn(codec: Codec, operators: InputObject, column: SQL, bind: BindValue): SQL {
  const supported = OPERATORS[operatorFamilyOf(codec)];
  const conditions = Object.entries(operators).map(([name, value]) => {
    if (name === "isNull") return conditionOnNull(column, value, bind);
    // `is distinct from null` is known, whatever the row.
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

const TEXT_TYPES: ReadonlySet<string> = new Set(["text", "varchar", "bpchar", "name", "citext"]);
/** Core takes every type for ordered that it does not know otherwise; `point` does not even have equality. */
const ORDERED_TYPES: ReadonlySet<string> = new Set(
  `int2 int4 int8 float4 float8 numeric money oid date time timetz timestamp timestamptz interval uuid inet cidr macaddr macaddr8
  bytea bit varbit pg_lsn xid8 ltree`.split(/\s+/),
);

/** By the type beneath domains. */
export const operatorFamilyOf = memoizePerObject((codec: Codec): OperatorFamily => {
  const base = toOriginalCodec(baseCodecOf(toOriginalCodec(codec)));
  const type = base.extensions?.pg?.name ?? base.name;
  if (base.arrayOfCodec) return isComparableItem(itemCodecOf(base)) ? "list" : "none";
  if (base.rangeOfCodec) return "range";
  if (base.attributes) return "none";
  if (type === "jsonb") return "json";
  if (type === "tsvector") return "full text";
  if (TEXT_TYPES.has(type)) return "text";
  if (ORDERED_TYPES.has(type) || isEnumCodec(base)) return "ordered";
  return type === "bool" ? "equality" : "none";
});

function isComparableItem(codec: Codec): boolean {
  return !codec.arrayOfCodec && operatorFamilyOf(codec) !== "none";
}

function compare(operator: OperatorName, description: string): RowOperator {
  return {
    operand: "value",
    description,
    condition: (column, codec, value, bind) => sql`(${column} ${operatorOf(codec, operator)} ${bind(value, codec)})`,
  };
}

function matchText(operator: OperatorName, description: string): RowOperator {
  return {
    operand: "text",
    description,
    condition: (column, codec, value, bind) =>
      sql`(${column} ${operatorOf(codec, operator)} ${bind(value, TYPES.text)})`,
  };
}

type TextSearch = { readonly query: unknown; readonly language?: unknown };

function search(toQuery: SQL, description: string): RowOperator {
  return {
    operand: "search",
    description,
    condition(column, codec, value, bind) {
      const { query, language = null } = value as TextSearch;
      const configuration = language === null ? sql.blank : sql`${bind(language, TYPES.regconfig)}, `;
      const isVector = operatorFamilyOf(codec) === "full text";
      const vector = isVector ? column : sql`pg_catalog.to_tsvector(${configuration}${column})`;
      return sql`(${vector} @@ ${toQuery}(${configuration}${bind(query, TYPES.text)}))`;
    },
  };
}

const EQUALITY: RowOperators = {
  eq: compare("=", "Equal."),
  neq: compare("<>", "Not equal; null is neither equal nor unequal."),
  in: {
    operand: "list of values",
    description: "Equal to one of the values.",
    condition: (column, codec, value, bind) =>
      sql`(${column} ${operatorOf(codec, "=")} any (${bind(value, listCodecOf(codec))}))`,
  },
  isdistinct: {
    operand: "value",
    description: "Not equal, where null equals null.",
    condition(column, codec, value, bind) {
      const compared = bind(value, codec);
      // `is distinct from` would take the `=` on the search path.
      return sql`(not coalesce(${equals(codec, column, compared)}, ${column} is null and ${compared} is null))`;
    },
  },
};

const ORDER: RowOperators = {
  gt: compare(">", "Greater, or later."),
  gte: compare(">=", "Greater or equal."),
  lt: compare("<", "Less, or earlier."),
  lte: compare("<=", "Less or equal."),
};

const CONTAINMENT: RowOperators = {
  cs: compare("@>", "Contains the value."),
  cd: compare("<@", "Is contained in the value."),
};

const SEARCH: RowOperators = {
  fts: search(sql`pg_catalog.to_tsquery`, "Full-text search with the operators of `to_tsquery`."),
  plfts: search(sql`pg_catalog.plainto_tsquery`, "Full-text search for all words."),
  phfts: search(sql`pg_catalog.phraseto_tsquery`, "Full-text search for a phrase."),
  wfts: search(sql`pg_catalog.websearch_to_tsquery`, "Full-text search as in web search engines."),
};

const COMPARISON: RowOperators = { eq: EQUALITY.eq!, neq: EQUALITY.neq! };

/** With the names of the table interface. */
export const OPERATORS: Readonly<Record<OperatorFamily, RowOperators>> = {
  equality: EQUALITY,
  ordered: { ...EQUALITY, ...ORDER },
  text: {
    ...EQUALITY,
    ...ORDER,
    like: matchText("~~", "Matches the pattern; `%` is any text, `_` any character."),
    ilike: matchText("~~*", "As `like`, without regard to case."),
    match: matchText("~", "Matches the regular expression."),
    imatch: matchText("~*", "As `match`, without regard to case."),
    ...SEARCH,
  },
  list: { ...COMPARISON, ...CONTAINMENT, ov: compare("&&", "Has an item in common with the value.") },
  range: {
    ...COMPARISON,
    ...CONTAINMENT,
    ov: compare("&&", "Overlaps the value."),
    sl: compare("<<", "Is strictly left of the value."),
    sr: compare(">>", "Is strictly right of the value."),
    nxr: compare("&<", "Does not extend to the right of the value."),
    nxl: compare("&>", "Does not extend to the left of the value."),
    adj: compare("-|-", "Is adjacent to the value."),
  },
  json: { ...COMPARISON, ...CONTAINMENT },
  "full text": SEARCH,
  none: {},
};

const listCodecOf = memoizePerObject((codec: Codec): Codec => listOfCodec(codec as Parameters<typeof listOfCodec>[0]));

/** The value as a parameter of Grafast's statement. */
export const bindWithCodec: BindValue = (value, codec) => sqlValueWithCodec(value, codec);
