import { baseTypeOf, type Catalog, type Routine, type RoutineArgument, type RoutineReturn } from "#catalog";
import { readComment } from "../document/comments.ts";
import { componentKey } from "../document/components.ts";
import { attributesSchema, type JsonSchema, orNull, type SchemaOfType } from "../document/json-schema.ts";
import type { VisibleSchema } from "../document/visible-schema.ts";
import {
  EMPTY_RESPONSE_REF,
  profileRefs,
  RESERVED_NAMES,
  rowRef,
  sharedRefs,
  type TableErrorStatus,
  tableErrorRefs,
  unreservedRefs,
} from "./components.ts";

type RoutineContext = { readonly viewer: VisibleSchema; readonly catalog: Catalog; readonly typeSchema: SchemaOfType };
export function routineTag({ name }: Pick<Routine, "name">): string {
  return `(rpc) ${name}`;
}

type RoutineOperation = { readonly [key: string]: unknown };

const READ_ERRORS: readonly TableErrorStatus[] = [300, 400, 401, 403, 404, 406];
const ERRORS = {
  query: tableErrorRefs(...READ_ERRORS),
  pages: tableErrorRefs(...READ_ERRORS, 416),
  call: tableErrorRefs(...READ_ERRORS, 409, 413, 422),
};

/** Yields functions that the role may call: all by POST, non-volatile ones by GET too. */
export function* routinePaths(context: RoutineContext): Generator<[string, object]> {
  for (const overloads of context.viewer.routines) {
    const queries = overloads.filter(
      ({ volatility, arguments: parameters }) => volatility !== "volatile" && !takesBody(parameters),
    );
    const path = {
      get: queries.length > 0 ? readOperation(queries, context) : undefined,
      post: callOperation(overloads, context),
    };
    yield [`/rpc/${encodeURIComponent(overloads[0]!.name)}`, path];
  }
}

function readOperation(overloads: readonly Routine[], context: RoutineContext): RoutineOperation {
  const { viewer, catalog } = context;
  const isPaged = overloads.some(({ returns }) => returns.set && returns.shape === "composite");
  const shared = isPaged
    ? sharedRefs("select", "order", "limit", "offset", "range", "rangeUnit", "preferRead")
    : sharedRefs("select", "preferRead");
  const argumentNames = overloads.flatMap((routine) => routine.arguments.map(({ name }) => name!));
  const cursor = isPaged ? unreservedRefs(argumentNames, "cursor") : [];
  const profile = profileRefs({ catalog, schema: viewer.schema!.name }, "Accept-Profile");
  const answers = resultResponses(overloads, context);
  return {
    ...describeOperation("query", overloads),
    parameters: [...queryParameters(overloads, context), ...shared, ...cursor, ...profile],
    responses: isPaged
      ? { ...answers, 206: { description: "Some of the rows" }, ...ERRORS.pages }
      : { ...answers, ...ERRORS.query },
  };
}

function callOperation(overloads: readonly Routine[], context: RoutineContext): RoutineOperation {
  const { viewer, catalog } = context;
  const profile = profileRefs({ catalog, schema: viewer.schema!.name }, "Content-Profile");
  return {
    ...describeOperation("call", overloads),
    parameters: [...sharedRefs("select", "preferCall", "idempotencyKey"), ...profile],
    requestBody: {
      required: overloads.every(({ arguments: parameters }) => parameters.some(({ required }) => required)),
      content: requestBodies(overloads, context),
    },
    responses: { ...resultResponses(overloads, context), ...ERRORS.call },
  };
}

function describeOperation(verb: string, overloads: readonly Routine[]): RoutineOperation {
  const { name } = overloads[0]!;
  const commented = overloads.find(({ comment }) => comment !== null);
  const { summary, description } = readComment(commented?.comment ?? null);
  return { operationId: `${verb}_${componentKey(name)}`, tags: [routineTag({ name })], summary, description };
}

/** Returns the arguments of all overloads; an argument is required if every overload requires it. */
function queryParameters(overloads: readonly Routine[], { typeSchema }: RoutineContext): object[] {
  const parametersByName = Map.groupBy(
    overloads.flatMap((routine) => routine.arguments),
    ({ name }) => name!,
  );
  return [...parametersByName]
    .filter(([name]) => !RESERVED_NAMES.has(name))
    .map(([name, variants]) => ({
      name,
      in: "query",
      required: variants.length === overloads.length && variants.every(({ required }) => required) ? true : undefined,
      schema: anyOfSchemas(variants.map((argument) => queryValue(argument, typeSchema))),
    }));
}

/** Returns the schema of a value in a query: an array is written `{a,b}`, a variadic argument is repeated. */
function queryValue({ mode, type }: RoutineArgument, typeSchema: SchemaOfType): JsonSchema {
  const schema = typeSchema(type);
  if (mode === "variadic") return schema;
  return ["string", "number", "integer", "boolean"].includes(String(schema.type)) ? schema : { type: "string" };
}

const RAW_BODIES: Readonly<Record<string, string>> = {
  text: "text/plain",
  xml: "text/xml",
  bytea: "application/octet-stream",
};

function requestBodies(overloads: readonly Routine[], { typeSchema }: RoutineContext): object {
  const content: Record<string, { schema?: JsonSchema }> = {};
  const json: JsonSchema[] = [];
  for (const { arguments: parameters } of overloads) {
    const raw = takesBody(parameters) ? RAW_BODIES[parameters[0]!.type.name] : undefined;
    if (raw) content[raw] = {};
    else json.push(takesBody(parameters) ? {} : namedArguments(parameters, typeSchema));
  }
  return json.length > 0 ? { "application/json": { schema: anyOfSchemas(json) }, ...content } : content;
}

function namedArguments(parameters: readonly RoutineArgument[], typeSchema: SchemaOfType): JsonSchema {
  const required = parameters.filter((argument) => argument.required).map(({ name }) => name);
  return {
    type: "object",
    properties: Object.fromEntries(parameters.map(({ name, type }) => [name!, orNull(typeSchema(type))])),
    required: required.length > 0 ? required : undefined,
    additionalProperties: false,
  };
}

function resultResponses(overloads: readonly Routine[], context: RoutineContext): object {
  const returning = overloads.filter(({ returns }) => returns.shape !== "void");
  const content = new Map<string, JsonSchema[]>();
  for (const routine of returning) {
    const own = context.catalog.mediaHandlers.find((handler) => handler.routine === routine)?.mediaType;
    const mediaType = own === "*/*" ? "application/octet-stream" : (own ?? "application/json");
    const schema = own ? { type: "string" } : resultSchema(routine, context);
    content.set(mediaType, [...(content.get(mediaType) ?? []), schema]);
  }
  const byMediaType = [...content].map(([mediaType, schemas]) => [mediaType, { schema: anyOfSchemas(schemas) }]);
  return {
    ...(returning.length > 0 && { 200: { description: "The result", content: Object.fromEntries(byMediaType) } }),
    ...(returning.length < overloads.length && { 204: EMPTY_RESPONSE_REF }),
  };
}

function resultSchema({ returns }: Routine, context: RoutineContext): JsonSchema {
  const { columns, set } = returns;
  const one = columns.size > 0 ? attributesSchema(columns.values(), context.typeSchema) : rowOrValue(returns, context);
  return set ? { type: "array", items: one } : one;
}

function rowOrValue(returns: RoutineReturn, { viewer, typeSchema }: RoutineContext): JsonSchema {
  const type = baseTypeOf(returns.type);
  if (type.kind !== "composite" || !type.table) return orNull(typeSchema(returns.type));
  const isDescribed = type.table.schema === viewer.schema!.name && viewer.findVisible(type.table)?.verbs.has("select");
  return isDescribed ? rowRef(type.table.name, "row") : typeSchema(type);
}

function takesBody(parameters: readonly RoutineArgument[]): boolean {
  return parameters.length === 1 && parameters[0]!.name === null;
}

function anyOfSchemas(schemas: readonly JsonSchema[]): JsonSchema {
  const distinct = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
  return distinct.length === 1 ? distinct[0]! : { anyOf: distinct };
}
