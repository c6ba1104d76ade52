import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { buildClientSchema, type GraphQLSchema, getIntrospectionQuery } from "grafast/graphql";
import { expect } from "vitest";
import { formatExposition } from "../../../http/observability/metrics.ts";
import { isJsonObject, parseJsonExactly } from "../../../runtime/json/json-values.ts";
import type { Service } from "../../../service/wiring/service.ts";
import type { TestDatabase } from "../../database.ts";
import { serve } from "../../serve.ts";
import { BY_GRAFAST } from "../grafast/grafast-stages.ts";
import { withDecidedDifferences } from "./decided-differences.ts";
import { type GeneratedOperation, type KnownCursor, mutationsOf, operationsOf, type ValuePool } from "./operations.ts";

export const POOL: ValuePool = {
  ID: ["1", "2", "3", "7", "99", "nonsense", "00000000-0000-4000-8000-000000000001"],
  Int: [0, 1, 2, 3],
  Float: [0, 1.5],
  Boolean: [true, false],
  String: ["a", "one", "de", "summer", "%", 'with "quotes" \\ and Ünï', ""],
  Time: ["2026-01-01T00:00:00Z", "2030-01-01T00:00:00.123456Z", "infinity"],
  Date: ["2026-01-01"],
  LocalDateTime: ["2026-01-01T00:00:00"],
  BigInt: ["1", "2", "9007199254740993"],
  BigFloat: ["1.50", "0"],
  JSON: [{ a: [1.5], b: 1 }, [1, 2], { b: 5 }, "text", 1, {}],
  UUID: ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"],
};

/** One service that compiles, and one whose operations Grafast runs, on one database. */
export type ServicePair = AsyncDisposable & {
  readonly compiling: Service;
  readonly plain: Service;
};

export async function servePair(database: TestDatabase, settings: NodeJS.ProcessEnv = {}): Promise<ServicePair> {
  const limits = {
    ADMIN_PORT: "0",
    // Grafast's rows hold more than the answer that is made of them.
    MAX_ANSWER_BYTES: "1073741823",
    GRAPHQL_PRELOAD: "on",
    GRAPHQL_MAX_COMPLEXITY: "100000",
    GRAPHQL_MAX_ALIASES: "10000",
    PGRST_DB_AGGREGATES_ENABLED: "true",
    GRAPHQL_MAX_ANONYMOUS_PLANNED_FIELDS: "100000",
    ...settings,
  };
  const compiling = await serve(database, limits);
  const plain = await serve(database, limits, BY_GRAFAST);
  return {
    compiling,
    plain,
    [Symbol.asyncDispose]: async () => {
      await compiling.stop();
      await plain.stop();
    },
  };
}

export type Answer = { readonly data: string | null; readonly errors: unknown };

export async function answerOf(service: Service, operation: GeneratedOperation, token: string | null): Promise<Answer> {
  const response = await fetch(`${service.url}/graphql`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-Request-Id": "the-same",
      ...(token !== null && { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ query: operation.query, variables: operation.variables }),
  });
  return splitAnswer(await response.text());
}

type ParsedAnswer = {
  readonly errors?: readonly (Readonly<Record<string, unknown>> & { readonly locations?: unknown })[];
  readonly data?: unknown;
};

/** The text of `data` as it was sent, which is the last member. */
function splitAnswer(text: string): Answer {
  const { errors: all, data } = parseJsonExactly(text) as ParsedAnswer;
  // If a fragment is spread twice, Grafast locates its fields twice.
  const errors = all?.map(({ locations: _, ...error }) => error);
  if (data === undefined) return { data: null, errors };
  const head = all === undefined ? `{"data":` : `{"errors":${JSON.stringify(all)},"data":`;
  return { data: text.startsWith(head) ? text.slice(head.length, -1) : text, errors };
}

export async function schemaFor(service: Service, token: string | null): Promise<GraphQLSchema> {
  const response = await fetch(`${service.url}/graphql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(token !== null && { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ query: getIntrospectionQuery({ oneOf: true }) }),
  });
  const { data } = (await response.json()) as { readonly data: Parameters<typeof buildClientSchema>[0] };
  return buildClientSchema(data);
}

export type Comparison = { readonly operations: number; readonly withErrors: number };

/** Generated queries have the same answer both ways. Cursors of answers are arguments of later operations. */
export async function compareAnswers(
  { compiling, plain }: Pick<ServicePair, "compiling" | "plain">,
  token: string | null,
  runs: number,
  pool: ValuePool = POOL,
): Promise<Comparison> {
  const schema = await schemaFor(compiling, token);
  const cursors = new Map<string, KnownCursor[]>();
  const operations = operationsOf(schema, pool, cursors);
  let withErrors = 0;
  const property = fc.asyncProperty(operations, async (operation) => {
    const [compiled, byGrafast] = await Promise.all([
      answerOf(compiling, operation, token),
      answerOf(plain, operation, token),
    ]);
    if (byGrafast.errors) withErrors += 1;
    expectSame(withSortedGroups(compiled), withSortedGroups(byGrafast));
    if (byGrafast.data !== null) collectCursors(JSON.parse(byGrafast.data), operation, cursors);
  });
  await fc.assert(property, { numRuns: runs, endOnFailure: true });
  return { operations: runs, withErrors };
}

/** The same bytes, unless an error differs as it may. */
function expectSame(compiled: Answer, byGrafast: Answer): void {
  const parsed = ({ data, errors }: Answer) => ({ data: JSON.parse(data ?? "null"), errors });
  if (isDeepStrictEqual(compiled.errors, byGrafast.errors)) expect(compiled).toEqual(byGrafast);
  else expect(parsed(compiled)).toEqual(withDecidedDifferences(parsed(byGrafast), parsed(compiled)));
}

/** The groups of aggregates have no order. */
function withSortedGroups({ data, errors }: Answer): Answer {
  if (!data?.includes('aggregates":[')) return { data, errors };
  const sorted = (value: unknown, key = ""): unknown => {
    if (Array.isArray(value)) {
      const items = value.map((item) => sorted(item));
      return key.endsWith("aggregates")
        ? items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
        : items;
    }
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, sorted(member, name)]));
  };
  return { data: JSON.stringify(sorted(parseJsonExactly(data))), errors };
}

const FIELD_OF_MANY_ROWS = /up(?:date|sert)[A-Z]\w*s$/;

/** Leaves out which row was refused: if several rows of one statement are invalid, its plan decides. */
export function withoutChosenRows(errors: unknown): unknown {
  const listed = errors as readonly { readonly path?: readonly unknown[] }[] | undefined;
  return listed?.map((error) => (FIELD_OF_MANY_ROWS.test(String(error.path?.[0])) ? { path: error.path } : error));
}

const MOMENTS = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

/** Generated mutations have the same answer both ways, on databases that are equal. `align` makes their sequences equal again. */
export async function compareMutations(
  { compiling, plain }: Pick<ServicePair, "compiling" | "plain">,
  token: string | null,
  runs: number,
  align: () => Promise<void>,
): Promise<void> {
  const mutations = mutationsOf(await schemaFor(compiling, token), POOL);
  const property = fc.asyncProperty(mutations, async (operation) => {
    await align();
    const compiled = await answerOf(compiling, operation, token);
    const byGrafast = await answerOf(plain, operation, token);
    const timeless = ({ data, errors }: Answer) => ({
      data: data?.replaceAll(MOMENTS, "now") ?? null,
      errors: withoutChosenRows(errors),
    });
    expectSame(timeless(compiled), timeless(byGrafast));
  });
  // A mutation is not repeated on the same rows.
  await fc.assert(property, { numRuns: runs, endOnFailure: true });
}

function collectCursors(
  data: Readonly<Record<string, unknown>> | null,
  { orders }: GeneratedOperation,
  cursors: Map<string, KnownCursor[]>,
): void {
  for (const [key, value] of Object.entries(data ?? {})) {
    const found = [...JSON.stringify(value).matchAll(/"[^"]*ursor":"([^"]+)"/g)].map(([, cursor]) => ({
      cursor: cursor!,
      orderBy: orders?.get(key),
    }));
    const field = key.replace(/^a\d+/, "");
    cursors.set(field, [...(cursors.get(field) ?? []), ...found].slice(-30));
  }
}

/** Returns the number of operations that ran each way. */
export async function operationOutcomes(service: Service): Promise<Readonly<Record<string, number>>> {
  const text = await formatExposition(await service.operations.measure());
  const samples = text.matchAll(/graphql_operations_total\{way="([^"]+)"\} (\d+)/g);
  return Object.fromEntries([...samples].map(([, way, count]) => [way!, Number(count)]));
}

/** The share of operations that ran as one statement. Those with errors run by Grafast too, which assigns the errors to fields. */
export async function compiledShare(service: Service, comparisons: readonly Comparison[]): Promise<number> {
  const { compiled: _, introspection: __, ...others } = await operationOutcomes(service);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  const operations = sum(comparisons.map((comparison) => comparison.operations));
  const withErrors = sum(comparisons.map((comparison) => comparison.withErrors));
  return 1 - Math.max(0, sum(Object.values(others)) - withErrors) / operations;
}
