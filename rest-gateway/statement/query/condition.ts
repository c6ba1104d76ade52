import type { Comparison, Search } from "../intent.ts";
import type { Operand, Output, PositionOperand, Selection, Where } from "../plan/selection.ts";
import { expression } from "./expression.ts";
import { outputClause, sourceClause } from "./select.ts";
import {
  fromCatalog,
  identifier,
  integer,
  join,
  literal,
  NOTHING,
  operatorIn,
  parameter,
  qualified,
  ROW,
  type Sql,
  sql,
} from "./sql.ts";

const COMPARISONS: Readonly<Record<Comparison, Sql>> = {
  eq: sql`=`,
  neq: sql`<>`,
  gt: sql`>`,
  gte: sql`>=`,
  lt: sql`<`,
  lte: sql`<=`,
  like: sql`like`,
  ilike: sql`ilike`,
  match: sql`~`,
  imatch: sql`~*`,
  cs: sql`@>`,
  cd: sql`<@`,
  ov: sql`&&`,
  sl: sql`<<`,
  sr: sql`>>`,
  nxr: sql`&<`,
  nxl: sql`&>`,
  adj: sql`-|-`,
};
const SEARCHES: Readonly<Record<Search, Sql>> = {
  fts: sql`to_tsquery`,
  plfts: sql`plainto_tsquery`,
  phfts: sql`phraseto_tsquery`,
  wfts: sql`websearch_to_tsquery`,
};
const STATES = {
  null: sql`null`,
  not_null: sql`not null`,
  true: sql`true`,
  false: sql`false`,
  unknown: sql`unknown`,
};

function condition(where: Where): Sql {
  return "negated" in where && where.negated ? sql`not ${affirmed(where)}` : affirmed(where);
}

export function allOf(conditions: readonly Where[]): Sql {
  return join(conditions.map(condition), " and ");
}

/** Values are parameters without a type: as for a quoted literal, Postgres takes the type of what they are compared with. */
function affirmed(where: Where): Sql {
  switch (where.kind) {
    case "compare": {
      const value = operand(where.operand);
      const right =
        where.quantifier === null ? value : where.quantifier === "any" ? sql`any(${value})` : sql`all(${value})`;
      const operator = operatorIn(where.operatorSchema, COMPARISONS[where.operator]);
      return sql`${expression(where.left)} ${operator} ${right}`;
    }
    case "in":
      return sql`${expression(where.left)} ${operatorIn(where.operatorSchema, COMPARISONS.eq)} any(${listOf(where.operand)})`;
    case "is":
      return sql`${expression(where.left)} is ${STATES[where.value]}`;
    case "distinct":
      return sql`${expression(where.left)} is distinct from ${operand(where.operand)}`;
    case "search":
      return search(where);
    case "and":
    case "or": {
      const parts = where.parts.map(condition);
      return sql`(${join(parts, where.kind === "and" ? " and " : " or ")})`;
    }
    case "exists": {
      const { selection, and } = where;
      const conditions = [...selection.where, ...and];
      const matching = conditions.length > 0 ? sql` where ${allOf(conditions)}` : NOTHING;
      return sql`exists (select 1${sourceClause(selection)}${matching}${emptyingWindow(selection)})`;
    }
    case "same":
      return sql`${expression(where.left)} ${operatorIn(where.operatorSchema, COMPARISONS.eq)} ${expression(where.right)}`;
    case "position": {
      const [left, right] = [tuple(where.left.map(expression)), tuple(where.right.map(positionOperand))];
      return sql`${left} ${COMPARISONS[where.operator]} ${right}`;
    }
    case "digest":
      return sql`${digestOf(where.outputs)} = any(${parameter(where.slot)})`;
    case "found": {
      const names = where.key.map(({ name }) => identifier(FOUND, name));
      const found = sql`select ${join(names, ", ")} from ${qualified(where.by)}(${parameter(where.slot)}) as ${identifier(FOUND)}`;
      return sql`${tuple(where.key.map(({ value }) => expression(value)))} in (${found})`;
    }
    case "permitted":
      return sql`(${fromCatalog(where.text)})`;
    case "presence":
      return sql`${expression(where.left)} is ${where.present ? NOTHING : sql`not `}distinct from null`;
  }
}

const FOUND = "found";

/** Of the text that the row has in a body, so that who was sent it can compute the same. */
function digestOf(outputs: readonly Output[]): Sql {
  const shown = join(
    outputs.map((output) => outputClause(output, "")),
    ", ",
  );
  const text = sql`(select row_to_json(${ROW})::text from (select ${shown}) "_")`;
  return sql`encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`;
}

/** Most windows leave a row if there is one. Those are left out, so that Postgres can join instead. */
function emptyingWindow({ limit, offset }: Selection): Sql {
  if (limit === 0) return sql` limit 0`;
  return offset > 0 ? sql` offset ${integer(offset)}` : NOTHING;
}

/** Postgres would take a number for an OID, and fail where there is none such. */
function asName(language: string): string {
  return /^\d+$/.test(language) ? `"${language}"` : language;
}

function search({ left, convert, operator, language, operand: { slot } }: Where & { kind: "search" }): Sql {
  const configuration = language === null ? NOTHING : sql`${literal(asName(language))}, `;
  const text = convert ? sql`to_tsvector(${configuration}${expression(left)})` : expression(left);
  return sql`${text} @@ ${SEARCHES[operator]}(${configuration}${parameter(slot)})`;
}

function operand({ slot, by }: Operand): Sql {
  return by === null ? parameter(slot) : sql`${fromCatalog(by)}(${parameter(slot)})`;
}

/** Of rows as a whole Postgres finds the first that differs, and an index finds where that is. */
function tuple(values: readonly Sql[]): Sql {
  return values.length === 1 ? values[0]! : sql`(${join(values, ", ")})`;
}

function positionOperand({ slot, type }: PositionOperand): Sql {
  return type === null ? parameter(slot) : sql`${parameter(slot)}::${qualified(type)}`;
}

/** Each of the texts is read by the function, if the type has one. */
function listOf({ slot, by }: Operand): Sql {
  return by === null ? parameter(slot) : sql`array(select ${fromCatalog(by)}(unnest(${parameter(slot)}::text[])))`;
}
