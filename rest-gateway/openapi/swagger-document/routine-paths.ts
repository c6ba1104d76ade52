import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Argument, Routine } from "../../../engine/catalog/routines.ts";
import { readComment } from "../comment.ts";
import type { Viewer } from "../viewer.ts";
import { referTo } from "./parameters.ts";
import { argumentTypeName, elementOf, itemsOf, swaggerFormat, swaggerType } from "./swagger-type.ts";

const PRODUCES = [
  "application/json",
  "application/vnd.pgrst.object+json;nulls=stripped",
  "application/vnd.pgrst.object+json",
];

type Surroundings = { readonly catalog: Catalog; readonly viewer: Viewer };

export function routinePath(routine: Routine, surroundings: Surroundings): object {
  const { name, comment, volatility, arguments: given } = routine;
  const { summary, description } = readComment(comment);
  const typeNameOf = ({ type }: Argument) => argumentTypeName(type, surroundings);
  const about = { tags: [`(rpc) ${name}`], summary, description, produces: PRODUCES };
  const responses = { 200: { description: "OK" } };
  const args = { in: "body", name: "args", required: true, schema: bodySchema(routine, typeNameOf) };
  const post = { ...about, parameters: [args, referTo("parameters", "preferParams")], responses };
  if (volatility === "volatile") return { post };

  const parameters = given.map((argument) => queryParameter(argument, typeNameOf(argument)));
  return { get: { ...about, parameters: parameters.length > 0 ? parameters : undefined, responses }, post };
}

function bodySchema({ comment, arguments: given }: Routine, typeNameOf: (argument: Argument) => string): object {
  const required = given.filter((argument) => argument.required).map(nameOf);
  const properties = given.map((argument) => {
    const typeName = typeNameOf(argument);
    return [
      nameOf(argument),
      { format: swaggerFormat(typeName), type: swaggerType(typeName), items: itemsOf(typeName) },
    ];
  });
  return {
    description: readComment(comment).text,
    required: required.length > 0 ? required : undefined,
    properties: given.length > 0 ? Object.fromEntries(properties) : undefined,
    type: "object",
  };
}

function queryParameter(argument: Argument, typeName: string): object {
  const base = { name: nameOf(argument), required: argument.required, in: "query" };
  if (argument.mode === "variadic") {
    const element = elementOf(typeName);
    const items = { format: swaggerFormat(element), type: swaggerType(element) };
    return { ...base, type: "array", items, collectionFormat: "multi" };
  }
  const type = swaggerType(typeName) ?? "string";
  // Arrays are written {a,b} in an address.
  return { ...base, format: swaggerFormat(typeName), type: type === "array" ? "string" : type };
}

function nameOf({ name }: Argument): string {
  return name ?? "";
}
