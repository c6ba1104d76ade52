import type { DataType } from "../../engine/catalog/types.ts";
import type { CallArgument, Intent, Payload } from "../statement/intent.ts";
import type { Asked } from "./asked.ts";
import type { Action, Collection } from "./collections.ts";
import { filterFieldOf } from "./parse/filters.ts";
import type { Target } from "./parse/target.ts";

/** A value of a request, by the name that the client has given it; null where it stands in the path. */
export type SentValue = { readonly field: string | null; readonly type: DataType; readonly value: unknown };

export function sentValues(intent: Intent, asked: Asked): readonly SentValue[] {
  return [...valuesOfKeys(asked.target), ...namedValues(intent, asked)];
}

function namedValues(intent: Intent, asked: Asked): readonly SentValue[] {
  const { collection, action } = asked.target;
  switch (intent.kind) {
    case "insert":
    case "update":
      return valuesOfPayload(intent.payload, collection);
    case "call":
      return action && intent.argument.kind === "json" ? valuesOfArguments(intent.argument, action) : [];
    default:
      return valuesOfFilters(asked);
  }
}

/** What chooses a row, and those that it lies within. */
function valuesOfKeys({ parents, collection, key }: Target): readonly SentValue[] {
  const steps = [...parents, ...(key === null ? [] : [{ collection, key }])];
  return steps.flatMap((step) =>
    step.collection.key.map(({ column }, index) => ({ field: null, type: column.type, value: step.key[index] })),
  );
}

function valuesOfFilters({ parameters, target }: Asked): readonly SentValue[] {
  return [...parameters].flatMap(([name, value]) => {
    const field = filterFieldOf(name, target.collection);
    return field ? [{ field: name, type: field.column.type, value }] : [];
  });
}

/** Whatever they hold was read already. */
const JSON_TYPES: ReadonlySet<string> = new Set(["json", "jsonb"]);

/** Those of the second of several rows are `1.title`, as everywhere. */
function valuesOfPayload({ json, isArray }: Payload, { fields }: Collection): readonly SentValue[] {
  const parsed: unknown = JSON.parse(json.toString());
  const rows = (isArray ? parsed : [parsed]) as readonly Readonly<Record<string, unknown>>[];
  return rows.flatMap((row, index) =>
    fields
      .filter(({ column }) => Object.hasOwn(row, column.name) && !JSON_TYPES.has(column.baseType.name))
      .map(({ name, column }) => {
        return { field: isArray ? `${index}.${name}` : name, type: column.type, value: row[column.name] };
      }),
  );
}

function valuesOfArguments({ body }: Extract<CallArgument, { kind: "json" }>, action: Action): readonly SentValue[] {
  const given: Readonly<Record<string, unknown>> = JSON.parse(body.toString());
  return action.arguments.flatMap(({ name, argument }) => {
    const value = given[argument.name!];
    return value === undefined ? [] : [{ field: name, type: argument.type, value }];
  });
}
