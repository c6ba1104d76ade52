import type { LegacyTarget } from "../../statement/plan/tree.ts";

/** What would end a quoted text, or the header. */
const UNSAFE = /["\\]/g;
const CONTROLS = /\p{Cc}/gu;

/** PostgREST's words to a client that calls a relation by its name although it has an alias (RFC 7234, 5.5). */
export function legacyWarning(targets: readonly LegacyTarget[]): string {
  const changes = targets.map(({ name, alias }) => `\`${name}\` to \`${alias}\``).join(", ");
  const text =
    "Embedded resource was referenced by relation name even though it has an alias. This is deprecated and will stop " +
    `working in a future release. Update ${changes} in query string filters, orders or limits.`;
  return `299 PostgREST "${text.replace(CONTROLS, " ").replace(UNSAFE, "\\$&")}"`;
}
