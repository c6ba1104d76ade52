import { RecentMap } from "#runtime";
import type { ShareHolder } from "./statement.ts";

const SQL_NAME = '(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)';
const NAMED_RELATION = new RegExp(`\\b(?:from|join|into|update)\\s+(?:only\\s+)?(${SQL_NAME})\\.(${SQL_NAME})`, "gi");
const SYSTEM_SCHEMA = '"pg_catalog"';
/** The maximum number of relations per statement; further ones are ignored. */
const MAX_RELATIONS = 16;

/** The duration in milliseconds from which a statement is long. */
export const LONG_MS = 100;
/** The duration below which a long statement stops being long. */
const STILL_LONG_MS = LONG_MS / 4;
const SLOW_AVERAGE_MS = 3;
const SLOW_RUN_MS = 20;
const BRIEF_AVERAGE_MS = 1;
const RUNS_TO_TRUST = 3;
/** The number of fast runs that outweighs a slow average: other load of the machine may slow any statement for a moment. */
const RUNS_TO_TRUST_FIRMLY = 12;
const MAX_TRUST = 64;
/** The part of the trust that remains after a slow run. */
const TRUST_AFTER_SLOW_RUN = 1 / 4;
/** Weight of the newest run in the moving average. */
const NEWEST_RUN_WEIGHT = 1 / 8;
/** Weight of a caller's newest run in the share of its runs that are long. */
const NEWEST_LENGTH_WEIGHT = 1 / 4;
/** The time for which a failed statement is expected to fail again. */
const FAILURE_MEMORY_MS = 10_000;
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
const TEXT_OVERHEAD_BYTES = 1_000;
const MAX_CALLERS = 100;

/** A statement's text for one role: the key of prepared statements and of learned durations. */
export class StatementShape {
  readonly text: string;
  #average = 0;
  /** Grows with each fast run. */
  #trust = 0;
  #wasFast = false;
  #relations: readonly string[] | null = null;
  #failedAt = 0;
  /** Identifies the queue of statements that turned out to be long, separate from those of unknown duration. */
  readonly longKind = {};
  /** The share of long runs among each caller's last runs: other parameter values may make the statement fast. */
  #longShares: Map<string, number> | null = null;

  constructor(text: string) {
    // The protocol ends strings with a zero byte, so the server would read the bytes after it as another field.
    if (text.includes("\0")) throw new TypeError("A statement's text must not contain a zero byte");
    this.text = text;
  }

  /** False if the shape is new, was slow recently or is slow on average; a shape that was fast for long may run slowly once. */
  get isFast(): boolean {
    if (this.#trust >= RUNS_TO_TRUST_FIRMLY) return true;
    return this.#trust >= RUNS_TO_TRUST && this.#average < SLOW_AVERAGE_MS;
  }

  /** True if it was fast, and is not slow by itself: other load of the machine may have made it slow for a moment. */
  get isShort(): boolean {
    return this.#wasFast && this.#average < SLOW_RUN_MS;
  }

  /** True if it failed within the last seconds in a transaction that had to be rolled back. */
  get mayFail(): boolean {
    return this.#failedAt > 0 && performance.now() - this.#failedAt < FAILURE_MEMORY_MS;
  }

  /** The expected duration in milliseconds. */
  get expected(): number {
    return this.#average;
  }

  /** True if most of the caller's last runs were long: then it is limited to a share of the pool. Unknown statements are not long. */
  isLongFor(by: Pick<ShareHolder, "caller">): boolean {
    return (this.#longShares?.get(by.caller) ?? 0) > 1 / 2;
  }

  get relations(): readonly string[] {
    this.#relations ??= findNamedRelations(this.text);
    return this.#relations;
  }

  /** True if it is so short that batching several does not delay others. */
  get isBrief(): boolean {
    return this.isFast && this.#average < BRIEF_AVERAGE_MS;
  }

  failed(): void {
    this.#failedAt = performance.now();
  }

  ran(milliseconds: number, by: Pick<ShareHolder, "caller">): void {
    this.#recordLength(milliseconds, by);
    this.#average += (milliseconds - this.#average) * NEWEST_RUN_WEIGHT;
    if (milliseconds > SLOW_RUN_MS) this.#trust = Math.floor(this.#trust * TRUST_AFTER_SLOW_RUN);
    else if (milliseconds < SLOW_AVERAGE_MS) this.#trust = Math.min(MAX_TRUST, this.#trust + 1);
    else this.#trust = Math.max(0, this.#trust - 1);
    this.#wasFast ||= this.#trust >= RUNS_TO_TRUST;
  }

  #recordLength(milliseconds: number, { caller }: Pick<ShareHolder, "caller">): void {
    const share = this.#longShares?.get(caller);
    const isLong = milliseconds >= LONG_MS;
    if (!isLong && share === undefined) return;
    // A statement alone is faster than beside others of its kind: if it counted as short then, they would all run at once again.
    if (!isLong && milliseconds > STILL_LONG_MS && this.isLongFor({ caller })) return;
    if (!this.#longShares || this.#longShares.size >= MAX_CALLERS) this.#longShares = new Map();
    // Callers without long runs are not in the map.
    const isUsuallyShort = this.#average > 0 && this.#average < LONG_MS;
    const before = share ?? (isUsuallyShort ? 0 : 1);
    const after = before + (Number(isLong) - before) * NEWEST_LENGTH_WEIGHT;
    if (after < NEWEST_LENGTH_WEIGHT / 4) this.#longShares.delete(caller);
    else this.#longShares.set(caller, after);
  }
}

/** The learned duration of a statement, and the relations it may wait for. */
export type StatementPacing = Pick<
  StatementShape,
  "expected" | "isBrief" | "isShort" | "isLongFor" | "longKind" | "relations" | "ran"
>;

/** The pace of several statements in one transaction. */
export function combinedPacing(shapes: readonly StatementShape[]): StatementPacing {
  return {
    expected: shapes.reduce((sum, { expected }) => sum + expected, 0),
    isBrief: false,
    isShort: false,
    longKind: {},
    isLongFor: (by) => shapes.some((shape) => shape.isLongFor(by)),
    relations: [...new Set(shapes.flatMap(({ relations }) => relations))],
    ran(milliseconds, by) {
      for (const shape of shapes) shape.ran(milliseconds / shapes.length, by);
    },
  };
}

/**
 * The recently used shapes, for all connections. Postgres checks USAGE on schemas at Parse only, and plans policies for
 * one role, so each role has its own shape of a text.
 */
export class StatementShapes {
  /** The shapes by text, then by role. */
  readonly #known: RecentMap<string, Map<string, StatementShape>>;

  constructor(maxBytes = MAX_TEXT_BYTES) {
    this.#known = new RecentMap(maxBytes, (text) => TEXT_OVERHEAD_BYTES + 2 * text.length);
  }

  shapeFor(role: string, text: string): StatementShape {
    const byRole = this.#known.get(text);
    const existing = byRole?.get(role);
    if (existing) return existing;
    const shape = new StatementShape(text);
    if (byRole) byRole.set(role, shape);
    else this.#known.set(text, new Map([[role, shape]]));
    return shape;
  }
}

/**
 * The tables, views and functions that a statement names with their schema, as quoted names, without system relations.
 * Relations inside views and policies are not included.
 */
export function findNamedRelations(text: string): readonly string[] {
  const names = new Set<string>();
  for (const [, schema, name] of text.matchAll(NAMED_RELATION)) {
    if (toQuotedName(schema!) !== SYSTEM_SCHEMA) names.add(`${toQuotedName(schema!)}.${toQuotedName(name!)}`);
    if (names.size === MAX_RELATIONS) break;
  }
  return [...names];
}

function toQuotedName(name: string): string {
  return name.startsWith('"') ? name : `"${name.toLowerCase()}"`;
}
