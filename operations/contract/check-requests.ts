import {
  GraphQLError,
  type GraphQLSchema,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  validate,
} from "grafast/graphql";
import pg from "pg";
import { makeSearchPathSetting } from "#accounts/identity";
import type { Catalog, DirectRelationship } from "#catalog";
import { type IntentOutline, makeRequestPlanner, type PlanRequest, restoreIntent } from "#planner";
import type { Intent } from "#planner/intent";
import { applyCallerSettings, quotedName, type Setting } from "#postgres/client";
import { ApiError, memoize } from "#runtime";
import { isJsonObject } from "#runtime/json";
import type { Contract } from "./contract.ts";
import { normalizeEndpoint } from "./openapi-changes.ts";
import type { RecordedRequest } from "./recorded-requests.ts";

type CheckDependencies = {
  /** A connection to the changed database, as its owner. */
  readonly client: pg.ClientBase;
  readonly catalog: Catalog;
  readonly contract: Pick<Contract, "openapi">;
  /** The schema that the role sees. */
  readonly schemaOf: (role: string) => Promise<GraphQLSchema>;
  readonly extraSearchPath: readonly string[];
};

/** Returns for each request why the database would refuse it; null if it would not. */
export async function checkRequests(
  requests: readonly RecordedRequest[],
  dependencies: CheckDependencies,
): Promise<(string | null)[]> {
  const plan = makeRequestPlanner({
    aggregates: true,
    maxRows: null,
    safeWrites: false,
    legacyTargetNames: true,
    explainEnabled: false,
    neverStreams: true,
  });
  const context = { ...dependencies, plan, schemaOf: memoize(dependencies.schemaOf) };
  const refusals: (string | null)[] = [];
  for (const request of requests) refusals.push(await findRefusal(request, context));
  return refusals;
}

type CheckContext = CheckDependencies & { readonly plan: PlanRequest };

async function findRefusal(request: RecordedRequest, context: CheckContext): Promise<string | null> {
  const { catalog, contract } = context;
  if (request.others) return null;
  if (!catalog.roles.has(request.role)) return `The role ${request.role} is no longer there.`;
  if (request.operation !== undefined) return findInvalid(request.operation, await context.schemaOf(request.role));
  if (request.endpoint !== undefined && !hasEndpoint(contract.openapi, request.endpoint))
    return "The operation is no longer there.";
  if (request.intent) return findUnplannable(request.intent as IntentOutline, request, context);
  return findUnreadable(request, catalog);
}

const RULES = specifiedRules.filter((rule) => rule !== OverlappingFieldsCanBeMergedRule);

function findInvalid(operation: string, schema: GraphQLSchema): string | null {
  try {
    return validate(schema, parse(operation), RULES)[0]?.message ?? null;
  } catch (error) {
    if (error instanceof GraphQLError) return error.message;
    throw error;
  }
}

/** True if the documents have the endpoint. Addresses at the root are in no document, so they count as present. */
function hasEndpoint(openapi: Contract["openapi"], endpoint: string): boolean {
  const version = /^\w+ \/api\/(v\d+)\//.exec(endpoint)?.[1];
  if (version === undefined) return true;
  const document = openapi[version];
  const paths = isJsonObject(document) && isJsonObject(document.paths) ? Object.entries(document.paths) : [];
  const method = endpoint.split(" ")[0]!.replace("HEAD", "GET").toLowerCase();
  return paths.some(
    ([path, item]) =>
      isJsonObject(item) &&
      item[method] !== undefined &&
      isSamePath(normalizeEndpoint(path), normalizeEndpoint(endpoint)),
  );
}

function isSamePath(path: string, endpoint: string): boolean {
  return endpoint.endsWith(` ${path}`);
}

/** Returns why a subscription to the changes of a table would be refused; null if it would not. */
function findUnreadable({ relations, role }: RecordedRequest, catalog: Catalog): string | null {
  for (const [name, { select }] of Object.entries(relations)) {
    const [schema, table] = splitName(name);
    const found = catalog.schemas.get(schema)?.tables.get(table);
    if (!found) return `The table ${name} is no longer there.`;
    const missing = select.find((column) => !found.columns.has(column));
    if (missing !== undefined) return `The column ${name}.${missing} is no longer there.`;
    const columns = select.length > 0 ? select : [...found.columns.keys()];
    if (!columns.some((column) => catalog.hasPrivilege(role, "select", found, column)))
      return `${role} may no longer read ${name}.`;
  }
  return null;
}

function splitName(name: string): [schema: string, name: string] {
  const at = name.indexOf(".");
  return [name.slice(0, at), name.slice(at + 1)];
}

const RESPONSE = {
  formats: [{ kind: "media", type: "application/json" }],
  includesBody: true,
  maxAffected: null,
} as const;

async function findUnplannable(
  outline: IntentOutline,
  { role, selectsDefault }: RecordedRequest,
  context: CheckContext,
): Promise<string | null> {
  const { catalog, plan } = context;
  try {
    const restored = restoreIntent(outline);
    const intent = selectsDefault ? withoutMissingColumns(restored, catalog, role) : restored;
    const lost = findLostRelationship(outline, catalog);
    if (lost) return `Rows can no longer be embedded by ${lost.constraint}.`;
    const { template, plan: planned } = plan(intent, RESPONSE, catalog, role);
    if (planned.kind === "call" && !catalog.hasPrivilege(role, "execute", planned.routine))
      return `permission denied for function ${planned.routine.name}`;
    return findMissingColumn(intent, catalog) ?? (await explain(intent, role, template, context));
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

/** Removes columns that are gone or unreadable, because the interface selects only existing columns that the role may read. */
function withoutMissingColumns(intent: Intent, catalog: Catalog, role: string): Intent {
  const table = catalog.findTable(intent.target);
  if (!table) return intent;
  const select = intent.selection.select.filter(
    (item) =>
      item.kind !== "column" ||
      item.field === null ||
      (table.columns.has(item.field.name) && catalog.hasPrivilege(role, "select", table, item.field.name)),
  );
  return { ...intent, selection: { ...intent.selection, select } };
}

/** Finds a relationship that no longer exists. An interface that looks up relations itself does not name them. */
function findLostRelationship(part: unknown, catalog: Catalog): DirectRelationship | null {
  if (Array.isArray(part))
    return part.map((each) => findLostRelationship(each, catalog)).find((each) => each !== null) ?? null;
  if (!isJsonObject(part)) return null;
  if (typeof part.constraint === "string" && "keyAt" in part) {
    const relationship = part as never as DirectRelationship;
    const [source, target] = [relationship.source, relationship.target].map((table) => catalog.findTable(table));
    const left = source && target ? catalog.relationshipsBetween(source, target) : [];
    return left.some((each) => "constraint" in each && each.constraint === relationship.constraint)
      ? null
      : relationship;
  }
  return findLostRelationship(Object.values(part), catalog);
}

/** Postgres finds a missing value only when it inserts a row, so this checks for it. */
function findMissingColumn(intent: Intent, catalog: Catalog): string | null {
  if (intent.kind !== "insert") return null;
  const table = catalog.findTable(intent.target)!;
  const missing = [...table.columns.values()].find(
    ({ name, nullable, default: value, identity, generated }) =>
      !nullable && value === null && identity === null && generated === null && !intent.payload.columns.includes(name),
  );
  return missing ? `null value in column "${missing.name}" violates not-null constraint` : null;
}

/** SQLSTATEs of syntax errors and access rule violations, but not of a missing setting, nor of a type that a null leaves undetermined. */
const REFUSALS = /^42(?!704|P18)/;

/** Lets Postgres plan the statement as the role, which checks names, types and privileges, but runs nothing. */
async function explain(
  { target }: Intent,
  role: string,
  { text, parameters }: { readonly text: string; readonly parameters: readonly unknown[] },
  { client, extraSearchPath }: CheckContext,
): Promise<string | null> {
  const [name, path] = makeSearchPathSetting(extraSearchPath)(target.schema);
  const settings: Setting[] = [
    [name, path],
    ["plan_cache_mode", "force_generic_plan"],
    ["request.jwt.claims", JSON.stringify({ role })],
  ];
  await client.query("begin read only");
  try {
    await applyCallerSettings(client, settings);
    // A login that may not switch to the role cannot check the request.
    const mayBecome = await client.query(`set local role ${quotedName(role)}`).then(
      () => true,
      () => false,
    );
    if (!mayBecome) return null;
    await client.query(`prepare recorded_request as ${text}`);
    const nulls = parameters.map(() => "null").join(", ");
    await client.query(`explain execute recorded_request${nulls && `(${nulls})`}`);
    return null;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    return REFUSALS.test(error.code ?? "") ? error.message : null;
  } finally {
    await client.query("rollback");
    await client.query("deallocate all");
  }
}
