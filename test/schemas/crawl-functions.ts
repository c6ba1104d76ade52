import {
  GraphQLEnumType,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isLeafType,
  isListType,
} from "grafast/graphql";
import type { GraphQLShapes } from "./crawl-graphql.ts";
import type { Argument, Routine } from "./described.ts";
import { canonical, isRecord, type Json, parseJson, sorted } from "./exact.ts";
import type { Findings } from "./findings.ts";
import { normalName } from "./normal-name.ts";
import { quoted, sampleOf } from "./rows.ts";
import type { Answer, Served } from "./served.ts";

/** The result of a function for arguments that mean nothing: a value, or the SQLSTATE of its refusal. */
type Outcome = { readonly rows: Json } | { readonly code: string };

const PLAIN: ReadonlySet<string> = new Set(["text", "character varying", "boolean", "smallint", "integer", "uuid"]);

/**
 * Calls each function with arguments of its types: /rest/v1/rpc and GraphQL return the same as SQL. A function that returns another
 * result each time, as of the clock, is only compared by its success.
 */
export async function crawlFunctions(served: Served, { schema }: GraphQLShapes, findings: Findings): Promise<void> {
  for (const routine of served.routines) {
    const values = routine.arguments.map(sampleFor);
    if (values.includes(null) || routine.returns === "record" || routine.variadic) continue;
    const overloads = served.routines.filter(({ name }) => name === routine.name);
    const subject = `${routine.name}(${routine.arguments.map(({ type }) => type).join(", ")})`;
    const expected = await callInSql(served, routine, values as string[]);
    const again = await callInSql(served, routine, values as string[]);
    const isSteady = same(expected) === same(again);
    if (routine.arguments.every(({ name }) => name !== "")) {
      const result = await callByTable(served, routine, values as string[]);
      const isAmbiguous = overloads.some((other) => other !== routine && namesOf(other) === namesOf(routine));
      if (isAmbiguous) findings.compare("table", subject, "call", "refused: PGRST203", same(result));
      else compare("table", result);
      if (overloads.length > 1) continue;
      const byGraphQL = await callByGraphQL(served, schema, routine, values as string[]);
      if (byGraphQL) compare("graphql", byGraphQL);
      else findings.note("graphql", subject, "field", false, "a field", "none");
    }

    function compare(where: "table" | "graphql", result: Outcome): void {
      // GraphQL has codes of its own, and forms of its own for all but one plain value.
      const isSame = isSteady && (where === "table" || (!("code" in result) && PLAIN.has(routine.returns)));
      const isRight = isSame ? same(expected) === same(result) : "code" in expected === "code" in result;
      findings.note(where, subject, "call", isRight, same(expected), same(result));
    }
  }
}

function namesOf({ arguments: list }: Routine): string {
  return list
    .map(({ name }) => name)
    .sort()
    .join();
}

/** Returns text for all of them: Postgres reads it as a value of the argument's type. */
function sampleFor({ type, labels }: Argument, position: number): string | null {
  if (labels) return labels[0] ?? null;
  if (type.endsWith("[]")) {
    const element = sampleOf(type.slice(0, -2), position + 1);
    return element === null ? null : `{${JSON.stringify(element)}}`;
  }
  return sampleOf(type, position + 1);
}

async function callInSql(
  { sql }: Served,
  { schema, name, returnsSet, arguments: list }: Routine,
  values: readonly string[],
): Promise<Outcome> {
  const given = list
    .map(({ name: each, type }, index) => `${each && `${quoted(each)} => `}$${index + 1}::text::${type}`)
    .join(", ");
  const call = `${quoted(schema)}.${quoted(name)}(${given})`;
  try {
    const rows = await sql(`select to_jsonb(_value) as value from ${call} as _value`, values);
    const result = rows.map((row) => (isRecord(row) ? row.value! : row));
    return { rows: returnsSet ? sorted(result) : result[0]! };
  } catch (error) {
    return { code: (error as { readonly code: string }).code };
  }
}

async function callByTable(
  { ask }: Served,
  { schema, name, returns, arguments: list }: Routine,
  values: readonly string[],
): Promise<Outcome> {
  const members = list.map(({ name: each, type }, index) => `${JSON.stringify(each)}: ${asJson(type, values[index]!)}`);
  const body = `{${members.join(", ")}}`;
  const headers = { "Content-Type": "application/json", "Content-Profile": schema, Prefer: "tx=rollback" };
  const { status, json } = await ask(`/rest/v1/rpc/${encodeURIComponent(name)}`, { method: "POST", headers, body });
  // If the names match several functions, none is called: 300.
  if (status >= 300) return { code: isRecord(json) ? String(json.code) : String(status) };
  return { rows: returns === "void" ? "" : sorted(json) };
}

/** Null where it has no field that takes these arguments; changes are made, so it comes last. */
async function callByGraphQL(
  { graphql }: Served,
  schema: GraphQLShapes["schema"],
  { name, arguments: list }: Routine,
  values: readonly string[],
): Promise<Outcome | null> {
  const operations = [
    ["query", schema.getQueryType()],
    ["mutation", schema.getMutationType()],
  ] as const;
  for (const [operation, type] of operations) {
    const field = Object.values(type?.getFields() ?? {}).find((each) => normalName(each.name) === normalName(name));
    // A mutation keeps `id` as an argument, and has all others in its input.
    const input = field?.args.find(
      (argument) => argument.name === "input" && isInputObjectType(getNamedType(argument.type)),
    );
    const within = input ? Object.values((getNamedType(input.type) as GraphQLInputObjectType).getFields()) : [];
    const outside = field?.args.filter((argument) => argument !== input) ?? [];
    if (!field || outside.length + within.length !== list.length) continue;
    const write = (taken: readonly { readonly name: string; readonly type: GraphQLInputType }[]) =>
      taken.map((one) => {
        const position = list.findIndex((each) => normalName(each.name) === normalName(one.name));
        return position < 0 ? null : `${one.name}: ${literal(one.type, list[position]!, values[position]!)}`;
      });
    const [outer, inner] = [write(outside), write(within)];
    if ([...outer, ...inner].includes(null)) continue;
    const given = [...outer, ...(input ? [`input: { ${inner.join(", ")} }`] : [])];
    const isLeaf = isLeafType(getNamedType(field.type));
    const parameters = given.length > 0 ? `(${given.join(", ")})` : "";
    const answer = await graphql(
      `${operation} { value: ${field.name}${parameters} ${isLeaf ? "" : "{ __typename }"} }`,
    );
    return outcomeOf(answer);
  }
  return null;
}

function literal(type: GraphQLInputType, { labels, type: sqlType }: Argument, text: string): string {
  const named = getNamedType(type);
  if (isListType(getNullableType(type))) {
    const [element] = JSON.parse(`[${text.slice(1, -1)}]`) as readonly string[];
    return `[${literal(named, { labels, type: sqlType } as Argument, element!)}]`;
  }
  if (labels)
    return named instanceof GraphQLEnumType
      ? named.getValues().find(({ value, name }) => normalName(name) === normalName(text) || value === text)!.name
      : text;
  if (named.name === "JSON") return jsonLiteral(parseJson(text));
  if (sqlType === "interval") return "{ days: 1 }";
  return ["Int", "Float", "Boolean"].includes(named.name) ? text : JSON.stringify(text);
}

function jsonLiteral(value: Json): string {
  if (!isRecord(value)) return canonical(value);
  const members = Object.entries(value).map(([name, each]) => `${name}: ${jsonLiteral(each)}`);
  return `{ ${members.join(", ")} }`;
}

function outcomeOf({ json }: Answer): Outcome {
  if (!isRecord(json) || json.errors !== undefined || !isRecord(json.data)) return { code: canonical(json) };
  return { rows: json.data.value! };
}

function asJson(type: string, text: string): string {
  return type === "json" || type === "jsonb" ? text : JSON.stringify(text);
}

function same(outcome: Outcome): string {
  return "code" in outcome ? `refused: ${outcome.code}` : canonical(outcome.rows === null ? "" : outcome.rows);
}
