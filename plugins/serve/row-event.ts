import type { RowEvent } from "../subscription-topic.ts";

/** What a trigger told; null for anything else, since whoever can connect can notify. */
export function parseRowEvent(payload: string): NumberedEvent | null {
  try {
    const event: unknown = JSON.parse(payload);
    return isRowEvent(event) ? event : null;
  } catch {
    return null;
  }
}

/** Triggers of others need not number their events. */
export type NumberedEvent = RowEvent & { readonly n?: unknown };

function isRowEvent(event: unknown): event is NumberedEvent {
  if (typeof event !== "object" || event === null) return false;
  const { s, t, op, k } = event as Record<string, unknown>;
  return [s, t, op].every((part) => typeof part === "string") && typeof k === "object" && k !== null;
}
