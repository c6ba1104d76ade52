import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Argument, Returns, Routine } from "../../../engine/catalog/routines.ts";
import { baseTypeOf } from "../../../engine/catalog/types.ts";
import { readComment } from "../comment.ts";
import { RESERVED } from "../reserved-names.ts";
import type { Viewer } from "../viewer.ts";
import { componentKey } from "./component-key.ts";
import { type ErrorStatus, refuses } from "./error-responses.ts";
import { referToCursor, referToProfile, referToShared } from "./parameters.ts";
import { referToRow } from "./row-schemas.ts";
import { REFER_TO_DONE } from "./table-responses.ts";
import { objectSchema, orNull, type Schema, type TypeSchema } from "./type-schema.ts";

type Surroundings = { readonly viewer: Viewer; readonly catalog: Catalog; readonly typeSchema: TypeSchema };
type Operation = { readonly [key: string]: unknown };

const READ: readonly ErrorStatus[] = [300, 400, 401, 403, 404, 406];
const REFUSES = { query: refuses(...READ), pages: refuses(...READ, 416), call: refuses(...READ, 409, 413, 422) };

/** Functions that the role may call: by POST, and by GET those that change nothing. */
export function* routinePaths(surroundings: Surroundings): Generator<[string, object]> {
  for (const overloads of surroundings.viewer.routines) {
    const queries = overloads.filter(
      ({ volatility, arguments: given }) => volatility !== "volatile" && !takesBody(given),
    );
    const path = {
      get: queries.length > 0 ? query(queries, surroundings) : undefined,
      post: call(overloads, surroundings),
    };
    yield [`/rpc/${encodeURIComponent(overloads[0]!.name)}`, path];
  }
}

function query(overloads: readonly Routine[], surroundings: Surroundings): Operation {
  const { viewer, catalog } = surroundings;
  const isPaged = overloads.some(({ returns }) => returns.set && returns.shape === "composite");
  const shared = isPaged
    ? referToShared("select", "order", "limit", "offset", "range", "rangeUnit", "preferRead")
    : referToShared("select", "preferRead");
  const given = overloads.flatMap((routine) => routine.arguments.map(({ name }) => name!));
  const cursor = isPaged ? referToCursor(given) : [];
  const profile = referToProfile({ catalog, schema: viewer.schema!.name }, "Accept-Profile");
  const answers = results(overloads, surroundings);
  return {
    ...about("query", overloads),
    parameters: [...queryParameters(overloads, surroundings), ...shared, ...cursor, ...profile],
    responses: isPaged
      ? { ...answers, 206: { description: "Some of the rows" }, ...REFUSES.pages }
      : { ...answers, ...REFUSES.query },
  };
}

function call(overloads: readonly Routine[], surroundings: Surroundings): Operation {
  const { viewer, catalog } = surroundings;
  const profile = referToProfile({ catalog, schema: viewer.schema!.name }, "Content-Profile");
  return {
    ...about("call", overloads),
    parameters: [...referToShared("select", "preferCall", "idempotencyKey"), ...profile],
    requestBody: {
      required: overloads.every(({ arguments: given }) => given.some(({ required }) => required)),
      content: bodies(overloads, surroundings),
    },
    responses: { ...results(overloads, surroundings), ...REFUSES.call },
  };
}

function about(verb: string, overloads: readonly Routine[]): Operation {
  const { name } = overloads[0]!;
  const commented = overloads.find(({ comment }) => comment !== null);
  const { summary, description } = readComment(commented?.comment ?? null);
  return { operationId: `${verb}_${componentKey(name)}`, tags: [`(rpc) ${name}`], summary, description };
}

/** The arguments of all overloads; one is required when no overload does without it. */
function queryParameters(overloads: readonly Routine[], { typeSchema }: Surroundings): object[] {
  const given = Map.groupBy(
    overloads.flatMap((routine) => routine.arguments),
    ({ name }) => name!,
  );
  return [...given]
    .filter(([name]) => !RESERVED.has(name))
    .map(([name, variants]) => ({
      name,
      in: "query",
      required: variants.length === overloads.length && variants.every(({ required }) => required) ? true : undefined,
      schema: oneOfThem(variants.map((argument) => queryValue(argument, typeSchema))),
    }));
}

/** In an address an array is written `{a,b}`, as Postgres writes it; only a variadic argument is named once for each value. */
function queryValue({ mode, type }: Argument, typeSchema: TypeSchema): Schema {
  const schema = typeSchema(type);
  if (mode === "variadic") return schema;
  return ["string", "number", "integer", "boolean"].includes(String(schema.type)) ? schema : { type: "string" };
}

const RAW_BODIES: Readonly<Record<string, string>> = {
  text: "text/plain",
  xml: "text/xml",
  bytea: "application/octet-stream",
};

function bodies(overloads: readonly Routine[], { typeSchema }: Surroundings): object {
  const content: Record<string, { schema?: Schema }> = {};
  const json: Schema[] = [];
  for (const { arguments: given } of overloads) {
    const raw = takesBody(given) ? RAW_BODIES[given[0]!.type.name] : undefined;
    if (raw) content[raw] = {};
    else json.push(takesBody(given) ? {} : namedArguments(given, typeSchema));
  }
  return json.length > 0 ? { "application/json": { schema: oneOfThem(json) }, ...content } : content;
}

function namedArguments(given: readonly Argument[], typeSchema: TypeSchema): Schema {
  const required = given.filter((argument) => argument.required).map(({ name }) => name);
  return {
    type: "object",
    properties: Object.fromEntries(given.map(({ name, type }) => [name!, orNull(typeSchema(type))])),
    required: required.length > 0 ? required : undefined,
    additionalProperties: false,
  };
}

function results(overloads: readonly Routine[], surroundings: Surroundings): object {
  const returning = overloads.filter(({ returns }) => returns.shape !== "void");
  const content = new Map<string, Schema[]>();
  for (const routine of returning) {
    const own = surroundings.catalog.mediaHandlers.find((handler) => handler.routine === routine)?.mediaType;
    const mediaType = own === "*/*" ? "application/octet-stream" : (own ?? "application/json");
    const schema = own ? { type: "string" } : result(routine, surroundings);
    content.set(mediaType, [...(content.get(mediaType) ?? []), schema]);
  }
  const byMediaType = [...content].map(([mediaType, schemas]) => [mediaType, { schema: oneOfThem(schemas) }]);
  return {
    ...(returning.length > 0 && { 200: { description: "The result", content: Object.fromEntries(byMediaType) } }),
    ...(returning.length < overloads.length && { 204: REFER_TO_DONE }),
  };
}

function result({ returns }: Routine, surroundings: Surroundings): Schema {
  const { columns, set } = returns;
  const one =
    columns.size > 0 ? objectSchema(columns.values(), surroundings.typeSchema) : rowOrValue(returns, surroundings);
  return set ? { type: "array", items: one } : one;
}

function rowOrValue(returns: Returns, { viewer, typeSchema }: Surroundings): Schema {
  const type = baseTypeOf(returns.type);
  if (type.kind !== "composite" || !type.table) return orNull(typeSchema(returns.type));
  const isDescribed = type.table.schema === viewer.schema!.name && viewer.see(type.table)?.verbs.has("select");
  return isDescribed ? referToRow(type.table.name, "row") : typeSchema(type);
}

function takesBody(given: readonly Argument[]): boolean {
  return given.length === 1 && given[0]!.name === null;
}

function oneOfThem(schemas: readonly Schema[]): Schema {
  const distinct = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
  return distinct.length === 1 ? distinct[0]! : { anyOf: distinct };
}
