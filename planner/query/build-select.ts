import type { AggregateName, ComparisonName, JsonPathStep, SearchOperator } from "../intent.ts";
import type { KeptColumns } from "../plan/plan.ts";
import type {
  OrderExpression,
  OutputColumn,
  ParameterOperand,
  PositionOperand,
  RoutineCall,
  RoutineParameter,
  RowReference,
  RowSource,
  SelectPlan,
  SpreadJoin,
  ValueExpression,
  WherePredicate,
} from "../plan/selection.ts";
import {
  catalogSql,
  identifier,
  integer,
  join,
  literal,
  NOTHING,
  operatorIn,
  parameter,
  qualifiedIdentifier,
  ROW,
  type Sql,
  sql,
  TO_MEMBER,
  TO_MEMBER_TEXT,
  typeName,
} from "./sql.ts";

const COMPARISON_OPERATORS: Readonly<Record<ComparisonName, Sql>> = {
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
/** `like` is a keyword. */
const COMPARISON_OPERATOR_NAMES: typeof COMPARISON_OPERATORS = {
  ...COMPARISON_OPERATORS,
  like: sql`~~`,
  ilike: sql`~~*`,
};
const SEARCH_FUNCTIONS: Readonly<Record<SearchOperator, Sql>> = {
  fts: sql`pg_catalog.to_tsquery`,
  plfts: sql`pg_catalog.plainto_tsquery`,
  phfts: sql`pg_catalog.phraseto_tsquery`,
  wfts: sql`pg_catalog.websearch_to_tsquery`,
};
const IS_VALUES = {
  null: sql`null`,
  not_null: sql`not null`,
  true: sql`true`,
  false: sql`false`,
  unknown: sql`unknown`,
};

const FOUND_ALIAS = "found";

const AGGREGATE_FUNCTIONS: Readonly<Record<AggregateName, Sql>> = {
  count: sql`count`,
  sum: sql`sum`,
  avg: sql`avg`,
  min: sql`min`,
  max: sql`max`,
};

const PG_CATALOG = sql`pg_catalog.`;

const ORDER_DIRECTIONS = { asc: sql` asc`, desc: sql` desc` };
const NULLS_PLACEMENT = { first: sql` nulls first`, last: sql` nulls last` };

/** The CTE with the result of the write or the call. */
export const RESULT_CTE = identifier("result");

export function buildSelect(selection: SelectPlan): Sql {
  const { order, offset, limit } = selection;
  const orderBy = order.length > 0 ? sql` order by ${join(order.map(orderTerm), ", ")}` : NOTHING;
  // Literals: with a parameter Postgres would plan the statement anew each time.
  const limitSql = limit === null ? NOTHING : sql` limit ${integer(limit)}`;
  const offsetSql = offset === 0 ? NOTHING : sql` offset ${integer(offset)}`;
  return sql`${buildUnorderedSelect(selection)}${orderBy}${limitSql}${offsetSql}`;
}

/** All rows, without order and range. */
export function buildUnorderedSelect(selection: SelectPlan): Sql {
  const { source, alias, outputs, spreads } = selection;
  const list = outputs.map((output) => sql` ${outputClause(output, alias)}`);
  const lateral = join(
    spreads.map((spread) => spreadClause(spread, source)),
    "",
  );
  return sql`select${join(list, ",")}${fromClause(selection)}${lateral}${whereClause(selection)}${groupByClause(selection)}`;
}

export function fromClause({ source, alias }: SelectPlan): Sql {
  return sql` from ${sourceSql(source, alias)}`;
}

export function whereClause({ where }: SelectPlan): Sql {
  return where.length > 0 ? sql` where ${buildConjunction(where)}` : NOTHING;
}

function sourceSql(source: RowSource, alias: string): Sql {
  const as = identifier(alias);
  switch (source.kind) {
    case "table": {
      const table = sql`${qualifiedIdentifier(source.name)} as ${as}`;
      if (!source.through) return table;
      const { table: junction, alias: between, on } = source.through;
      const pairs = on.map(({ junction: column, target, operatorSchema }) => {
        return sql`${identifier(between, column)} ${operatorIn(operatorSchema, sql`=`)} ${identifier(alias, target)}`;
      });
      return sql`${table} join ${qualifiedIdentifier(junction)} as ${identifier(between)} on ${join(pairs, " and ")}`;
    }
    case "row function":
      return sql`${qualifiedIdentifier(source.routine)}(${rowArgument(source.row)}) as ${as}`;
    case "call":
      return callFromItem(source.call);
    case "result":
      return sql`${RESULT_CTE} as ${as}`;
  }
}

function outputClause(output: OutputColumn, alias: string): Sql {
  if (output.kind === "all") return sql`${identifier(alias)}.*`;
  const { name, value } = output;
  if (value.kind === "column" && value.name === name) return buildExpression(value);
  return sql`${buildExpression(value)} as ${identifier(name)}`;
}

function spreadClause({ alias, form, subquery: selection }: SpreadJoin, { kind }: RowSource): Sql {
  const rows = buildSelect(selection);
  const columns = form === "columns" ? rows : spreadArrays(selection, rows);
  // A function's rows have an order, which joins other than a nested loop could change.
  const apart = kind === "table" || selection.offset > 0 ? NOTHING : sql` offset 0`;
  return sql` left join lateral (${columns}${apart}) as ${identifier(alias)} on true`;
}

function spreadArrays({ outputs }: SelectPlan, rows: Sql): Sql {
  const arrays = outputs.map((output) => {
    const name = identifier(output.kind === "all" ? "" : output.name);
    return sql`coalesce(pg_catalog.json_agg("_".${name}), '[]') as ${name}`;
  });
  return sql`select ${join(arrays, ", ")} from (${rows}) "_"`;
}

function groupByClause({ grouped, outputs }: SelectPlan): Sql {
  const keys = outputs.flatMap((output, index) =>
    output.kind === "value" && output.isAggregate ? [] : [groupKey(output, index)],
  );
  return grouped && keys.length > 0 ? sql` group by ${join(keys, ", ")}` : NOTHING;
}

/** By position: a name could refer to an input column. JSON has no equality, but the value it is made of does. */
function groupKey(output: OutputColumn, index: number): Sql {
  const isRepresented = output.kind === "value" && output.value.kind === "represented";
  return isRepresented ? buildExpression(output.value.of) : integer(index + 1);
}

function orderTerm({ value, direction, nulls }: OrderExpression): Sql {
  const toward = direction ? ORDER_DIRECTIONS[direction] : NOTHING;
  return sql`${buildExpression(value)}${toward}${nulls ? NULLS_PLACEMENT[nulls] : NOTHING}`;
}

function buildPredicate(where: WherePredicate): Sql {
  return "negated" in where && where.negated
    ? sql`not ${buildPositivePredicate(where)}`
    : buildPositivePredicate(where);
}

export function buildConjunction(conditions: readonly WherePredicate[]): Sql {
  return join(conditions.map(buildPredicate), " and ");
}

/** Parameters are untyped: like for a quoted literal, Postgres infers the type from the other operand. */
function buildPositivePredicate(where: WherePredicate): Sql {
  switch (where.kind) {
    case "compare": {
      const value = operandSql(where.operand);
      const right =
        where.quantifier === null ? value : where.quantifier === "any" ? sql`any(${value})` : sql`all(${value})`;
      const names = where.operatorSchema === null ? COMPARISON_OPERATORS : COMPARISON_OPERATOR_NAMES;
      const operator = operatorIn(where.operatorSchema, names[where.operator]);
      return sql`${buildExpression(where.left)} ${operator} ${right}`;
    }
    case "in":
      return sql`${buildExpression(where.left)} ${operatorIn(where.operatorSchema, COMPARISON_OPERATORS.eq)} any(${listOperandSql(where.operand)})`;
    case "is":
      return sql`${buildExpression(where.left)} is ${IS_VALUES[where.value]}`;
    case "distinct": {
      const [left, right] = [buildExpression(where.left), operandSql(where.operand)];
      if (where.operatorSchema === null) return sql`${left} is distinct from ${right}`;
      // `is distinct from` takes the `=` on the search path.
      const isEqual = sql`${left} ${operatorIn(where.operatorSchema, COMPARISON_OPERATORS.eq)} ${right}`;
      return sql`not coalesce(${isEqual}, ${left} is null and ${right} is null)`;
    }
    case "search":
      return searchPredicate(where);
    case "and":
    case "or": {
      const parts = where.parts.map(buildPredicate);
      return sql`(${join(parts, where.kind === "and" ? " and " : " or ")})`;
    }
    case "exists": {
      const { selection, and } = where;
      const conditions = [...selection.where, ...and];
      const matching = conditions.length > 0 ? sql` where ${buildConjunction(conditions)}` : NOTHING;
      return sql`exists (select 1${fromClause(selection)}${matching}${emptyingRange(selection)})`;
    }
    case "same":
      return sql`${buildExpression(where.left)} ${operatorIn(where.operatorSchema, COMPARISON_OPERATORS.eq)} ${buildExpression(where.right)}`;
    case "position": {
      const [left, right] = [rowSql(where.left.map(buildExpression)), rowSql(where.right.map(positionOperandSql))];
      return sql`${left} ${operatorIn(where.operatorSchema, COMPARISON_OPERATORS[where.operator])} ${right}`;
    }
    case "digest":
      return sql`${rowDigest(where.outputs)} = any(${parameter(where.parameter)})`;
    case "found": {
      const names = where.key.map(({ name }) => identifier(FOUND_ALIAS, name));
      const found = sql`select ${join(names, ", ")} from ${qualifiedIdentifier(where.by)}(${parameter(where.parameter)}) as ${identifier(FOUND_ALIAS)}`;
      return sql`${rowSql(where.key.map(({ value }) => buildExpression(value)))} in (${found})`;
    }
    case "permitted":
      return sql`(${catalogSql(where.text)})`;
    case "presence":
      return sql`${buildExpression(where.left)} is ${where.present ? NOTHING : sql`not `}distinct from null`;
  }
}

/** The digest of the row's text in a body, so that it equals the client's ETag. */
function rowDigest(outputs: readonly OutputColumn[]): Sql {
  const columns = join(
    outputs.map((output) => outputClause(output, "")),
    ", ",
  );
  const text = sql`(select pg_catalog.row_to_json(${ROW})::pg_catalog.text from (select ${columns}) "_")`;
  return sql`pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(${text}, 'UTF8')), 'hex')`;
}

/** Only a range that can exclude all rows is included, so that Postgres can use a join otherwise. */
function emptyingRange({ limit, offset }: SelectPlan): Sql {
  if (limit === 0) return sql` limit 0`;
  return offset > 0 ? sql` offset ${integer(offset)}` : NOTHING;
}

/** Quoted, since Postgres would read a number as an OID. */
function configurationName(language: string): string {
  return /^\d+$/.test(language) ? `"${language}"` : language;
}

function searchPredicate({
  left,
  convert,
  schema,
  operator,
  language,
  operand: { parameter: slot },
}: WherePredicate & { kind: "search" }): Sql {
  const configuration = language === null ? NOTHING : sql`${literal(configurationName(language))}, `;
  const toVector = sql`${schema ? PG_CATALOG : NOTHING}to_tsvector`;
  const text = convert ? sql`${toVector}(${configuration}${buildExpression(left)})` : buildExpression(left);
  return sql`${text} @@ ${SEARCH_FUNCTIONS[operator]}(${configuration}${parameter(slot)})`;
}

function operandSql({ parameter: slot, reader: by }: ParameterOperand): Sql {
  return by === null ? parameter(slot) : sql`${catalogSql(by)}(${parameter(slot)})`;
}

/** A row comparison, which an index supports. */
function rowSql(values: readonly Sql[]): Sql {
  return values.length === 1 ? values[0]! : sql`(${join(values, ", ")})`;
}

function positionOperandSql({ parameter: slot, type }: PositionOperand): Sql {
  return type === null ? parameter(slot) : sql`${parameter(slot)}::${qualifiedIdentifier(type)}`;
}

/** Each text is converted by the function, if the type has one. */
function listOperandSql({ parameter: slot, reader: by }: ParameterOperand): Sql {
  return by === null
    ? parameter(slot)
    : sql`array(select ${catalogSql(by)}(pg_catalog.unnest(${parameter(slot)}::pg_catalog.text[])))`;
}

function buildExpression(value: ValueExpression): Sql {
  switch (value.kind) {
    case "column":
      return identifier(value.of, value.name);
    case "one":
      return sql`1`;
    case "json":
      return sql`${jsonValue(value.of, value.convert)}${join(
        value.path.map((step, index) => jsonPathStep(step, value.path[index - 1])),
        "",
      )}`;
    case "represented":
      return sql`${catalogSql(value.by)}(${buildExpression(value.of)})`;
    case "own value":
      return sql`${qualifiedIdentifier(value.by)}(${buildExpression(value.key)})`;
    case "cast":
      return sql`cast(${buildExpression(value.of)} as ${typeName(value.type)})`;
    case "aggregate":
      return sql`${value.schema ? PG_CATALOG : NOTHING}${AGGREGATE_FUNCTIONS[value.name]}(${value.of ? buildExpression(value.of) : sql`*`})`;
    case "lookup":
      return sql`(select ${buildExpression(value.value)}${fromClause(value.from)}${whereClause(value.from)} limit 1)`;
    case "embedded":
      return embeddedRows(value);
  }
}

function jsonValue(value: ValueExpression, convert: boolean): Sql {
  return convert ? sql`pg_catalog.to_jsonb(${buildExpression(value)})` : buildExpression(value);
}

/** Keys are part of the text, like column names, so that an index on the expression can be used. */
function jsonPathStep({ arrow, key }: JsonPathStep, previous: JsonPathStep | undefined): Sql {
  const step = typeof key === "number" ? integer(key) : literal(key);
  // With a number only one of Postgres fits. A text has no members: Postgres's message names the operator as it is written.
  if (typeof key === "number" || previous?.arrow === "->>") return arrow === "->" ? sql`->${step}` : sql`->>${step}`;
  return sql`${arrow === "->" ? TO_MEMBER : TO_MEMBER_TEXT}${step}`;
}

/**
 * A sub-select per row instead of a join: a join runs before the rows are sorted and limited (993 ms instead of 57 ms
 * for 20 of 300,000 rows), and may change the order of a function's rows.
 */
function embeddedRows({ form, from }: ValueExpression & { kind: "embedded" }): Sql {
  const rows = buildSelect(from);
  return form === "object"
    ? sql`(select pg_catalog.row_to_json(${ROW}) from (${rows}) "_")`
    : sql`(select coalesce(pg_catalog.json_agg(${ROW}), '[]') from (${rows}) "_")`;
}

/** The row as a function argument. A row of a result is cast back to its type. */
function rowArgument({ of, as }: RowReference): Sql {
  if (!as) return sql`${identifier(of)}.*`;
  const values = as.columns.map((name) => identifier(of, name));
  return sql`row(${join(values, ", ")})::${qualifiedIdentifier(as.type)}`;
}

/** The column name of a scalar result. */
export const SCALAR_COLUMN = "pgrst_scalar";

const PAYLOAD_PARAMETER = { kind: "payload" } as const;

/** Selects the kept columns of a function's result. */
export function buildCall(call: RoutineCall, { wholeRow, names }: KeptColumns): Sql {
  const columns = names.map((name) => identifier(call.alias, name));
  const kept = wholeRow ? [sql`${identifier(call.alias)}.*`, ...columns] : columns;
  return sql`select ${kept.length > 0 ? join(kept, ", ") : sql`1`} from ${callFromItem(call)}`;
}

/** The function call as a FROM item. */
function callFromItem(call: RoutineCall): Sql {
  const { routine, alias, isScalar } = call;
  const called = sql`${qualifiedIdentifier(routine)}(${argumentList(call)})`;
  // A SELECT list allows functions that FROM does not, such as those that return arbitrary records.
  const rows = isScalar ? sql`(select ${called} as ${identifier(SCALAR_COLUMN)})` : called;
  const source = sql`${rows} as ${identifier(alias)}`;
  const routineArguments = call.arguments;
  const before = [
    ...(call.row ? [sql`${qualifiedIdentifier(call.row.table)} as ${identifier(call.row.alias)}`] : []),
    ...(routineArguments.kind === "record" ? [argumentRecord(routineArguments)] : []),
  ];
  return before.length > 0 ? sql`${join(before, ", ")}, lateral ${source}` : source;
}

/** Positional arguments precede named ones. */
function argumentList(call: RoutineCall): Sql {
  const row = call.row ? [sql`${identifier(call.row.alias)}.*`] : [];
  const others = call.arguments.kind === "none" ? [] : [remainingArguments(call)];
  return join([...row, ...others], ", ");
}

function remainingArguments({ arguments: routineArguments }: RoutineCall): Sql {
  switch (routineArguments.kind) {
    case "none":
      return NOTHING;
    case "body":
      return sql`${parameter(PAYLOAD_PARAMETER)}::${catalogSql(routineArguments.sqlType)}`;
    case "each":
      return join(
        routineArguments.parameters.map((each) =>
          argumentSql(each, sql`${parameter(each.parameter)}::${catalogSql(each.sqlType)}`, routineArguments),
        ),
        ", ",
      );
    case "record":
      return join(
        routineArguments.parameters.map((each) =>
          argumentSql(each, identifier(routineArguments.alias, each.name), routineArguments),
        ),
        ", ",
      );
  }
}

function argumentSql(
  { name, variadic }: RoutineParameter,
  value: Sql,
  { positional }: { readonly positional: boolean },
): Sql {
  return sql`${variadic ? sql`variadic ` : NOTHING}${positional ? value : sql`${identifier(name)} := ${value}`}`;
}

function argumentRecord({ alias, isArray, parameters }: RoutineCall["arguments"] & { kind: "record" }): Sql {
  const columns = parameters.map(({ name, sqlType }) => sql`${identifier(name)} ${catalogSql(sqlType)}`);
  const as = sql`as ${identifier(alias)}`;
  const list = join(columns, ", ");
  if (!isArray) return sql`pg_catalog.json_to_record(${parameter(PAYLOAD_PARAMETER)}::pg_catalog.json) ${as}(${list})`;
  return sql`(select * from pg_catalog.json_to_recordset(${parameter(PAYLOAD_PARAMETER)}::pg_catalog.json) ${as}(${list}) limit 1) ${as}`;
}
