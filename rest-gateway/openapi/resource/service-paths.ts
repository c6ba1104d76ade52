import type { JsonSchema } from "../json-schema.ts";
import { type PathItem, type PathOperation, type ResourceErrorStatus, resourceErrorRefs } from "./responses.ts";
import described from "./service-paths.json" with { type: "json" };

/** An operation that is not about rows, as `service-paths.json` describes it. */
type ServiceOperation = {
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  /** Keys of the file's `parameters`. */
  readonly parameters?: readonly string[];
  readonly body?: JsonSchema;
  readonly responses: Readonly<Record<string, { readonly description: string; readonly schema?: JsonSchema }>>;
  /** Statuses of errors, besides those that every operation has. */
  readonly errors?: readonly ResourceErrorStatus[];
};

type ServicePathItem = Readonly<Record<string, ServiceOperation>>;

const PATHS: Readonly<Record<string, ServicePathItem>> = described.paths as object as Record<string, ServicePathItem>;
const PARAMETERS: Readonly<Record<string, object>> = described.parameters;

/** Sign-in, sessions, keys and health, as far as this deployment serves them. */
export function* servicePaths(isServed: (path: string) => boolean): Generator<[string, PathItem]> {
  for (const [path, item] of Object.entries(PATHS)) if (isServed(path)) yield [path, toPathItem(item)];
}

/** The task of a request with `Prefer: respond-async`; every version has it. */
export function taskPath(version: number): [string, PathItem] {
  return [`/api/v${version}/tasks/{taskId}`, toPathItem(described.taskPath as ServicePathItem)];
}

function toPathItem(item: ServicePathItem): PathItem {
  return Object.fromEntries(Object.entries(item).map(([method, operation]) => [method, toOperation(operation)]));
}

function toOperation(operation: ServiceOperation): PathOperation {
  const { operationId, tag, summary, parameters, body, responses, errors = [] } = operation;
  const described = Object.entries(responses).map(([status, { description, schema }]) => {
    return [status, { description, ...(schema && jsonContent(schema)) }];
  });
  return {
    operationId,
    tags: [tag],
    summary,
    ...(parameters && { parameters: parameters.map((name) => PARAMETERS[name]!) }),
    ...(body && { requestBody: { required: hasRequiredField(body), ...jsonContent(body) } }),
    responses: { ...Object.fromEntries(described), ...resourceErrorRefs(...errors) },
  };
}

function jsonContent(schema: JsonSchema) {
  return { content: { "application/json": { schema } } };
}

function hasRequiredField({ required }: JsonSchema): boolean {
  return Array.isArray(required) && required.length > 0;
}
