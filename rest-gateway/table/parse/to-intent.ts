import type { CallArgument, Intent, Payload, Placed, Window } from "../../statement/intent.ts";
import { noPage } from "../../statement/plan/page-refusals.ts";
import type { Content } from "./content.ts";
import { parseArgument, parseRows } from "./payload.ts";
import type { Preferences } from "./preferences.ts";
import type { Query } from "./query.ts";

type Parsed = {
  readonly method: string;
  readonly target: Intent["target"];
  readonly query: Query;
  readonly windows: readonly Placed<Window>[];
  readonly preferences: Preferences;
  readonly content: Content;
};

const RETURNED = { representation: "rows", "headers-only": "headers", minimal: "nothing" } as const;
const RESOLUTIONS = { "merge-duplicates": "merge", "ignore-duplicates": "ignore" } as const;

/** What the method makes of all that was read. */
export function toIntent(kind: "table" | "function", parsed: Parsed): Intent {
  const { method, target, query, windows, preferences, content } = parsed;
  const { select, conditions, orders, columns, page } = query;
  const isRead = method === "GET" || method === "HEAD";
  if (page !== null && !isRead) throw noPage(`${method} has no pages: only GET and HEAD have.`);
  const asked = { target, shape: { select, conditions, orders, windows }, count: preferences.count };
  if (kind === "function") return { kind: "call", ...asked, page, argument: toArgument(), readOnly: method !== "POST" };

  if (isRead) return { kind: "read", ...asked, page };

  const write = { ...asked, returned: RETURNED[preferences.return ?? "minimal"] };
  const missingAsDefault = preferences.missing === "default";
  switch (method) {
    case "POST":
      return { kind: "insert", ...write, payload: toRows(), missingAsDefault, upsert: toUpsert(), single: false };
    case "PUT": {
      const upsert = { resolution: "merge", onConflict: null } as const;
      return { kind: "insert", ...write, payload: toRows(), missingAsDefault: false, upsert, single: true };
    }
    case "PATCH":
      return { kind: "update", ...write, payload: toRows(), missingAsDefault };
    default:
      return { kind: "delete", ...write };
  }

  function toArgument(): CallArgument {
    return method === "POST" ? parseArgument(content, columns) : { kind: "query", values: query.arguments };
  }

  /** PUT replaces the whole row: it has no say in the columns. */
  function toRows(): Payload {
    return parseRows(content, method === "PUT" ? null : columns);
  }

  function toUpsert() {
    const { resolution } = preferences;
    return resolution && { resolution: RESOLUTIONS[resolution], onConflict: query.onConflict };
  }
}
