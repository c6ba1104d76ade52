import {
  buildSchema,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  parse,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from "grafast/graphql";
import { memoize } from "#runtime";
import { isJsonObject, type JsonObject } from "#runtime/json";
import { compareContracts } from "./compare-contracts.ts";
import type { AffectedRequest, Contract, ContractChange } from "./contract.ts";
import type { Verb } from "./exposed-objects.ts";
import { resolveReference } from "./json-schema-changes.ts";
import { normalizeEndpoint } from "./openapi-changes.ts";
import type { RecordedRequest } from "./recorded-requests.ts";

/** Recorded requests, with the reason why each is refused after the changes. */
type CheckedRequests = {
  readonly requests: readonly RecordedRequest[];
  readonly refusals: readonly (string | null)[];
};

/** Returns the changes, with the recorded requests that they concern if any are recorded. */
export function compareWithRequests(
  before: Contract,
  { contract, refusals }: { readonly contract: Contract; readonly refusals: CheckedRequests["refusals"] },
  requests: readonly RecordedRequest[] | null,
): ContractChange[] {
  const changes = compareContracts(before, contract);
  return requests === null ? changes : addAffectedRequests(changes, before, { requests, refusals });
}

/** Adds to each breaking change the recorded requests that use the changed object, and those that may. */
function addAffectedRequests(
  changes: readonly ContractChange[],
  before: Contract,
  { requests, refusals }: CheckedRequests,
): ContractChange[] {
  const schema = buildSchema(before.graphql, { assumeValidSDL: true });
  const coordinatesOf = memoize((operation: string) => listCoordinates(operation, schema));
  const affected = requests.map(({ interface: name, role, request, requests: count }, index): AffectedRequest => {
    return { interface: name, role, request, requests: count, refusal: refusals[index] ?? null };
  });
  const explained = new Set<number>();
  const withRequests = changes.map((change) => {
    if (change.level !== "breaking") return change;
    const uses = makeUseTest(change, before, coordinatesOf);
    const indexes = requests.flatMap((request, index) => (request.others || uses(request) ? [index] : []));
    for (const index of indexes) explained.add(index);
    return { ...change, requests: indexes.map((index) => affected[index]!) };
  });
  const others = affected.filter(({ refusal }, index) => refusal !== null && !explained.has(index));
  return [...withRequests, ...others.map(toChange)];
}

const SURFACES = { table: "tables", realtime: "tables", resource: "openapi", graphql: "graphql" } as const;

/** Makes a change from a refusal that no change of the interfaces explains, such as a function whose body names a dropped object. */
function toChange(affected: AffectedRequest): ContractChange {
  const { interface: name, request, refusal } = affected;
  return {
    surface: SURFACES[name],
    level: "breaking",
    object: request,
    message: `Refused: ${refusal}`,
    requests: [affected],
  };
}

type UseTest = (request: RecordedRequest) => boolean;

function makeUseTest(
  change: ContractChange,
  before: Contract,
  coordinatesOf: (operation: string) => ReadonlySet<string>,
): UseTest {
  switch (change.surface) {
    case "tables":
      return testOfTables(change, before);
    case "access":
      return testOfAccess(change);
    case "openapi":
      return testOfOpenApi(change, before);
    case "types":
      return testOfTypes(change);
    case "graphql": {
      const coordinates = coordinatesIn(change.message);
      return ({ operation }) =>
        operation !== undefined && coordinates.some((each) => coordinatesOf(operation).has(each));
    }
  }
}

function usesColumn({ relations }: RecordedRequest, relation: string, column: string, verbs: readonly Verb[]): boolean {
  const used = relations[relation];
  return used !== undefined && verbs.some((verb) => verb !== "delete" && used[verb].includes(column));
}

function usesRelation({ relations, interface: name, request }: RecordedRequest, relation: string, verb: Verb): boolean {
  const used = relations[relation];
  if (!used) return false;
  // The columns of an operation are unknown.
  if (name === "graphql") return (verb === "select") === !request.startsWith("mutation");
  if (verb === "delete") return used.deletes;
  return used[verb].length > 0 || (verb === "select" && name === "realtime");
}

const COLUMN_VERBS: readonly (readonly [message: RegExp, verbs: readonly Verb[]])[] = [
  [/can no longer be read/, ["select"]],
  [/^Inserts can no longer/, ["insert"]],
  [/^Updates can no longer/, ["update"]],
  [/^Writes of null/, ["insert", "update"]],
];
const ALL_VERBS: readonly Verb[] = ["select", "insert", "update", "delete"];

function testOfTables({ object, message }: ContractChange, { tables }: Contract): UseTest {
  const ofTable =
    (test: UseTest): UseTest =>
    (request) =>
      (request.interface === "table" || request.interface === "realtime") && test(request);
  const [source, target] = object.split(" → ");
  if (target !== undefined)
    return ofTable(({ relations }) => relations[source!] !== undefined && relations[target] !== undefined);
  const call = /^([^(]+)\(.*?\) ?(.*)$/.exec(object);
  if (call) return ofTable(testOfFunction(call[1]!, call[2]!, message));
  if (tables.relations[object]) {
    if (message.startsWith("Rows can no longer be deleted"))
      return ofTable(({ relations }) => relations[object]?.deletes === true);
    if (message.startsWith("The key"))
      return ofTable(({ relations, intent }) => relations[object] !== undefined && intent?.upsert != null);
    return ofTable(({ relations }) => relations[object] !== undefined);
  }
  const relation = Object.keys(tables.relations).find((name) => object.startsWith(`${name}.`));
  if (relation === undefined) return () => false;
  const column = object.slice(relation.length + 1).split(".")[0]!;
  if (/do not name/.test(message))
    return ofTable(
      ({ relations, intent }) =>
        relations[relation] !== undefined && intent?.kind === "insert" && !relations[relation].insert.includes(column),
    );
  const verbs = COLUMN_VERBS.find(([pattern]) => pattern.test(message))?.[1] ?? ALL_VERBS;
  return ofTable((request) => usesColumn(request, relation, column, verbs));
}

function testOfFunction(name: string, argument: string, message: string): UseTest {
  const named = /^The argument (\S+) is (no longer there|required|new and required)/.exec(message);
  return ({ functions }) => {
    const passed = functions[name];
    if (!passed) return false;
    if (named?.[2] === "no longer there") return passed.includes(named[1]!);
    if (named?.[2] === "required") return !passed.includes(named[1]!);
    return argument === "" || argument.startsWith("result") || passed.includes(argument);
  };
}

/** `public.films select anon`, `public.films.title select anon`, `public.find(integer) execute anon`, `role anon` */
function testOfAccess({ object }: ContractChange): UseTest {
  const [what, verb, role] = object.split(/ (?=(?:select|insert|update|delete|execute) \S+$)| (?=\S+$)/) as [
    string,
    string?,
    string?,
  ];
  if (role === undefined) return (request) => request.role === verb;
  if (verb === "execute")
    return ({ functions, role: caller }) => caller === role && functions[what.split("(")[0]!] !== undefined;
  return (request) => {
    if (request.role !== role) return false;
    if (request.relations[what]) return usesRelation(request, what, verb as Verb);
    const at = what.lastIndexOf(".");
    const [relation, column] = [what.slice(0, at), what.slice(at + 1)];
    if (request.interface === "graphql") return usesRelation(request, relation, verb as Verb);
    return usesColumn(request, relation, column, [verb as Verb]);
  };
}

/** A finding on a member concerns the requests that use the column of that name, if there is one. */
function testOfOpenApi({ object, message }: ContractChange, { tables, openapi }: Contract): UseTest {
  const [version, ...place] = object.split(" ");
  const words = new Set(message.match(/\w+/g));
  const endpoints =
    place.length === 2
      ? [place.join(" ")]
      : listEndpoints(openapi[version!], place[0] ?? "", message.startsWith("request"));
  return (request) => {
    if (request.endpoint === undefined) return false;
    if (place.length === 0) return request.endpoint.includes(` /api/${version}/`);
    if (!endpoints.some((endpoint) => isSameEndpoint(request.endpoint!, endpoint, version!))) return false;
    const named = Object.keys(request.relations).flatMap((relation) =>
      Object.keys(tables.relations[relation]?.columns ?? {})
        .filter((column) => words.has(column))
        .map((column) => [relation, column] as const),
    );
    const isRequired = message.startsWith("request") && request.intent?.kind === "insert";
    return (
      named.length === 0 ||
      isRequired ||
      named.some(([relation, column]) => usesColumn(request, relation, column, ALL_VERBS))
    );
  };
}

/** Lists the operations whose requests or responses contain the schema. */
function listEndpoints(document: unknown, schema: string, isRequest: boolean): string[] {
  const root = isJsonObject(document) ? document : {};
  const paths = isJsonObject(root.paths) ? Object.entries(root.paths) : [];
  return paths.flatMap(([path, item]) =>
    Object.entries(isJsonObject(item) ? item : {})
      .filter(([, operation]) => {
        if (!isJsonObject(operation)) return false;
        const parts = isRequest ? [operation.requestBody, operation.parameters] : [operation.responses];
        return refersTo(parts, schema, root, new Set());
      })
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  );
}

function refersTo(part: unknown, schema: string, root: JsonObject, visited: Set<string>): boolean {
  if (Array.isArray(part)) return part.some((each) => refersTo(each, schema, root, visited));
  if (!isJsonObject(part)) return false;
  const reference = part.$ref;
  if (typeof reference !== "string") return Object.values(part).some((each) => refersTo(each, schema, root, visited));
  if (reference.endsWith(`/${schema}`)) return true;
  if (visited.has(reference)) return false;
  visited.add(reference);
  return refersTo(resolveReference(part, root), schema, root, visited);
}

function isSameEndpoint(recorded: string, documented: string, version: string): boolean {
  const [method, path] = normalizeEndpoint(recorded)
    .replace(/^HEAD /, "GET ")
    .split(" ");
  const [wanted, documentedPath] = normalizeEndpoint(documented).split(" ");
  return method === wanted && (path === documentedPath || path === `/api/${version}${documentedPath}`);
}

const TYPE_VERBS: Readonly<Record<string, readonly Verb[]>> = {
  Row: ["select"],
  Insert: ["insert"],
  Update: ["update"],
};

/** `Database.public.Tables.films.Row.title` */
function testOfTypes({ object }: ContractChange): UseTest {
  const [, schema, kind, name, use, member] = object.split(".");
  const qualified = `${schema}.${name}`;
  return (request) => {
    if (request.interface !== "table") return false;
    if (kind === "Functions") return request.functions[qualified] !== undefined;
    if (kind !== "Tables" && kind !== "Views") return false;
    const verbs = TYPE_VERBS[use ?? ""];
    if (!verbs || member === undefined) return request.relations[qualified] !== undefined;
    return usesColumn(request, qualified, member, verbs);
  };
}

/** The names in a description of graphql-js: `Note.text was removed.`, `A required arg x on Query.notes was added.` */
function coordinatesIn(message: string): string[] {
  const value = /^(\w+) was removed from (?:enum|union) type (\w+)\.$/.exec(message);
  if (value) return [`${value[2]}.${value[1]}`];
  const argument = /^(\w+\.\w+) arg (\w+) /.exec(message);
  if (argument) return [`${argument[1]}(${argument[2]}:)`];
  const required = /^A required (?:arg|field) \w+ on (?:input type )?([\w.]+) was added\.$/.exec(message);
  if (required) return [required[1]!];
  const interfaceOf = /^(\w+) no longer implements interface (\w+)\.$/.exec(message);
  if (interfaceOf) return [interfaceOf[1]!];
  const first = /^@?([\w.]+)/.exec(message);
  return first ? [first[1]!] : [];
}

/** The types, fields, arguments, input fields and enum values that an operation uses, or may use. */
function listCoordinates(operation: string, schema: GraphQLSchema): ReadonlySet<string> {
  const found = new Set<string>();
  const typeInfo = new TypeInfo(schema);
  const document = parse(operation);
  visit(
    document,
    visitWithTypeInfo(typeInfo, {
      Field() {
        const [parent, field] = [typeInfo.getParentType(), typeInfo.getFieldDef()];
        if (!parent || !field) return;
        found.add(`${parent.name}.${field.name}`).add(parent.name).add(getNamedType(field.type).name);
      },
      Argument() {
        const [parent, field, argument] = [typeInfo.getParentType(), typeInfo.getFieldDef(), typeInfo.getArgument()];
        if (!parent || !field || !argument) return;
        found.add(`${parent.name}.${field.name}(${argument.name}:)`).add(getNamedType(argument.type).name);
      },
      InlineFragment({ typeCondition }) {
        if (typeCondition) found.add(typeCondition.name.value);
      },
      ObjectField({ name }) {
        const parent = typeInfo.getParentInputType();
        if (parent) found.add(`${getNamedType(parent).name}.${name.value}`).add(getNamedType(parent).name);
      },
      // Values are not recorded: the variable may have any.
      Variable() {
        const type = getNamedType(typeInfo.getInputType());
        if (isEnumType(type)) for (const { name } of type.getValues()) found.add(`${type.name}.${name}`);
      },
    }),
  );
  return found;
}
