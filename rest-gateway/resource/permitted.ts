import { parseExactly, textOfValue } from "../../engine/exact-json.ts";
import type { Condition } from "../statement/intent.ts";
import type { AskRows } from "./asked.ts";
import { equals } from "./belonging.ts";
import type { Collection } from "./collections.ts";
import { readIntent } from "./intents.ts";
import { formatKey } from "./parse/key.ts";
import { everyField } from "./parse/selected-fields.ts";

/** Which rows the caller may change, by their key as it stands in an address. */
export type Permitted = { readonly update: ReadonlySet<string>; readonly delete: ReadonlySet<string> };

type Row = Readonly<Record<string, unknown>>;

const NONE: ReadonlySet<string> = new Set();

/** Asks by the policies; what the role may do with no row at all is not asked. */
export async function findPermitted(rows: readonly Row[], collection: Collection, ask: AskRows): Promise<Permitted> {
  const { key, may } = collection;
  const keys = rows.map((row) => key.map(({ name }) => row[name])).filter((values) => !values.includes(undefined));
  const find = async (command: "update" | "delete"): Promise<ReadonlySet<string>> => {
    if (!may[command] || key.length === 0 || keys.length === 0) return NONE;
    const select = everyField(collection).filter(
      (item) => item.kind === "column" && key.some(({ column }) => column.name === item.field?.name),
    );
    const conditions = [oneOf(keys, collection), permits(command)];
    const { text } = await ask(readIntent(collection, { select, conditions }));
    const found = parseExactly(text) as readonly Row[];
    return new Set(found.flatMap((row) => formatKey(key.map(({ name }) => textOfValue(row[name]))) ?? []));
  };
  return { update: await find("update"), delete: await find("delete") };
}

function oneOf(keys: readonly (readonly unknown[])[], { key }: Collection): Condition {
  const [only, ...others] = key;
  if (others.length === 0) {
    const operation = { kind: "in", values: keys.map(([value]) => textOfValue(value)) } as const;
    return { kind: "filter", field: { name: only!.column.name, path: [] }, negated: false, operation };
  }
  const conditions = keys.map((values): Condition => {
    const parts = key.map(({ column }, index) => equals(column.name, textOfValue(values[index])));
    return { kind: "and", negated: false, conditions: parts };
  });
  return { kind: "or", negated: false, conditions };
}

function permits(command: "update" | "delete"): Condition {
  return { kind: "row", negated: false, operation: { kind: "permitted", command } };
}
