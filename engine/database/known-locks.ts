import type { DatabaseError } from "pg";
import { ApiError } from "../errors.ts";
import { quotedName } from "../quoted-name.ts";
import { isWaitedTooLong } from "./faults.ts";

type KnownLock = { readonly table: string; readonly detail: string; readonly hint: string; readonly until: number };

/** Whoever waits for the lock itself finds it anew within DB_LOCK_TIMEOUT_SECONDS, which are rarely more. */
const REMEMBERED_MS = 10_000;
const MOST_REMEMBERED = 1_000;

/** Locks that statements have met lately: those that wait for a connection behind them are told of the same. */
export class KnownLocks {
  /** By role, which may see the relation, and by the relation. */
  readonly #known = new Map<string, KnownLock>();

  remember(role: string, { schema, table, detail, hint }: DatabaseError): void {
    if (!schema || !table || !detail || !hint) return;
    if (this.#known.size >= MOST_REMEMBERED) this.#known.clear();
    this.#known.set(keyOf(role, quotedName(schema, table)), {
      table,
      detail,
      hint,
      until: performance.now() + REMEMBERED_MS,
    });
  }

  /** The refusal of who has waited in vain for a connection, with the lock that this was for. */
  explain(error: unknown, role: string, relations: readonly string[]): unknown {
    if (this.#known.size === 0 || !isWaitedTooLong(error)) return error;
    const lock = relations.map((relation) => this.#find(keyOf(role, relation))).find((found) => found !== null);
    if (!lock) return error;
    const { status, code, message: tableMessage, headers } = error;
    const message = `"${lock.table}" is locked by somebody else; try again.`;
    return new ApiError(status, code, message, { tableMessage, details: lock.detail, hint: lock.hint, headers });
  }

  #find(key: string): KnownLock | null {
    const known = this.#known.get(key);
    if (known && known.until > performance.now()) return known;
    this.#known.delete(key);
    return null;
  }
}

function keyOf(role: string, relation: string): string {
  return `${role} ${relation}`;
}
