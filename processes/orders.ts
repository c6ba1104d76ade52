import type { Config } from "../engine/config/config.ts";
import type { ServedPostgres } from "../engine/postgres.ts";
import type { Operable } from "../rest-gateway/admin.ts";
import type { Departure } from "../rest-gateway/drain.ts";

/** What the process that looks after the workers tells one of them. */
export type Order =
  | ({ readonly kind: "serve"; readonly worker: number } & Beginning)
  /** Why fewer processes serve than should; null when all do. */
  | { readonly kind: "shortage"; readonly fault: string | null }
  /** Something that an operator asks. */
  | { readonly kind: "ask"; readonly id: number; readonly what: Asked }
  | { readonly kind: "leave"; readonly departure: Departure };

/** What a worker begins with. */
export type Beginning = {
  readonly config: Config;
  readonly postgres: ReachedPostgres;
  /** For how many milliseconds it waits for GraphQL's schema before it serves, where that is not as usual. */
  readonly schemaPatienceMs?: number;
};

export type Asked = keyof Operable;

/** What a worker answers. */
export type Report =
  /** It serves, at that address. */
  | { readonly kind: "serving"; readonly url: string }
  /** What it was asked; undefined where it could not tell. */
  | { readonly kind: "told"; readonly id: number; readonly answer: unknown };

/** The database, as those know it who do not end it. */
export type ReachedPostgres = Omit<ServedPostgres, "close">;

/** Other libraries send messages of their own. */
export function isReport(message: unknown): message is Report {
  const kind = (message as Partial<Report> | null)?.kind;
  return kind === "serving" || kind === "told";
}
