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
      return action ? valuesOfArguments(intent.argument, action) : [];
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

/** What was read of a body: by rows, and by the names that columns and arguments have in SQL. JSON is not read. */
type Values = ReadonlyMap<string, { readonly value?: unknown }>;

const remembered = new WeakMap<Payload | CallArgument, readonly Values[]>();

/** For as long as it may have to be told which of them Postgres could not take. */
export function rememberRows(sent: Payload | CallArgument, rows: readonly Values[]): void {
  remembered.set(sent, rows);
}

/** Those of the second of several rows are `1.title`, as everywhere. */
function valuesOfPayload(payload: Payload, { fields }: Collection): readonly SentValue[] {
  const rows = remembered.get(payload) ?? [];
  return rows.flatMap((row, index) =>
    fields.flatMap(({ name, column }) => {
      const sent = row.get(column.name);
      if (sent === undefined || !("value" in sent)) return [];
      return [{ field: payload.isArray ? `${index}.${name}` : name, type: column.type, value: sent.value }];
    }),
  );
}

function valuesOfArguments(argument: CallArgument, action: Action): readonly SentValue[] {
  const [given] = remembered.get(argument) ?? [];
  return action.arguments.flatMap(({ name, argument: { name: inSql, type } }) => {
    const sent = given?.get(inSql!);
    return sent === undefined || !("value" in sent) ? [] : [{ field: name, type, value: sent.value }];
  });
}
