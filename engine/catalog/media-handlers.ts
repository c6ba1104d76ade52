import type { QualifiedName } from "./qualified-name.ts";
import type { Routine } from "./routines.ts";
import { MEDIA_TYPE } from "./types.ts";

/**
 * A way of sending a result that SQL defines: a function or an aggregate that returns a domain named like a media type
 * (`create domain "text/csv" as text`).
 */
export type MediaHandler = {
  /** In lower case; any type at all is spelled with two stars. */
  readonly mediaType: string;
  /** An aggregate makes the body from rows; a function is called and gives the body itself. */
  readonly routine: Routine;
  /** Whose rows an aggregate takes; null for any rows (`anyelement`) and for functions. */
  readonly table: QualifiedName | null;
};

const NAME = new RegExp(MEDIA_TYPE);

export function toMediaHandlers(routines: Iterable<Routine>): MediaHandler[] {
  const handlers: MediaHandler[] = [];
  for (const routine of routines) {
    const { type, set } = routine.returns;
    if (type.kind !== "domain" || set || !NAME.test(type.name)) continue;
    const mediaType = type.name.toLowerCase();
    if (routine.kind === "function") {
      handlers.push({ mediaType, routine, table: null });
      continue;
    }
    const input = routine.arguments[0]?.type;
    if (routine.arguments.length !== 1 || !input) continue;
    if (input.kind === "composite" && input.table) handlers.push({ mediaType, routine, table: input.table });
    if (input.kind === "pseudo" && input.name === "anyelement") handlers.push({ mediaType, routine, table: null });
  }
  return handlers;
}
